"""What the exit code of every command means; the table of docs/commands.md."""

from __future__ import annotations

from enum import IntEnum

from kb.verdict import Verdict


class ExitCode(IntEnum):
    """How a command ended."""

    FOUND = 0
    """An incident matches or possibly matches, or the check found no problem."""
    NOT_FOUND = 1
    """Nothing known matches, or the input is healthy; or a check found a problem."""
    WRONG_USE = 2
    """Usage error or unreadable input; one sentence on stderr says what to do."""
    INTERRUPTED = 130
    """Ctrl-C; 128 + SIGINT, as in shells."""
    PIPE_CLOSED = 141
    """Nobody reads the output any more, as shells have it."""


BY_SIGNAL = 128
"""Added to the number of a signal that ends the process, as in shells."""


def of_verdict(verdict: Verdict) -> ExitCode:
    """The exit code of one diagnosis."""
    return ExitCode.FOUND if verdict.is_found else ExitCode.NOT_FOUND


def of_check(*, good: bool) -> ExitCode:
    """The exit code of a check."""
    return ExitCode.FOUND if good else ExitCode.NOT_FOUND
