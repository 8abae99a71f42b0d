"""The lines of a job that are worth a look: beginnings, ends and every line that a marker fired on.

However many files and gigabytes there are, so many lines are looked at one by one, and no more.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice, pairwise

import msgspec

from index.signatures import Scanner
from kb.evidence.markers import Grade, grade_line
from kb.evidence.stacks import read_stack
from kb.log import Block, Source
from kb.log.clean import printable

_LONGEST = 4_000
_MOST_MARKED = 200
"""So many of the first and so many of the last marked lines of a file are kept."""
_TRACEBACK = b"Traceback (most recent call last)"

_TAG = re.compile(r"(?:\[\d+,\d+\]|\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4})<std(?:out|err|diag)>:")

ATTACHED = re.compile(
    r"\s+(?![\s\d.+:-]|(?:INFO|DEBUG|TRACE|WARN\w*|ERROR|CRITICAL|FATAL)\b)|\s*$|frame #\d"
    r"|<omitting|(?:Original )?Traceback \(|The above exception"
    r"|During handling|Exception raised from|\[? ?\d+\]? +[./]\S*\(|=+ backtrace"
)
"""The beginning of a line that belongs to the one before it, most often a part of a stack."""

Marks = dict[int, set[int] | None]
"""By offset of a line: the markers that fired on it; None for the exception that ends a stack."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of one file, as printed, without what a terminal would interpret."""

    file: str | None
    number: int
    text: str
    grade: Grade


def read_lines(source: Source, markers: Scanner, budget: int) -> list[Line]:
    """Read a source to its end and keep at most about `budget` of its lines, in order.

    Raises:
        LogError: the source cannot be read.
    """
    blocks = source.blocks()
    first: list[Block] = []
    while sum(block.line_count for block in first) <= budget:
        block = next(blocks, None)
        if block is None:
            whole = (line for one in first for line in _lines(one, _starts(one), markers))
            return [part for line in whole for part in _unglued(line)]
        first.append(block)
    return _sparse(first, blocks, markers, budget)


def _sparse(first: list[Block], rest: Iterator[Block], markers: Scanner, budget: int) -> list[Line]:
    found = list(_lines(first[0], islice(_starts(first[0]), budget // 4), markers))
    early: list[Line] = []
    late: deque[Line] = deque(maxlen=_MOST_MARKED)
    ends: deque[Block] = deque(maxlen=2)
    for block in chain(first, rest):
        for line in _lines(block, (), markers):
            if line.grade >= Grade.FOLLOW_ON:
                (early if len(early) < _MOST_MARKED else late).append(line)
        ends.append(block)
    for block in ends:
        found += _lines(block, islice(_starts_from_end(block), budget // 4), markers)
    by_number = {line.number: line for line in (*found, *early, *late)}
    return [part for number in sorted(by_number) for part in _unglued(by_number[number])]


def _unglued(line: Line) -> list[Line]:
    """What mpirun glued together when ranks wrote at once."""
    starts = [match.start() for match in _TAG.finditer(line.text)]
    if not starts or starts == [0]:
        return [line]
    cuts = sorted({0, *starts, len(line.text)})
    texts = [line.text[start:end] for start, end in pairwise(cuts)]
    return [msgspec.structs.replace(line, text=text) for text in texts]


def _lines(block: Block, wanted: Iterable[int], markers: Scanner) -> Iterator[Line]:
    """The lines at the offsets that are wanted, and those that markers fired on."""
    marks = _marks(block.data, markers)
    number, counted = block.first_line, 0
    for start in sorted(marks.keys() | set(wanted)):
        number += block.data.count(b"\n", counted, start)
        counted = start
        text = _text(block.data, start)
        fired = marks.get(start, set())
        grade = Grade.FATAL if fired is None else grade_line(text, fired)
        yield Line(block.source, number, text, grade)


def _marks(data: bytes, markers: Scanner) -> Marks:
    marks: Marks = {}
    for number, end in markers.scan(data):
        fired = marks.setdefault(data.rfind(b"\n", 0, max(end - 1, 0)) + 1, set())
        if fired is not None:
            fired.add(number)
    for start in list(marks):
        if _TRACEBACK in data[start : start + _LONGEST].split(b"\n", 1)[0]:
            exception = read_stack(data, start).exception
            if exception is not None:
                marks[exception] = None
    return marks


def _text(data: bytes, start: int) -> str:
    stop = data.find(b"\n", start, start + _LONGEST)
    raw = data[start : start + _LONGEST if stop < 0 else stop]
    return printable(raw.decode("utf-8", "replace")).rstrip()


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
