"""What lines of a log are looked for: a text, a severity, a rank, a host.

A condition is given whole lines as bytes, and tells which of them it picks, by their place. What
can be searched for at memory speed comes first; only lines that it leaves are read one by one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from index.signatures import Scanner
from kb.evidence.marked import MarkedBlock
from kb.evidence.markers import Grade
from kb.log import Block
from kb.log.clean import clean_block
from kb.log.prefixes import split_prefix
from kb.log.speakers import Way

Places = NDArray[np.int64]
"""Of lines, or where they end: in rising order."""
Condition = Callable[[bytes, Places], Places]
"""From lines, and where each of them ends, to the places of those that are picked, from 0."""

_BEGINNING_BYTES = 120
"""The part of a line in which its rank and host are looked for."""


class Severity(StrEnum):
    """How bad a line is at least."""

    FATAL = "fatal"
    ERROR = "error"
    WARNING = "warning"


_GRADES = {
    Severity.FATAL: frozenset({Grade.FATAL}),
    Severity.ERROR: frozenset({Grade.FATAL, Grade.ERROR, Grade.FOLLOW_ON}),
    Severity.WARNING: frozenset(Grade) - {Grade.CONTEXT},
}
"""What else fails because of a failure is an error, too."""


def with_text(text: str) -> Condition:
    """Lines with a text. Capitals count only if there are capitals in the text."""
    needle = text.encode("utf-8", "replace")
    folds = needle == needle.lower()

    def pick(data: bytes, ends: Places) -> Places:
        found = _line_by_line(data.lower() if folds else data, needle)
        return np.searchsorted(ends, np.fromiter(found, np.int64))

    return pick


def as_severe_as(severity: Severity, markers: Scanner) -> Condition:
    """Lines in which a failure is told, as bad as this or worse."""
    wanted = _GRADES[severity]
    scanning = threading.Lock()  # a scanner has room for one scan

    def pick(data: bytes, ends: Places) -> Places:
        cleaned = clean_block(data)
        with scanning:
            marks = markers.scan(cleaned)
        marked = MarkedBlock(Block(None, 0, len(ends), cleaned), marks)
        lines = marked.markers_by_line(marked.marks)
        starts = sorted(start for start in lines if marked.grade(start, lines[start]) in wanted)
        return np.fromiter(map(marked.number, starts), np.int64)

    return pick


def said_by(rank: int | None, host: str | None, way: Way | None) -> Condition:
    """Lines that name a rank, a host, or both, in front of what they say. `way` is how those of
    this file do."""
    name = (
        rb"(?<!\d)0{0,5}%d(?!\d)" % rank if rank is not None else re.escape((host or "").encode())
    )
    beginning = re.compile(rb"(?m)^.{0,%d}?%s" % (_BEGINNING_BYTES, name))

    def is_said(line: bytes) -> bool:
        text = clean_block(line[:_BEGINNING_BYTES]).decode("utf-8", "replace")
        spoken = split_prefix(text)
        its_rank = spoken.rank if spoken.rank is not None or way is None else way.rank(text)
        its_host = spoken.host or (way.host(text) if way else None) or ""
        return rank in (None, its_rank) and host in (None, its_host)

    def pick(data: bytes, ends: Places) -> Places:
        starts = [match.start() for match in beginning.finditer(data)]
        kept = [
            start
            for start in starts
            if is_said(data[start : start + _BEGINNING_BYTES].partition(b"\n")[0])
        ]
        return np.searchsorted(ends, np.array(kept, np.int64))

    return pick


def every(conditions: Sequence[Condition]) -> Condition:
    """Lines that all of these pick; a later one is not asked where nothing is left."""

    def pick(data: bytes, ends: Places) -> Places:
        first, *others = conditions
        places = first(data, ends)
        for condition in others:
            if len(places):
                places = np.intersect1d(places, condition(data, ends))
        return places

    return pick


def _line_by_line(data: bytes, needle: bytes) -> Iterator[int]:
    """Where a text is found, once in each line with it."""
    at = data.find(needle)
    while at >= 0:
        yield at
        end = data.find(b"\n", at)
        if end < 0:
            return
        at = data.find(needle, end)
