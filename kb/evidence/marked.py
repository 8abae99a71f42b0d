"""The lines of a block that markers fired on: each is graded, and its stack read, once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

import msgspec

from kb.evidence.endings import raises_doubt
from kb.evidence.markers import DOUBTS, FINAL, GRAVE, MARKERS, Grade, grade_line, negates
from kb.evidence.marks import Mark, Marks, choice
from kb.evidence.notices import is_notice
from kb.evidence.stacks import Stack, read_stack
from kb.expression import Expression
from kb.log import Block
from kb.log.lines import BlockLines

_IS_DOUBT = choice(DOUBTS, len(MARKERS))
_IS_GRAVE = choice(GRAVE, len(MARKERS))
_IS_FINAL = choice(FINAL, len(MARKERS))

_MAX_DOUBTS = 1_000
"""Doubts of a block that are looked at: most say what they seem to say, and one is enough."""
_MAX_CLAUSE_BYTES = 160
"""Before and behind a doubt, in which it may be denied."""

_HELPER = Expression(
    r"\b(?:data(?: ?loader)?|loader|io|env|reader|pre-?(?:fetch|process)\w*|decod\w+|augment\w*)"
    r"[ _-](?:worker|process|thread|child)\b",
    re.IGNORECASE,
)
"""What a rank starts for its input, and survives."""

_TRACEBACK = "Traceback (most recent call last)"


class Findings(msgspec.Struct, frozen=True):
    """All that is found in a block by itself, without its text: small, so that one process can go
    on with what another one scanned."""

    block: Block
    marks: Marks
    hits: Sequence[Mark]
    in_doubt: bool
    """A line of it, or of a block before it, says in passing that something went wrong."""
    finals: frozenset[int]


class MarkedBlock(BlockLines):
    """A block and what a scan for markers found in it, in order of offset; `hits` are those of
    signatures."""

    def __init__(self, block: Block, marks: Sequence[Mark], hits: Sequence[Mark] = ()) -> None:
        super().__init__(block)
        found = Marks.of(marks)
        self.marks = found.chosen(~_IS_DOUBT)
        self.hits = hits
        self._doubts = found.chosen(_IS_DOUBT)
        self._in_doubt: bool | None = None
        self._finals: frozenset[int] | None = None
        self._grades: dict[int, Grade] = {}
        self._stacks: dict[int, Stack] = {}

    @classmethod
    def found(cls, findings: Findings) -> MarkedBlock:
        """A block that was scanned elsewhere."""
        block = cls(findings.block, (), findings.hits)
        block.marks = findings.marks
        block._in_doubt, block._finals = findings.in_doubt, findings.finals
        return block

    def findings(self, block: Block, *, in_doubt: bool) -> Findings:
        """What is found in it, for `found`. `block` is the same without its text; what comes before
        it may be `in_doubt`."""
        return Findings(
            block=block,
            marks=self.marks,
            hits=self.hits,
            in_doubt=in_doubt or self.doubts(),
            finals=self.finals(),
        )

    @property
    def grave(self) -> Marks:
        """The marks that name a failure or an error."""
        return self.marks.chosen(_IS_GRAVE)

    def lines_of(self, marks: Iterable[Mark], most: int) -> set[int]:
        """The starts of the first lines in which these marks are, at most so many."""
        lines: set[int] = set()
        for _marker, end in marks:
            lines.add(self.start_of(end))
            if len(lines) == most:
                break
        return lines

    def markers_of(self, start: int) -> set[int]:
        """The markers that fired on the line that starts here."""
        behind = self.marks.behind(start)
        return {
            number for number, _ in takewhile(lambda mark: self.start_of(mark[1]) == start, behind)
        }

    def markers_by_line(self, marks: Iterable[Mark]) -> dict[int, set[int]]:
        """By start of a line: which of `marks` are in it."""
        lines: dict[int, set[int]] = {}
        for marker, end in marks:
            lines.setdefault(self.start_of(end), set()).add(marker)
        return lines

    def doubts(self) -> bool:
        """Whether a line says in passing that something went wrong."""
        if self._in_doubt is None:
            self._in_doubt = any(
                (negates(marker) or self._raises_doubt(end))
                and not is_notice(self.text(self.start_of(end)))
                for marker, end in self._doubts[:_MAX_DOUBTS]
            )
        return self._in_doubt

    def finals(self) -> frozenset[int]:
        """The starts of the lines that tell what no rank survives; the last ones, if they are very
        many."""
        if self._finals is None:
            finals = self._doubts.chosen(_IS_FINAL)[-_MAX_DOUBTS:]
            self._finals = frozenset(
                self.start_of(end)
                for _marker, end in finals
                if self._raises_doubt(end) and not _HELPER.search(self._before(end))
            )
        return self._finals

    def _raises_doubt(self, end: int) -> bool:
        behind = self.data[end : end + _MAX_CLAUSE_BYTES].partition(b"\n")[0]
        return raises_doubt(self._before(end), behind.decode(errors="replace"))

    def _before(self, end: int) -> str:
        """The clause of a line up to there."""
        clause = self.data[max(self.start_of(end), end - _MAX_CLAUSE_BYTES) : end]
        return clause.decode(errors="replace")

    def grade(self, start: int, markers: set[int]) -> Grade:
        """How much a line tells, by the markers that fired on it."""
        grade = self._grades.get(start)
        if grade is None:
            grade = self._grades[start] = grade_line(self.text(start), markers)
        return grade

    def stack(self, start: int) -> Stack | None:
        """The stack that a line begins; None if it begins none."""
        if _TRACEBACK not in self.text(start):
            return None
        stack = self._stacks.get(start)
        if stack is None:
            stack = self._stacks[start] = read_stack(self.data, start)
        return stack
