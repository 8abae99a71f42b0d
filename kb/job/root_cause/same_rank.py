"""Processes that were started as the same rank, while another rank is missing."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from kb.expression import Expression
from kb.job.attempt import Attempt
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.log.mask import shape_of
from kb.numbers import read_int
from kb.rules.rows import FailureKind

_STATED = Expression(
    r"\bRANK\W{1,3}(?P<rank>\d{1,6})\b.{0,80}?\bWORLD_SIZE\W{1,3}(?P<world>\d{1,6})\b", re.I
)
"""What a process says about itself. `LOCAL_RANK` is another word."""
_FIELD = Expression(r"(?<![\w.-])(?P<name>[A-Za-z_]\w*)[=:] ?(?P<value>\d{1,6})(?![\w.])")
_FIRST_LINES = 40
"""Of a rank, in which it says who it is."""
_MIN_RANKS = 3
"""Of two, nothing tells which one is odd."""


def started_twice(attempt: Attempt) -> RootCause | None:
    """Name a rank that two processes claim, where ranks waited for one that none claims.

    All of them state their rank equally often, so that a rank which is stated more often was not
    just started again.
    """
    if not any(log.role in (FaultRole.TIMED_OUT, FaultRole.LOST_PEER) for log in attempt.logs):
        return None
    return _stated_twice(attempt) or _named_after_another(attempt)


def _stated_twice(attempt: Attempt) -> RootCause | None:
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


def _named_after_another(attempt: Attempt) -> RootCause | None:
    """The one rank that gives itself the number of another, where a line of all ranks has their own
    number in one place: `cell=4` in the pod 4, `cell=1` in the pods 1 and 2."""
    numbers: dict[tuple[str, str], dict[int, tuple[int, LogLine]]] = defaultdict(dict)
    for rank, log in attempt.ranks.items():
        for line in log.ordinary[:_FIRST_LINES]:
            for field in _FIELD.finditer(line.message):
                key = shape_of(line.message), field["name"]
                numbers[key].setdefault(rank, (int(field["value"]), line))
    for stated in numbers.values():
        odd = [rank for rank, (number, _line) in stated.items() if number != rank]
        if len(stated) == len(attempt.ranks) >= _MIN_RANKS and len(odd) == 1:
            number, line = stated[odd[0]]
            if number in stated:
                culprit = Culprit(odd[0], line.host, line)
                return RootCause(FailureKind.RENDEZVOUS, (culprit,), Explanation.SAME_RANK)
    return None


def _stated(line: LogLine) -> tuple[int, int, LogLine] | None:
    match = _STATED.search(line.message)
    rank, world = (read_int(match["rank"]), read_int(match["world"])) if match else (None, None)
    return None if rank is None or not world else (rank, world, line)
