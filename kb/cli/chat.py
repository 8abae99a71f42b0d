"""`kb chat`: the conversation, in a plain terminal."""

from __future__ import annotations

import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from kb.cli.case import case_arguments, diagnosed, open_service, read_case
from kb.cli.exit_codes import of_verdict
from kb.cli.terminal import put, say, show
from kb.conversation import Conversation, begin
from kb.log import Log
from kb.log.clean import strip_controls
from kb.outcomes import Outcomes
from kb.service.service import DEFAULT_MATCHES, result_of
from kb.settings import load_settings
from kb.verdict import Verdict

_PROMPT = "> "
_LEAVE = frozenset({"quit", "exit", "bye", "q", "退出", "再见"})


@click.command("chat")
@case_arguments
def command(text: tuple[str, ...], paths: tuple[Path, ...], incidents: tuple[Path, ...]) -> None:
    """Discuss an error: kb asks, you answer or add details, and kb ranks the incidents again.

    TEXT is an error message or a question; -f adds logs. Each line of stdin is one message,
    until `quit` or end of file. Type `help` to see what kb understands.

    Exit code: 0 an incident matches at the end, 1 none matches, 2 usage error.
    """
    if Path("-") in paths:
        raise click.UsageError("stdin holds the messages; pass the log as a file with -f PATH")
    log = read_case(text, paths)
    if log is None and not sys.stdin.isatty():
        raise click.UsageError("no error given; add TEXT or -f PATH (stdin holds the messages)")
    verdict = _talk(log, incidents)
    raise click.exceptions.Exit(of_verdict(verdict))


def _talk(log: Log | None, incidents: tuple[Path, ...]) -> Verdict:
    settings = load_settings(incidents)
    outcomes = Outcomes(settings, say)
    with open_service(settings) as service:
        diagnosis = diagnosed(log or Log.from_text(""), service, DEFAULT_MATCHES)
        conversation = begin(diagnosis, outcomes.load())
        _show(conversation, None)
        for said in _said():
            before = conversation
            conversation = result_of(service.reply(before, said))
            outcomes.take(before, conversation)
            _show(conversation, before)
    return conversation.verdict


def _said() -> Iterator[str]:
    """What the user says, until the end; echoed where no terminal does it."""
    read = _lines_of_terminal if sys.stdin.isatty() else _lines_of_pipe
    for line in read():
        said = line.strip()
        if said.lower() in _LEAVE:
            return
        if said:
            yield said


def _lines_of_terminal() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401  input() then edits lines and remembers them
    with _given_back_on_quit():
        while True:
            try:
                yield input(_PROMPT)
            except EOFError:
                put("")
                return


@contextmanager
def _given_back_on_quit() -> Iterator[None]:
    """Undo what readline does to the terminal before Ctrl-\\ ends the process."""
    modes = termios.tcgetattr(sys.stdin)

    def end(number: int, _frame: object) -> None:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    before = signal.getsignal(signal.SIGQUIT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGQUIT, before)


def _lines_of_pipe() -> Iterator[str]:
    for raw in sys.stdin.buffer:
        line = strip_controls(raw.decode("utf-8", "replace")).strip()
        put(_PROMPT + line)
        yield line


def _show(conversation: Conversation, before: Conversation | None) -> None:
    from kb.views.chat import render

    show(render(conversation, before), paged=False)
