"""Whether a clause says that something is so: here and now, or not at all, or only perhaps.

After ConText (Harkema et al., *ConText: an algorithm for determining negation, experiencer and
temporal status from clinical reports*, 2009): triggers decide, not likeness. They are rows of
`kb/rules/scope.toml`, in English and Chinese; phrases that only look like one are rows as well.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache

import msgspec

from kb.rules import any_of, read_rows
from kb.rules.rows import Rule, Trigger


class Scope(StrEnum):
    """What a clause says about what it names."""

    AFFIRMED = "affirmed"
    NEGATED = "negated"
    HYPOTHETICAL = "hypothetical"
    """Asked, supposed or feared."""
    PAST = "past"
    """So once, not in this incident."""
    ELSEWHERE = "elsewhere"
    """So on another machine, cluster or job, or with somebody else."""


class Clause(msgspec.Struct, frozen=True):
    """A part of a sentence, and its scope."""

    scope: Scope
    text: str


_CLAUSES = re.compile(
    r"(?<!\s)\s*[;；,，。！\n]\s*|(?<=[.!?？])\s+|(?<!\s)\s+(?:but|although|though|whereas)\s+|但是?|不过"
)
_WORD = re.compile(r"\w")
_ORDER = (Scope.HYPOTHETICAL, Scope.ELSEWHERE, Scope.PAST, Scope.NEGATED)
"""The first that has a trigger counts: `it was not so last week` says nothing of now."""


def clauses_of(text: str) -> tuple[Clause, ...]:
    """The clauses of a text in their order, each with its scope."""
    parts = (part.strip() for part in _CLAUSES.split(text))
    return tuple(Clause(scope_of(part), part) for part in parts if _WORD.search(part))


def scope_of(clause: str) -> Scope:
    """The scope of one clause."""
    told = _lookalikes().sub(" ", clause)
    return next((scope for scope in _ORDER if _triggers()[scope].search(told)), Scope.AFFIRMED)


@cache
def _triggers() -> dict[Scope, re.Pattern[str]]:
    rows = read_rows("scope", "trigger", Trigger)
    return {
        scope: any_of((row.pattern for row in rows if row.scope == scope), re.IGNORECASE)
        for scope in _ORDER
    }


@cache
def _lookalikes() -> re.Pattern[str]:
    """Phrases with the words of a trigger that are none."""
    return any_of((row.pattern for row in read_rows("scope", "lookalike", Rule)), re.IGNORECASE)
