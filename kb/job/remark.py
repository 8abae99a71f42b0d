"""A line of a job with all that is known about it."""

from __future__ import annotations

import msgspec

from kb.evidence.markers import Grade
from kb.job.kinds import Kind, Row, Standing


class Remark(msgspec.Struct, frozen=True, gc=False):
    """A line with who said it and when."""

    file: str | None
    number: int
    text: str
    spoken: str
    """The text without the prefixes that tell who speaks."""
    grade: Grade
    rank: int | None
    host: str | None
    attempt: int
    at: float | None
    """Seconds since 1970 by the clock of its host; of a line without a time, those of the line
    before it."""
    time: str | None
    """As printed."""
    stamped: bool
    """The line has a time of its own."""
    near: int | None
    """Of a line that names nobody, the rank that spoke before it, if that never spoke again."""
    uncaught: bool
    """Torch marks it as a part of the stack of an exception that nobody caught."""
    row: Row | None

    @property
    def standing(self) -> Standing:
        """What the line says about its rank."""
        return self.row.standing if self.row else Standing.NONE

    @property
    def kind(self) -> Kind | None:
        """The kind of failure that it tells of."""
        return self.row.kind if self.row else None
