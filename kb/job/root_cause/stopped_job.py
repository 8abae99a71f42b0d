"""A job that its scheduler ended for the sake of another one, or a cloud by taking a machine away:
no rank is at fault."""

from __future__ import annotations

import re

from kb.expression import Expression
from kb.job.attempt import Attempt
from kb.job.model import Culprit, Explanation, FaultRole, RootCause
from kb.rules.rows import FailureKind

_PREEMPTED = Expression(r"\bpreempt(?:ed|ion)?\b", re.IGNORECASE)
_TAKEN_AWAY = Expression(r"\bnotice\b", re.IGNORECASE)


def preempted(attempt: Attempt) -> RootCause | None:
    """Name the line in which a scheduler says that it preempts the job, or the ranks of the machine
    that is taken away."""
    for log in attempt.hosts.values():
        for line in log.failures:
            if line.role is not FaultRole.STOPPED:
                continue
            if _TAKEN_AWAY.search(line.text):
                own: list[int | None] = [
                    rank for rank, one in attempt.ranks.items() if one.host == log.host
                ]
                culprits = [Culprit(rank, log.host, line) for rank in own or [None]]
                return RootCause(FailureKind.SIGNAL, tuple(culprits), Explanation.TAKEN_AWAY)
            if _PREEMPTED.search(line.text):
                culprit = Culprit(None, None, line)
                return RootCause(FailureKind.SIGNAL, (culprit,), Explanation.PREEMPTED)
    return None
