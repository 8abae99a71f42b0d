"""What the outputs of checks show."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kb.log import Collected


class Output(msgspec.Struct, frozen=True):
    """Some lines of the input that are the output of a check."""

    source: str | None
    """Name of the file, None for pasted or piped text."""
    first_line: int
    """Number of the first line, from 1."""
    lines: tuple[str, ...]
    is_cut: bool = False
    """The source goes on behind the part that is looked at: what is missing may stand there."""


class CollectedOutput(msgspec.Struct, frozen=True):
    """The output of a check that is known, and the host on which it was taken."""

    origin: Collected
    output: Output


class Found(msgspec.Struct, frozen=True):
    """A finding of the check that holds."""

    finding: str
    """Its id."""
    text: str
    """One sentence, with the values read."""
    row: int
    """Of the line that shows it, from 0."""


class Unread(msgspec.Struct, frozen=True):
    """A value that the output holds and that could not be read: neither good nor bad."""

    what: str
    """As it follows on "could not read"."""
    row: int


Reader = Callable[[Output], Iterable[Found | Unread]]
"""Knows the output of one check."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the output of a check shows."""

    check: str
    finding: str | None
    """None: something in the output could not be read, or lines differ between hosts."""
    text: str
    """What it means, with the values read."""
    file: str | None
    line: int
    abnormal: bool | None
    """None: it could not be read, which is never normal."""
    suggests: str | None = None
    """What it points to, in words."""
    points_to: tuple[str, ...] = ()
    """Incidents, and causes of playbooks."""
    then: str | None = None
    """What to do next, in words."""
    next: str | None = None
    """The check to run next."""
    differs: bool = False
    """Several hosts or processes were looked at, and only some of them show it."""
