"""What is told about a job."""

from __future__ import annotations

import msgspec

from kb.job.kinds import Kind


class Saying(msgspec.Struct, frozen=True):
    """A line that somebody said; each part is None where the logs do not tell."""

    rank: int | None
    """Global."""
    host: str | None
    file: str | None
    line: int | None
    time: str | None
    """As printed."""
    text: str | None


class Cascade(msgspec.Struct, frozen=True):
    """The ranks that fell over because others had."""

    count: int
    text: str


class Group(msgspec.Struct, frozen=True):
    """Ranks that ended with the same words."""

    ranks: tuple[int, ...]
    text: str


class Job(msgspec.Struct, frozen=True):
    """Who failed first, and what the others did."""

    failed: bool
    kind: Kind | None
    world_size: int | None
    culprits: tuple[Saying, ...] = ()
    """The first failures, most certain first; of a job that is only slow, the stragglers."""
    cascade: Cascade | None = None
    others: tuple[Group, ...] = ()
    timeline: tuple[Saying, ...] = ()
    earlier: tuple[Saying, ...] = ()
    """What failed in each attempt before the last."""
    finding: str | None = None
    """What happened, in the words of the field."""
