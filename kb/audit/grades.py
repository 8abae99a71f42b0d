"""The grades of a team for the answers to its closed cases: on this machine only."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from index.progress import Notify
from kb.kept import KeptList, Named
from kb.verdict import Verdict

MAX_GRADES_KEPT = 1_000
"""Number of cases; older ones are forgotten. The shares are then known to within three percent."""

_NAMED = Named("audit", "grade of this case", "grade", "grades")


class Grade(StrEnum):
    """How good the first answer to a case was."""

    RIGHT = "right"
    """It names the cause and what helped; or nothing is known, and it says so."""
    SHORT = "short"
    """It names the cause, and one step to what helped is missing."""
    AREA = "area"
    """The right area and the wrong diagnosis: who believes it loses hours."""
    WRONG = "wrong"
    """Something else; or it says that nothing is known, and a record holds the cause."""

    @property
    def is_good(self) -> bool:
        """Whether the answer led to what helped."""
        return self in (Grade.RIGHT, Grade.SHORT)


class Graded(msgspec.Struct, frozen=True):
    """One graded case."""

    time: datetime
    """Of the grade, with its time zone."""
    case: str
    """The path of its log or job."""
    verdict: Verdict
    record: str
    """The id of the first incident; empty where none was shown."""
    confidence: float
    """Of the first incident, 0 to 1."""
    grade: Grade

    @property
    def is_covered(self) -> bool:
        """Whether the first incident shown is the case's."""
        return bool(self.record) and self.grade.is_good


class Grades:
    """The file of the grades. Errors are reported with `notify` and never raised."""

    def __init__(self, notify: Notify) -> None:
        self._list = KeptList(_NAMED, Graded, notify)

    def load(self) -> tuple[Graded, ...]:
        """The graded cases, newest first. A damaged file is set aside."""
        return self._list.load()

    def add(self, graded: Graded) -> None:
        """Keep a grade; one of the same case gives way to it."""
        self._list.add(graded, lambda one: one.case, MAX_GRADES_KEPT)
