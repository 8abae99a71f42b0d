"""The lines of a job that are worth a look: beginnings, ends and every line that a marker fired on.

However many files and gigabytes there are, so many lines are looked at one by one, and no more.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

import msgspec

from kb.evidence.markers import MARKERS, Grade, grade_line
from kb.evidence.select import Marks
from kb.evidence.stacks import read_stack
from kb.log import Block
from kb.log.clean import strip_controls

_LONGEST = 4_000
_LINES_READ = 40_000
_LEAST_OF_A_FILE, _MOST_OF_A_FILE = 80, 20_000
_MOST_OF_AN_END = 1_000
"""Of a file too long to be kept whole: lines of its begin, and of each of its last blocks."""
_MOST_MARKED = 200
"""So many of the first and so many of the last marked lines of a file are kept."""
_MOST_FATAL = 20
"""Of each block between, the last lines that name a failure."""
_FATAL = frozenset(n for n, marker in enumerate(MARKERS) if marker.grade is Grade.FATAL)
_TRACEBACK = b"Traceback (most recent call last)"

_TAG = re.compile(r"(?:\[\d+,\d+\]|\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})<std(?:out|err|diag)>:")

ATTACHED = re.compile(
    r"\s+(?![\s\d.+:-]|(?:INFO|DEBUG|TRACE|WARN\w*|ERROR|CRITICAL|FATAL)\b)|\s*$|frame #\d"
    r"|<omitting|(?:Original )?Traceback \(|The above exception"
    r"|During handling|Exception raised from|\[? ?\d+\]? +[./]\S*\(|=+ backtrace"
)
"""The beginning of a line that belongs to the one before it, most often a part of a stack."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of one file, as printed, without what a terminal would interpret."""

    file: str | None
    number: int
    text: str
    grade: Grade


def line_budget(files: int) -> int:
    """So many lines of each file are kept, whatever their size."""
    return min(max(_LINES_READ // max(files, 1), _LEAST_OF_A_FILE), _MOST_OF_A_FILE)


class LineKeeper:
    """Keeps at most about `budget` lines of a file that is handed over block by block."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._end = min(budget // 4, _MOST_OF_AN_END)
        self._count = 0
        self._whole: list[tuple[Block, Marks]] = []
        """All blocks, as long as they hold no more lines than are kept."""
        self._head: list[Line] = []
        self._early: list[Line] = []
        self._late: deque[Line] = deque(maxlen=_MOST_MARKED)
        self._ends: deque[tuple[Block, Marks]] = deque(maxlen=2)

    def add(self, block: Block, marks: Marks) -> None:
        """Take in a block and the markers that fired in it, each with the offset behind it."""
        self._count += block.line_count
        if self._count <= self._budget:
            self._whole.append((block, marks))
            return
        for earlier in self._whole:
            self._add_sparse(*earlier)
        self._whole.clear()
        self._add_sparse(block, marks)

    def lines(self) -> list[Line]:
        """What was kept, in order."""
        if self._count <= self._budget:
            whole = (
                ln for block, marks in self._whole for ln in _lines(block, _starts(block), marks)
            )
            return [part for line in whole for part in _unglued(line)]
        kept = [*self._head, *self._early, *self._late]
        for block, marks in self._ends:
            kept += _lines(block, islice(_starts_from_end(block), self._end), ())
            kept += _complaints(block, marks[-2 * _MOST_MARKED :])
        by_number: dict[int, Line] = {}
        for line in sorted(kept, key=lambda line: line.grade):
            by_number[line.number] = line
        return [part for number in sorted(by_number) for part in _unglued(by_number[number])]

    def _add_sparse(self, block: Block, marks: Marks) -> None:
        if not self._ends:
            self._head = list(_lines(block, islice(_starts(block), self._end), marks))
        if len(self._early) < _MOST_MARKED:
            self._early += _complaints(block, marks[: 2 * _MOST_MARKED])
        else:
            fatal = [mark for mark in marks if mark[0] in _FATAL]
            self._late += _complaints(block, fatal[-_MOST_FATAL:])
        self._ends.append((block, marks))


def _complaints(block: Block, marks: Marks) -> Iterator[Line]:
    return (line for line in _lines(block, (), marks) if line.grade >= Grade.FOLLOW_ON)


def _unglued(line: Line) -> list[Line]:
    """What mpirun glued together when ranks wrote at once."""
    starts = [match.start() for match in _TAG.finditer(line.text)]
    if not starts or starts == [0]:
        return [line]
    cuts = sorted({0, *starts, len(line.text)})
    texts = [line.text[start:end] for start, end in pairwise(cuts)]
    return [msgspec.structs.replace(line, text=text) for text in texts]


def _lines(block: Block, wanted: Iterable[int], marks: Marks) -> Iterator[Line]:
    """The lines at the offsets that are wanted, and those that markers fired on."""
    fired = _by_line(block.data, marks)
    starts = sorted(fired.keys() | set(wanted))
    if not starts:
        return
    number, counted = _number_at(block, starts[0]), starts[0]
    for start in starts:
        number += block.data.count(b"\n", counted, start)
        counted = start
        text = _text(block.data, start)
        markers = fired.get(start, set())
        grade = Grade.FATAL if markers is None else grade_line(text, markers)
        yield Line(block.source, number, text, grade)


def _number_at(block: Block, start: int) -> int:
    """The number of the line at an offset, counted from the nearer end of the block."""
    data = block.data
    if start < len(data) // 2:
        return block.first_line + data.count(b"\n", 0, start)
    whole = block.line_count - (not data.endswith(b"\n"))
    return block.first_line + whole - data.count(b"\n", start)


def _by_line(data: bytes, marks: Marks) -> dict[int, set[int] | None]:
    """By offset of a line: the markers that fired on it; None for the exception that ends a
    stack."""
    fired: dict[int, set[int] | None] = {}
    for number, end in marks:
        markers = fired.setdefault(data.rfind(b"\n", 0, max(end - 1, 0)) + 1, set())
        if markers is not None:
            markers.add(number)
    for start in list(fired):
        if _TRACEBACK in data[start : start + _LONGEST].split(b"\n", 1)[0]:
            exception = read_stack(data, start).exception
            if exception is not None:
                fired[exception] = None
    return fired


def _text(data: bytes, start: int) -> str:
    stop = data.find(b"\n", start, start + _LONGEST)
    raw = data[start : start + _LONGEST if stop < 0 else stop]
    return strip_controls(raw.decode("utf-8", "replace")).rstrip()


def _starts(block: Block) -> Iterator[int]:
    start = 0
    while start < len(block.data):
        yield start
        start = (block.data.find(b"\n", start) + 1) or len(block.data)


def _starts_from_end(block: Block) -> Iterator[int]:
    start = len(block.data)
    while start > 0:
        start = block.data.rfind(b"\n", 0, start - 1) + 1
        yield start
