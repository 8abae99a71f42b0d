"""The rank to which a failure belongs, where its line does not name one."""

from __future__ import annotations

from kb.job.attempt import Attempt, RankLog
from kb.job.model import Culprit, FaultRole, LogLine
from kb.job.root_cause.comparison import strange_ones


def culprit_of(attempt: Attempt, log: RankLog) -> Culprit:
    """The culprit to which the failure in a log belongs. A failure without a rank is that of the
    one rank that the launcher saw failing there, or else of the only one on that host."""
    rank = log.rank
    if rank is None and log.failure:
        failed = _failed_ranks(attempt, log.host)
        rank = failed.pop() if len(failed) == 1 else _likely_rank(attempt, log.failure)
        rank = _only_rank_on(attempt, log.host) if rank is None else rank
    return Culprit(rank, log.host or attempt.reported_host(rank), log.failure)


def explains_itself(log: RankLog | None) -> bool:
    """Whether a rank prints why it failed: by itself, or because of others."""
    return log is not None and log.role >= FaultRole.LOST_PEER


def silent_ranks(attempt: Attempt) -> list[RankLog]:
    """The ranks that do not complain, but for having been told to stop."""
    return [log for log in attempt.ranks.values() if log.role <= FaultRole.STOPPED]


def only_silent_rank(attempt: Attempt) -> RankLog | None:
    """The one rank that does not complain, where all others lost a peer or waited in vain."""
    silent = silent_ranks(attempt)
    others = len(attempt.ranks) - len(silent)
    return silent[0] if len(silent) == 1 and others > 1 and not silent[0].is_done else None


def _failed_ranks(attempt: Attempt, host: str | None) -> set[int]:
    """Ranks of a host that a launcher reports as failed, and that do not explain it themselves."""
    return {
        one.rank
        for one in attempt.exits
        if one.rank is not None
        and not one.was_stopped
        and (host is None or host in one.hosts)
        and not explains_itself(attempt.ranks.get(one.rank))
    }


def _only_rank_on(attempt: Attempt, host: str | None) -> int | None:
    """The rank of a host on which no other runs."""
    ranks = [rank for rank, log in attempt.ranks.items() if host and log.host == host]
    return ranks[0] if len(ranks) == 1 else None


def _likely_rank(attempt: Attempt, failure: LogLine) -> int | None:
    """The rank that printed before a failure and never again, or else the one rank of that host
    that ended with lines of its own. One whose work was done is none: its driver failed."""
    silenced = (
        attempt.ranks.get(failure.silenced_rank) if failure.silenced_rank is not None else None
    )
    if silenced is not None and silenced.last_file == failure.file and not silenced.is_done:
        return failure.silenced_rank
    strange = strange_ones(
        [
            log
            for log in attempt.ranks.values()
            if failure.host in (None, log.host) and not log.is_done
        ]
    )
    return strange[0].rank if len(strange) == 1 else None
