"""The parts of a draft that a person must fill in, marked so that nobody relies on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

MARK = "TODO:"
"""Prefix of text that is still missing."""

NO_SYSTEM = "todo"
"""Stands in `systems` where the log names none."""


class Blank(msgspec.Struct, frozen=True):
    """A place that is left to fill in."""

    line: int
    """From 1."""
    where: str
    """The heading of the section, or the key of the front matter."""
    what: str
    """What belongs there."""


def find_blanks(lines: Sequence[str]) -> Iterator[Blank]:
    """Every blank of a record, in order. Programs may print the mark, so in the evidence it only
    counts at the beginning of a line."""
    where, headers = "", 0
    for number, line in enumerate(lines, 1):
        headers += line == "---" and headers < 2
        if line.startswith("## "):
            where = line.removeprefix("## ")
        elif headers == 1 and ":" in line and not line.startswith("- "):
            where = line.partition(":")[0].strip()
        _, mark, what = line.partition(MARK)
        if mark and (where != "Evidence" or line.startswith(MARK)):
            yield Blank(number, where, what.strip(" '\""))
        elif where == "systems" and f"[{NO_SYSTEM}]" in line:
            yield Blank(number, where, "the software and hardware involved, in lower case")
