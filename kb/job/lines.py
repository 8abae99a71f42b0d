"""The lines of a job that are kept: beginnings, ends and every line that a marker fired on.

However many files and gigabytes there are, at most a fixed number of lines is looked at one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

import msgspec

from kb.evidence.marked import MarkedBlock
from kb.evidence.markers import MARKERS, Grade
from kb.evidence.marks import Mark, Marks, choice
from kb.expression import Expression

_MAX_LINES_READ = 40_000
"""Lines kept of all files of a job: what is looked at in some seconds."""
_MIN_LINES_OF_A_FILE, _MAX_LINES_OF_A_FILE = 80, 20_000
"""Of a job of very many files each keeps its beginning and its end; of few files none takes it
all."""
_MAX_END_LINES = 1_000
"""Of a file too long to be kept whole: lines of its begin, and of each of its last blocks."""
_MAX_MARKED_LINES = 200
"""Of such a file: of its first marked lines, and of its last."""
_MAX_FATAL_LINES = 20
"""Of each block: its last lines that name a failure, or report an exit."""
_MAX_FINAL_LINES = 20
"""Of such a file: of its last lines that tell what no rank survives."""
_EXITS = choice((n for n, one in enumerate(MARKERS) if one.reports_exit), len(MARKERS))
_TELLING = _EXITS | choice(
    (n for n, one in enumerate(MARKERS) if one.grade is Grade.FATAL), len(MARKERS)
)

_TIME = r"\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}"
_TAG = Expression(
    rf"(?:(?:\[{_TIME}\]|{_TIME})?\[\d+,\d+\]|\[{_TIME}\]|{_TIME})<std(?:out|err|diag)>:"
)
"""What Open MPI writes in front of each line of a rank: its number, the time or both."""
_PART_OF_TAG = "<std"
"""Of each of them: hardly any line has it, and to look for it costs next to nothing."""

ATTACHED = Expression(
    r"(?:\s{2,}|\t)(?![\s\d.+:-]|(?:INFO|DEBUG|TRACE|WARN\w*|ERROR|CRITICAL|FATAL)\b)|\s*$"
    r"|frame #\d|<omitting|(?:Original )?Traceback \(|The above exception"
    r"|During handling|Exception raised from|\[? ?\d+\]? +[./]\S*\(|=+ backtrace"
    r"|(?:main|runtime|[\w.-]{1,80}/[\w./-]{1,200})\.(?:\(\*?\w{1,80}\)\.)?[\w.]{1,80}"  # Go
    r"(?:\([^()]{0,200}\))?\s*$|goroutine \d+ \[|\s/\S{1,400}\.go:\d"
)
"""The beginning of a line that belongs to the one before it, most often a part of a stack. One
blank tells nothing: Fortran writes it in front of every line."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of one file, as printed, without what a terminal would interpret."""

    file: str | None
    number: int
    text: str
    grade: Grade
    is_final: bool = False
    """It tells what no rank survives."""


def line_budget(files: int) -> int:
    """How many lines of each of so many files are kept, whatever their size."""
    return min(max(_MAX_LINES_READ // max(files, 1), _MIN_LINES_OF_A_FILE), _MAX_LINES_OF_A_FILE)


class LineKeeper:
    """Keeps at most about `budget` lines of a file that is handed over block by block."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._end = min(budget // 4, _MAX_END_LINES)
        self._count = 0
        self._whole: list[MarkedBlock] = []
        """All blocks, as long as they hold no more lines than are kept."""
        self._head: list[Line] = []
        self._early: list[Line] = []
        self._late: deque[Line] = deque(maxlen=_MAX_MARKED_LINES)
        self._final: deque[Line] = deque(maxlen=_MAX_FINAL_LINES)
        self._ends: deque[MarkedBlock] = deque(maxlen=2)

    def add(self, block: MarkedBlock) -> None:
        """Take in the next block."""
        self._count += block.block.line_count
        if self._count <= self._budget:
            self._whole.append(block)
            return
        for earlier in self._whole:
            self._add_sparse(earlier)
        self._whole.clear()
        self._add_sparse(block)

    def lines(self) -> list[Line]:
        """The lines that were kept, in order."""
        if self._count <= self._budget:
            whole = (line for one in self._whole for line in _lines(one, one.starts(), one.marks))
            return [part for line in whole for part in _unglued(line)]
        kept = [*self._head, *self._early, *self._late, *self._final]
        for block in self._ends:
            kept += _lines(block, islice(block.starts_before(len(block.data)), self._end), ())
            kept += _complaints(block, block.marks[-2 * _MAX_MARKED_LINES :])
        by_number: dict[int, Line] = {}
        for line in sorted(kept, key=lambda line: line.grade):
            by_number[line.number] = line
        return [part for number in sorted(by_number) for part in _unglued(by_number[number])]

    def _add_sparse(self, block: MarkedBlock) -> None:
        if not self._ends:
            first = block.marks[: max(self._budget, 2 * _MAX_MARKED_LINES)]
            self._head = list(_lines(block, islice(block.starts(), self._end), first))
        if len(self._early) < _MAX_MARKED_LINES:
            self._early += _complaints(block, block.marks[: 2 * _MAX_MARKED_LINES])
        telling = block.marks.chosen(_TELLING)
        self._late += _complaints(block, telling[-_MAX_FATAL_LINES:])
        self._final += _lines(block, sorted(block.finals())[-_MAX_FINAL_LINES:], ())
        self._ends.append(block)


def _complaints(block: MarkedBlock, marks: Marks) -> Iterator[Line]:
    """The lines that complain, and those that report how a process ended."""
    yield from _lines(block, (), marks.chosen(_EXITS))
    yield from (line for line in _lines(block, (), marks) if line.grade >= Grade.FOLLOW_ON)


def _unglued(line: Line) -> list[Line]:
    """What mpirun glued together when ranks wrote at once."""
    if _PART_OF_TAG not in line.text:
        return [line]
    starts = [match.start() for match in _TAG.finditer(line.text)]
    if not starts or starts == [0]:
        return [line]
    cuts = sorted({0, *starts, len(line.text)})
    texts = [line.text[start:end] for start, end in pairwise(cuts)]
    return [msgspec.structs.replace(line, text=text) for text in texts]


def _lines(block: MarkedBlock, wanted: Iterable[int], marks: Iterable[Mark]) -> Iterator[Line]:
    """The lines whose starts are wanted, and those that markers fired on."""
    markers = block.markers_by_line(marks)
    exceptions = set(_exceptions(block, markers))
    for start in sorted(markers.keys() | exceptions | set(wanted)):
        text, number = block.text(start), block.number(start)
        if start in exceptions:
            grade = Grade.FATAL
        else:
            grade = block.grade(start, markers[start]) if start in markers else Grade.CONTEXT
        yield Line(block.block.source, number, text, grade, start in block.finals())


def _exceptions(block: MarkedBlock, starts: Iterable[int]) -> Iterator[int]:
    """The lines of the exceptions that end the stacks which begin at these lines."""
    for start in starts:
        stack = block.stack(start)
        if stack is not None and stack.exception is not None:
            yield stack.exception
