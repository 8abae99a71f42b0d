"""Processes that were started as the same rank, while another rank is missing."""

from __future__ import annotations

import re
from collections import Counter

from kb.expression import Expression
from kb.job.attempt import Attempt
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.numbers import read_int
from kb.rules.rows import FailureKind

_STATED = Expression(
    r"\bRANK\W{1,3}(?P<rank>\d{1,6})\b.{0,80}?\bWORLD_SIZE\W{1,3}(?P<world>\d{1,6})\b", re.I
)
"""What a process says about itself. `LOCAL_RANK` is another word."""


def started_twice(attempt: Attempt) -> RootCause | None:
    """Name a rank that two processes claim, where ranks waited for one that none claims.

    All of them state their rank equally often, so that a rank which is stated more often was not
    just started again.
    """
    if not any(log.role in (FaultRole.TIMED_OUT, FaultRole.LOST_PEER) for log in attempt.logs):
        return None
    stated = [pair for log in attempt.logs for line in log.lines if (pair := _stated(line))]
    worlds = {world for _rank, world, _line in stated}
    if len(worlds) != 1:
        return None
    (world,) = worlds
    counts = Counter(rank for rank, _world, _line in stated)
    usual, rest = divmod(len(stated), world)
    twice = {rank for rank, count in counts.items() if count >= 2 * usual}
    if not usual or rest or not twice or not set(range(world)) - counts.keys():
        return None
    culprits = (Culprit(rank, line.host, line) for rank, _world, line in stated if rank in twice)
    return RootCause(FailureKind.RENDEZVOUS, tuple(culprits), Explanation.SAME_RANK)


def _stated(line: LogLine) -> tuple[int, int, LogLine] | None:
    match = _STATED.search(line.message)
    rank, world = (read_int(match["rank"]), read_int(match["world"])) if match else (None, None)
    return None if rank is None or not world else (rank, world, line)
