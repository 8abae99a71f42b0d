"""What is kept of a log, and what a diagnosis works on."""

from __future__ import annotations

import msgspec

from index.documents import Pattern
from kb.evidence.facts import Facts
from kb.evidence.markers import Grade


class EvidenceLine(msgspec.Struct, frozen=True):
    """One line of the user's log, with how often it or its like was printed."""

    file: str | None
    number: int
    text: str
    """As printed, without what a terminal would interpret."""
    masked: str
    grade: Grade
    rank: int | None = None
    host: str | None = None
    count: int = 1
    stack: tuple[str, ...] = ()
    """For an exception: its innermost frames, innermost first."""


class SignatureHit(msgspec.Struct, frozen=True):
    """A pattern and the first line it was seen on."""

    pattern: Pattern
    line: EvidenceLine


class Raised(msgspec.Struct, frozen=True):
    """An exception that ended a process, or led to one that did."""

    line: EvidenceLine
    message: str
    """Its type and message, without prefixes; some lines at most."""
    patterns: frozenset[Pattern]
    """The declared patterns that match the message."""
    follows: bool
    """It was raised while the one before it was handled, or because of it."""


class Evidence(msgspec.Struct, frozen=True):
    """What a diagnosis works on."""

    lines: tuple[EvidenceLine, ...]
    """Most telling first."""
    hits: tuple[SignatureHit, ...]
    facts: Facts
    raised: tuple[Raised, ...]
    """The last exceptions of each process, in its order."""
    total_lines: int
    is_log: bool
    """Printed by programs, at least in most of its lines."""
    made_progress: bool
    """It shows steps, requests or an end, so what it was started for happens."""
    ended_well: bool
    """Its last lines say that the work is done, and nobody speaks in it who may know better."""
    in_doubt: bool
    """A line says in passing that something went wrong, though none is marked as a failure."""
    told: bool
    """Somebody may speak in it, rather than a program: suspected of more texts than
    `human_written`, because who tells of a problem is never told that all is well."""
    human_written: bool
    """A person speaks in it: whoever asks has a problem, even if no line shows one."""
    has_chinese: bool
    """A line of it has Chinese words, if only a few lines were given."""

    @property
    def states_failure(self) -> bool:
        """Whether a line of it is, or may be, about a failure."""
        return any(line.grade is not Grade.CONTEXT for line in self.lines)
