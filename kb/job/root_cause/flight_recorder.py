"""Ranks whose recorded collectives are not those of the others."""

from __future__ import annotations

from kb.job.attempt import Attempt
from kb.job.model import Culprit, Explanation, RootCause
from kb.rules.rows import FailureKind


def recorded_differently(attempt: Attempt) -> RootCause | None:
    """Name the ranks whose dumps of the flight recorder differ from those of the others."""
    if attempt.recorded is None:
        return None
    culprits = []
    for rank, recorded in attempt.recorded.culprits.items():
        log = attempt.ranks.get(rank)
        line = (log.failure or log.last) if log else None
        host = log.host if log else attempt.reported_host(rank)
        culprits.append(Culprit(rank, host, line, recorded))
    if attempt.recorded.mismatched:
        return RootCause(FailureKind.DESYNC, tuple(culprits), Explanation.DESYNC)
    return RootCause(FailureKind.HANG, tuple(culprits), Explanation.HANG)
