"""Numbers in text that others wrote: only those that every store and format can hold are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_INT = (1 << 63) - 1
"""The largest number that is read: SQLite and JSON readers hold 64 bits with a sign, and nothing in
a log counts further. Python would read 4,300 digits, and raise on more."""


def read_int(text: str) -> int | None:
    """A whole number; None where the text is none, or one that is too large."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if -MAX_INT <= number <= MAX_INT else None


def read_ints(texts: Iterable[str]) -> Iterator[int]:
    """The numbers among some texts, in their order."""
    return (number for text in texts if (number := read_int(text)) is not None)
