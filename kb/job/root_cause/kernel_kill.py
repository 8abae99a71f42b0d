"""A process that the kernel killed: its log tells which one first, launchers tell whose it was."""

from __future__ import annotations

from signal import SIGKILL

from kb.job.attempt import Attempt
from kb.job.exits import Exit
from kb.job.model import Culprit, Explanation, RootCause
from kb.job.root_cause.blame import only_silent_rank
from kb.rules.rows import FailureKind


def killed_by_kernel(attempt: Attempt) -> RootCause | None:
    """Name the first process that the kernel killed, if a rank is known to have died so."""
    for killed in attempt.exits:
        if not killed.by_kernel:
            continue
        rank = _rank_of(killed, attempt)
        if rank is not None or any(_was_killed(one) for one in attempt.exits):
            return _root_cause(killed, rank, attempt)
    return None


def _rank_of(killed: Exit, attempt: Attempt) -> int | None:
    """The rank of the process, or else the first rank that a launcher reports as killed, or the
    one that all others lost."""
    if killed.rank is not None:
        return killed.rank
    reported = (one.rank for one in attempt.exits if one.signal == SIGKILL)
    silent = only_silent_rank(attempt)
    return next((rank for rank in reported if rank is not None), silent.rank if silent else None)


def _was_killed(one: Exit) -> bool:
    return one.signal == SIGKILL and not one.by_kernel


def _root_cause(killed: Exit, rank: int | None, attempt: Attempt) -> RootCause:
    log = attempt.ranks.get(rank) if rank is not None else None
    host = killed.host or attempt.reported_host(rank) or (log.host if log else None)
    culprit = Culprit(rank, host, killed.line)
    if killed.signal == SIGKILL:
        return RootCause(FailureKind.MEMORY, (culprit,), Explanation.MEMORY)
    return RootCause(FailureKind.SIGNAL, (culprit,), Explanation.CRASH)
