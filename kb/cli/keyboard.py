"""Messages that a person types or pastes at a terminal. What is pasted is one message."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from kb.cli.exit_codes import BY_SIGNAL
from kb.cli.terminal import put

_PASTE_GAP_SECONDS = 0.02
"""Lines that come within it after another belong to one paste: nobody types so fast. For terminals
and line editors that do not tell where a paste ends."""
_STUCK_SECONDS = 1.0
"""How long a signal may wait for the line editor."""
_MAX_PASTED_LINES = 100_000
"""Of such a paste, so that a key that is stuck makes no endless message."""
_BRACKETS_OFF = "\x1b[?2004l"
"""Asks the terminal not to mark the ends of a paste any more."""
_LOCAL_MODES = 3
"""Where `termios.tcgetattr` has them."""


def typed(prompt: str) -> Iterator[str]:
    """What is typed behind the prompt, until the end of input; lines of a paste stay together."""
    undo = _edit_lines()
    with _given_back_on_quit(undo):
        while True:
            try:
                with _ended_though_stuck(undo):
                    said = "\n".join([input(prompt), *_rest_of_paste()])
            except EOFError:
                put("")
                return
            yield said


def _edit_lines() -> str:
    """Let `input` edit lines and remember them, and take a paste between its marks as one line;
    return what takes that back on the terminal."""
    with suppress(ImportError):
        import readline

        marks_pastes = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        if marks_pastes and "libedit" not in (readline.__doc__ or ""):
            readline.parse_and_bind("set enable-bracketed-paste on")
            return _BRACKETS_OFF
    return ""


def _rest_of_paste() -> Iterator[str]:
    """The lines that come at once behind the first one."""
    for _ in range(_MAX_PASTED_LINES):
        if not _more_has_come():
            return
        try:
            yield input()
        except EOFError:
            return


def _more_has_come() -> bool:
    with _uncooked():
        return bool(select.select([sys.stdin], [], [], _PASTE_GAP_SECONDS)[0])


@contextmanager
def _uncooked() -> Iterator[None]:
    """A terminal that tells of part of a line, and does not show it."""
    cooked = termios.tcgetattr(sys.stdin)
    modes: list[Any] = list(cooked)
    modes[_LOCAL_MODES] &= ~(termios.ICANON | termios.ECHO)
    with ExitStack() as stack:
        stack.callback(termios.tcsetattr, sys.stdin, termios.TCSANOW, cooked)
        termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)
        yield


@contextmanager
def _given_back_on_quit(undo: str) -> Iterator[None]:
    """Undo what the line editor does to the terminal before Ctrl-\\ ends the process."""
    modes = termios.tcgetattr(sys.stdin)

    def end(number: int, _frame: object) -> None:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)
        os.write(sys.stdout.fileno(), undo.encode())
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    before = signal.getsignal(signal.SIGQUIT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGQUIT, before)


@contextmanager
def _ended_though_stuck(undo: str) -> Iterator[None]:
    """End the process of a signal that the line editor keeps waiting: it reads a paste to its end
    mark, and hears of no signal meanwhile. The mark may be lost."""
    modes = termios.tcgetattr(sys.stdin)
    heard, told = socket.socketpair()
    told.setblocking(False)
    is_over = threading.Event()

    def wait() -> None:
        with heard:
            number = heard.recv(1)
            if number and not is_over.wait(_STUCK_SECONDS):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)
                os.write(sys.stdout.fileno(), f"{undo}\n".encode())
                os._exit(BY_SIGNAL + number[0])

    threading.Thread(target=wait, name="signals", daemon=True).start()
    with told:
        before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            is_over.set()
            signal.set_wakeup_fd(before)
