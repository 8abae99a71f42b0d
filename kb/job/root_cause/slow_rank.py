"""A job that stopped itself because its steps took too long: the rank that all others waited for is
at fault, and not the one that kept the time."""

from __future__ import annotations

import re
from itertools import dropwhile

from kb.expression import Expression
from kb.job.attempt import Attempt, RankLog
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.job.stragglers import find_straggler
from kb.rules.rows import FailureKind

_LIMIT = r"(?:(?:time|step|frame|latency) budget|budget|deadline|real[- ]?time)"
_TOO_SLOW = Expression(
    rf"\b{_LIMIT}\b.{{0,40}}\b(?:missed|exceeded|overrun|violated)\b"
    rf"|\b(?:missed|exceeded|overran|violated) .{{0,40}}\b{_LIMIT}\b"
    r"|\btoo slow\b|\bslower than (?:real[- ]?time|allowed)\b",
    re.IGNORECASE,
)
_SLOWEST = Expression(
    r"\b(?:slowest|straggl\w+|lagging|late)(?: is| was)?:? (?:rank|worker|process) #?(\d{1,6})\b"
    r"|\b(?:rank|worker|process) #?(\d{1,6}) (?:is|was|lags?|takes|took) (?:too )?"
    r"(?:slow\w*|late|lagging|behind|straggling|a straggler)\b",
    re.IGNORECASE,
)
_GIVES_UP = Expression(
    r"\b(?:limit|budget|deadline)\b.{0,40}\bexceeded\b|\btoo slow\b|\bgiving up\b", re.IGNORECASE
)
_TIMES = 2
"""How often it has to name the slow one: once is any step."""


def slowed_down(attempt: Attempt) -> RootCause | None:
    """Name the rank that is slower than all others, where one complains of the time that steps
    take, and none failed by itself; or the one that it names before it ends the job."""
    named = _named_slow(attempt)
    if named:
        return RootCause(FailureKind.STRAGGLER, (named,), Explanation.STRAGGLER)
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


def _named_slow(attempt: Attempt) -> Culprit | None:
    """The rank that another one calls the slowest again and again, and then gives up."""
    for log in attempt.ranks.values():
        found = ((line, _SLOWEST.search(line.message)) for line in log.lines)
        told = [(line, int(match[1] or match[2])) for line, match in found if match][-_TIMES:]
        if len(told) < _TIMES or not _gives_up(log, told[-1][0]):
            continue
        named = {rank for _line, rank in told}
        slow = attempt.ranks.get(named.pop()) if len(named) == 1 else None
        if slow and slow is not log:
            return Culprit(slow.rank, slow.host, told[-1][0])
    return None


def _gives_up(log: RankLog, told: LogLine) -> bool:
    """Whether a rank says behind a line that it goes on no longer."""
    behind = dropwhile(lambda line: line is not told, log.lines)
    return any(_GIVES_UP.search(line.message) for line in behind)
