"""A job that its scheduler ended for the sake of another one: no rank is at fault."""

from __future__ import annotations

import re

from kb.expression import Expression
from kb.job.attempt import Attempt
from kb.job.model import Culprit, Explanation, FaultRole, RootCause
from kb.rules.rows import FailureKind

_PREEMPTED = Expression(r"\bpreempt(?:ed|ion)?\b", re.IGNORECASE)


def preempted(attempt: Attempt) -> RootCause | None:
    """Name the line in which a scheduler says that it preempts the job."""
    for log in attempt.hosts.values():
        for line in log.failures:
            if line.role is FaultRole.STOPPED and _PREEMPTED.search(line.text):
                culprit = Culprit(None, None, line)
                return RootCause(FailureKind.SIGNAL, (culprit,), Explanation.PREEMPTED)
    return None
