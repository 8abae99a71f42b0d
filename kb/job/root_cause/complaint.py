"""Ranks that complain to their end in words that no pattern knows, and no rank tells more."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kb.job.attempt import Attempt, RankLog, retries
from kb.job.failures import is_warning
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.log.mask import shape_of
from kb.rules.rows import FailureKind

_MIN_RANKS = 3
"""Of two complaints nothing tells which one is the odd one."""


def complained_alone(attempt: Attempt) -> RootCause | None:
    """Name the few ranks that end with a complaint, where no other rank has one: what they say is
    all that is told."""
    complaining = [log for log in attempt.ranks.values() if log.failures]
    if not complaining or 2 * len(complaining) >= len(attempt.ranks):
        return None
    if any(_tells_more(log) for log in complaining):
        return None
    return _blamed(complaining, Explanation.EXCEPTION)


def complained_first(attempt: Attempt) -> RootCause | None:
    """Where all ranks end with an error and none says that it is done or tries again, name the
    first one if the others all say something else, or all ranks if all say the same."""
    logs = list(attempt.ranks.values())
    if len(logs) < _MIN_RANKS or any(_tells_more(log) or _may_go_on(log) for log in logs):
        return None
    if len({_words(log) for log in logs}) == 1:
        return _blamed(logs, Explanation.EVERYWHERE)
    first = _earliest([log.failure for log in logs if log.failure])
    own = [log for log in logs if log.failure is first]
    if not own or any(_words(log) == _words(own[0]) for log in logs if log is not own[0]):
        return None
    return _blamed(own, Explanation.EXCEPTION)


def _tells_more(log: RankLog) -> bool:
    """Whether a rank does not end with such a complaint."""
    return log.role is not FaultRole.UNCLASSIFIED or log.closes_in_order


def _may_go_on(log: RankLog) -> bool:
    """Whether a rank is done, only warns, or tries again."""
    text = log.failure.message if log.failure else ""
    return log.is_done or is_warning(text) or retries(text)


def _words(log: RankLog) -> str:
    return shape_of(log.failure.message) if log.failure else ""


def _earliest(lines: Sequence[LogLine]) -> LogLine | None:
    """The one that was printed before all others; None where their times do not tell."""
    times = sorted((line.epoch_seconds or 0.0, index) for index, line in enumerate(lines))
    if times[0][0] == 0.0 or times[0][0] == times[1][0]:
        return None
    return lines[times[0][1]]


def _blamed(logs: Collection[RankLog], explanation: Explanation) -> RootCause:
    culprits = tuple(Culprit(log.rank, log.host, log.failure) for log in logs)
    return RootCause(FailureKind.EXCEPTION, culprits, explanation)
