"""A job that stopped itself because its steps took too long: the rank that all others waited for is
at fault, and not the one that kept the time."""

from __future__ import annotations

import re

from kb.expression import Expression
from kb.job.attempt import Attempt
from kb.job.model import Culprit, Explanation, FaultRole, RootCause
from kb.job.stragglers import find_straggler
from kb.rules.rows import FailureKind

_LIMIT = r"(?:(?:time|step|frame|latency) budget|budget|deadline|real[- ]?time)"
_TOO_SLOW = Expression(
    rf"\b{_LIMIT}\b.{{0,40}}\b(?:missed|exceeded|overrun|violated)\b"
    rf"|\b(?:missed|exceeded|overran|violated) .{{0,40}}\b{_LIMIT}\b"
    r"|\btoo slow\b|\bslower than (?:real[- ]?time|allowed)\b",
    re.IGNORECASE,
)


def slowed_down(attempt: Attempt) -> RootCause | None:
    """Name the rank that is slower than all others, where one complains of the time that steps
    take, and none failed by itself."""
    if any(log.role >= FaultRole.SELF_INFLICTED for log in attempt.logs):
        return None
    complaints = [log.failure for log in attempt.ranks.values() if log.failure]
    if not any(
        line.role is FaultRole.UNCLASSIFIED and _TOO_SLOW.search(line.message)
        for line in complaints
    ):
        return None
    slow = find_straggler(attempt)
    if slow is None:
        return None
    culprit = Culprit(slow.rank, attempt.ranks[slow.rank].host, slow.line)
    return RootCause(FailureKind.STRAGGLER, (culprit,), Explanation.STRAGGLER)
