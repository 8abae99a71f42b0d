"""A node that the others waited for at the start: it could not connect, or left no log."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kb.expression import Expression
from kb.job.attempt import Attempt
from kb.job.hostlists import missing_hosts
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.job.root_cause.blame import silent_ranks
from kb.job.root_cause.comparison import last_step
from kb.rules.rows import FailureKind

_CANNOT_CONNECT = Expression(
    r"\btry(?:ing)? to connect\b|\bfailed to connect\b|\b(?:giv(?:es|ing)|gave) up\b", re.IGNORECASE
)

_JOINED = Expression(
    r"\b(?P<some>\d{1,6})/(?P<all>\d{1,6}) (?:clients|ranks|workers|nodes|processes|hosts)"
    r" (?:have )?joined\b"
)
"""What the store of torch counts when it gives up."""


def never_joined(attempt: Attempt) -> RootCause | None:
    """Name the nodes that did not join the rendezvous, where no rank has made a step."""
    waiting = [
        log.failure
        for log in attempt.logs
        if log.failure
        and log.role is FaultRole.TIMED_OUT
        and log.failure.kind is FailureKind.RENDEZVOUS
    ]
    if not waiting or any(last_step(log) >= 0 for log in attempt.ranks.values()):
        return None
    strangers = [line for line in waiting if _CANNOT_CONNECT.search(line.text)]
    if strangers and 2 * len(strangers) < len(waiting):
        culprits = [Culprit(line.rank, line.host, line) for line in strangers]
        return RootCause(FailureKind.RENDEZVOUS, tuple(culprits), Explanation.STRANGER)
    culprits = _not_joined(attempt, waiting) or [
        Culprit(None, host, waiting[0]) for host in _missing_hosts(attempt)
    ]
    if not culprits:
        return None
    return RootCause(FailureKind.RENDEZVOUS, tuple(culprits), Explanation.NEVER_JOINED)


def _not_joined(attempt: Attempt, waiting: Iterable[LogLine]) -> list[Culprit]:
    """The ranks that complain of nothing, where so many are missing as whoever waits counts."""
    counts = (_JOINED.search(line.text) for line in waiting)
    missing = {int(found["all"]) - int(found["some"]) for found in counts if found}
    silent = silent_ranks(attempt)
    if missing != {len(silent)}:
        return []
    return [Culprit(log.rank, log.host, log.last) for log in silent]


def _missing_hosts(attempt: Attempt) -> list[str]:
    present = {log.host for log in attempt.logs if log.host}
    return missing_hosts(present, (line.text for log in attempt.logs for line in log.lines))
