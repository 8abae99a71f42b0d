"""What a line says about the rank at fault: the failures are rows of `kb/rules/failures.toml`."""

from __future__ import annotations

import re
from functools import cache

from kb.evidence.markers import Grade
from kb.job.lines import ATTACHED
from kb.job.model import FailurePattern, FaultRole
from kb.rules import read_rows
from kb.rules.rows import Failure, FailureKind

_NO_FAILURE = re.compile(
    r"(?!\s+what\(\):)(?:" + ATTACHED.pattern + r")|\S+:\d+: \w*Warning:"
    r"|.*\bexit(?:ed|ing)? (?:with )?(?:status|code)[: =]*0\b"
    r"|\(it may even hang or crash\)"  # Open MPI, of a process that lost a peer
)
"""Parts of stacks and other lines that only look like failures."""

_WARNS = re.compile(
    r"^.{0,60}?(?:\b(?:warn(?:ing)?|info|debug|notice)\b|(?:^|[|\[]) ?(?-i:[WID]) ?[|\]])",
    re.IGNORECASE,
)
_ANYTHING = re.compile("")
_EXCEPTION = FailurePattern(_ANYTHING, FailureKind.EXCEPTION, FaultRole.SELF_INFLICTED)
_COMPLAINT = FailurePattern(_ANYTHING, FailureKind.EXCEPTION, FaultRole.UNCLASSIFIED)


def is_warning(text: str) -> bool:
    """Whether a line has a level below that of an error."""
    return _WARNS.search(text) is not None


@cache
def _failures() -> tuple[FailurePattern, ...]:
    """Tried in this order; the first that fits gives kind and role."""
    return tuple(
        FailurePattern(
            re.compile(row.pattern, re.IGNORECASE),
            row.kind,
            FaultRole[re.sub(r"\W", "_", row.role.upper())],
        )
        for row in read_rows("failures", "failure", Failure)
    )


def classify(text: str, grade: Grade) -> FailurePattern | None:
    """What a line says about its rank, or None where it says nothing of the kind."""
    if grade is Grade.CONTEXT or _NO_FAILURE.match(text):
        return None
    pattern = next((pattern for pattern in _failures() if pattern.regex.search(text)), None)
    if pattern is not None and pattern.role is FaultRole.SELF_INFLICTED and is_warning(text):
        return _COMPLAINT
    if pattern is not None or grade in (Grade.HINT, Grade.FOLLOW_ON):
        return pattern
    return _EXCEPTION if grade is Grade.FATAL else _COMPLAINT
