"""The lines of a block that markers fired on: each is graded, and its stack read, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kb.evidence.markers import Grade, grade_line
from kb.evidence.stacks import Stack, read_stack
from kb.log import Block
from kb.log.lines import BlockLines

Mark = tuple[int, int]
"""Number of a marker, and the offset behind its match."""

_TRACEBACK = "Traceback (most recent call last)"


class MarkedBlock(BlockLines):
    """A block and what a scan for markers found in it, in order of offset."""

    def __init__(self, block: Block, marks: Sequence[Mark]) -> None:
        super().__init__(block)
        self.marks = marks
        self._grades: dict[int, Grade] = {}
        self._stacks: dict[int, Stack] = {}

    def markers_by_line(
        self, marks: Iterable[Mark], max_lines: int | None = None
    ) -> dict[int, set[int]]:
        """By start of a line: the markers that fired on it, for the first lines of `marks`."""
        lines: dict[int, set[int]] = {}
        for marker, end in marks:
            start = self.start_of(end)
            if start not in lines and len(lines) == max_lines:
                break
            lines.setdefault(start, set()).add(marker)
        return lines

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
