"""A node that the others waited for at the start: it could not connect, or left no log."""

from __future__ import annotations

import re

from kb.expression import Expression
from kb.job.attempt import Attempt
from kb.job.hostlists import missing_hosts
from kb.job.model import Culprit, Explanation, FaultRole, RootCause
from kb.job.root_cause.comparison import last_step
from kb.rules.rows import FailureKind

_CANNOT_CONNECT = Expression(r"\btry(?:ing)? to connect\b|\bfailed to connect\b", re.IGNORECASE)


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
    culprits = [Culprit(None, host, waiting[0]) for host in _missing_hosts(attempt)]
    if not culprits:
        return None
    return RootCause(FailureKind.RENDEZVOUS, tuple(culprits), Explanation.NEVER_JOINED)


def _missing_hosts(attempt: Attempt) -> list[str]:
    present = {log.host for log in attempt.logs if log.host}
    return missing_hosts(present, (line.text for log in attempt.logs for line in log.lines))
