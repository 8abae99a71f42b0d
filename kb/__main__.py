"""The `kb` command.

Ctrl-C is quiet from the first lines of `main` on, so this module imports next to nothing.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than all of the above
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn

    from click import ClickException

    SignalHandler = Callable[[int, FrameType | None], object]

_BY_SIGNAL = 128
"""Added to the number of the signal in the exit code, as in shells."""


_ended_by: list[int] = []
"""The signals that came, which nothing but the end follows."""


def main() -> None:
    """Run `kb`. Errors that a user can cause end in one sentence and exit code 2; signals end it
    quietly."""
    # While modules load there is nothing to undo, and at the end there is nothing any more.
    _on_signals(_leave_at_once, _leave_at_once)
    sys.unraisablehook = _leave_or_print
    try:
        code = _run()
        _on_signals(_leave_at_once, _leave_at_once)
    except KeyboardInterrupt:
        code = _BY_SIGNAL + signal.SIGINT
    _on_signals(_leave_at_once, _leave_at_once)
    _leave(code)


def _run() -> int:
    """Run the command, and return the exit code."""
    try:
        return _command()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  a panic of a library in Rust is no Exception
        # A library that a signal interrupts while it loads may raise an error of its own instead.
        return _BY_SIGNAL + _ended_by[0] if _ended_by else _failed(error)


def _command() -> int:
    import click

    from kb.cli import cli
    from kb.cli.exit_codes import ExitCode
    from kb.cli.process import prepare

    prepare()
    _on_signals(_unwind, _unwind)
    try:
        return cli.main(prog_name="kb", standalone_mode=False) or 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return ExitCode.INTERRUPTED
    except SystemExit as stop:
        if stop.code == 1:
            return _ended_by_click()
        return int(stop.code or 0)


def _failed(error: BaseException) -> int:
    """Say what went wrong: in one sentence, but for a mistake of ours. Exit code 1, which Python
    has for a traceback, would mean that nothing is known."""
    import click

    from kb.cli.exit_codes import ExitCode
    from kb.containment import shortage
    from kb.errors import KbError, short_name

    if isinstance(error, click.ClickException):
        return _tell(error)
    if isinstance(error, KbError):
        return _tell(click.ClickException(str(error)))
    sentence = shortage(error)
    if sentence:
        click.ClickException(sentence).show()  # without another import
    elif isinstance(error, OSError):  # the terminal is gone, a disk is full, ...
        why = error.strerror or str(error)
        named = f" {short_name(error.filename)}" if isinstance(error.filename, str) else ""
        advice = "" if named else "; check the disk"
        return _tell(click.ClickException(f"cannot read or write{named}: {why}{advice}"))
    elif isinstance(error, (LookupError, ValueError)) and "_KB_COMPLETE" in os.environ:
        odd = "COMP_WORDS and COMP_CWORD are odd; run: kb completion --help"
        return _tell(click.ClickException(odd))
    else:
        sys.excepthook(type(error), error, error.__traceback__)
    return ExitCode.WRONG_USE


def _ended_by_click() -> int:
    """Click ends with 1 where a completion is asked for by an unknown shell, and else when the
    reader of a pipe goes away (`kb list | head`)."""
    import click

    from kb.cli.exit_codes import ExitCode

    if "_KB_COMPLETE" not in os.environ:
        return ExitCode.PIPE_CLOSED
    return _tell(click.ClickException("_KB_COMPLETE is odd; run: kb completion --help"))


def _tell(error: ClickException) -> int:
    from contextlib import suppress

    from kb.cli.exit_codes import ExitCode
    from kb.cli.terminal import tell

    with suppress(OSError):  # nobody can be told where stderr takes nothing
        tell(error)
    return ExitCode.WRONG_USE


def _on_signals(interrupt: SignalHandler, end: SignalHandler) -> None:
    """Set what Ctrl-C does, and what TERM and HUP do. A signal that the caller has switched off, as
    `nohup` does, stays so."""
    for number, handler in (
        (signal.SIGINT, interrupt),
        (signal.SIGTERM, end),
        (signal.SIGHUP, end),
    ):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _unwind(number: int, _frame: FrameType | None) -> NoReturn:
    """Let every `with` on the way undo what it did."""
    _ended_by.append(number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(_BY_SIGNAL + number)


def _leave_at_once(
    number: int, _frame: FrameType | None, leave: Callable[[int], NoReturn] = os._exit
) -> None:
    """End where an exception would be a traceback. A default value is there to the very end, when
    the names of modules are gone."""
    leave(128 + number)


def _leave_or_print(unraisable: sys.UnraisableHookArgs) -> None:
    """End by a signal that came in a destructor: Python cannot raise anything there, so it would
    print a traceback and go on."""
    reason = unraisable.exc_value
    if isinstance(reason, KeyboardInterrupt):
        os._exit(_BY_SIGNAL + signal.SIGINT)
    if isinstance(reason, SystemExit):
        os._exit(int(reason.code or 0))
    sys.__unraisablehook__(unraisable)


def _leave(code: int) -> NoReturn:
    """End without taking the process apart, which takes longer than an answer, and without waiting
    for threads: one of them may read a pipe that nobody writes to. What a full disk refused, Python
    would try once more at its end, with a message and an exit code of its own."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # nobody is there to read it
    os._exit(code)


if __name__ == "__main__":
    main()
