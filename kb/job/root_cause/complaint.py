"""Ranks that complain to their end in words that no pattern knows, while all others just stop."""

from __future__ import annotations

from kb.job.attempt import Attempt
from kb.job.model import Culprit, Explanation, FaultRole, RootCause
from kb.rules.rows import FailureKind


def complained_alone(attempt: Attempt) -> RootCause | None:
    """Name the few ranks that end with a complaint, where no other rank has one: what they say is
    all that is told."""
    complaining = [log for log in attempt.ranks.values() if log.failures]
    if not complaining or 2 * len(complaining) >= len(attempt.ranks):
        return None
    if any(log.role is not FaultRole.UNCLASSIFIED or log.closes_in_order for log in complaining):
        return None
    culprits = tuple(Culprit(log.rank, log.host, log.failure) for log in complaining)
    return RootCause(FailureKind.EXCEPTION, culprits, Explanation.EXCEPTION)
