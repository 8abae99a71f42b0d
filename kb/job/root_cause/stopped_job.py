"""A job that was ended from outside: by its scheduler for the sake of another one or because its
time was over, by a cloud that takes a machine away, by somebody at the keyboard. No rank is at
fault."""

from __future__ import annotations

import re

from kb.expression import Expression
from kb.job.attempt import Attempt
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.rules.rows import FailureKind

_PREEMPTED = Expression(r"\bpreempt(?:ed|ion)?\b", re.IGNORECASE)
_TAKEN_AWAY = Expression(r"\bnotice\b", re.IGNORECASE)
_INTERRUPTED = Expression(r"\bKeyboardInterrupt\b|\b2 death signal\b|\bgot signal: 2\b|\bSIGINT\b")


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


def stopped_from_outside(attempt: Attempt) -> RootCause | None:
    """Name the line that says that the time of the job was over, that somebody interrupted it, or
    else that a process was killed, where no rank is known to have hung before."""
    logs = (*attempt.hosts.values(), *attempt.ranks.values())
    stopped = [line for log in logs for line in log.failures if line.role is FaultRole.STOPPED]
    told = {explanation: line for line in reversed(stopped) if (explanation := _why(line))}
    for explanation in (Explanation.OUT_OF_TIME, Explanation.INTERRUPTED, Explanation.KILLED):
        if explanation in told:
            culprit = Culprit(None, None, told[explanation])
            return RootCause(FailureKind.SIGNAL, (culprit,), explanation)
    return None


def _why(line: LogLine) -> Explanation | None:
    if line.kind is FailureKind.HANG:
        return Explanation.OUT_OF_TIME
    if _INTERRUPTED.search(line.text):
        return Explanation.INTERRUPTED
    return Explanation.KILLED if "SIGKILL" in line.text else None
