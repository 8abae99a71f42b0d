"""Ranks compared by what they print: steps, the shapes of lines, and who differs from most."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable

from kb.expression import Expression
from kb.job.attempt import RankLog
from kb.log.mask import shape_of
from kb.numbers import read_int

_LAST_LINES = 3
"""Ordinary lines in which a rank tells what it did last."""
_STEP_LINES = 20
"""Last ordinary lines that are searched for the number of a step: not every line tells it."""
_STEP = Expression(
    r"\b(?:step|iter(?:ation)?|batch|epoch|it|round|global_step|idx)s?\W{0,3}(\d+)", re.I
)


def odd_ones(logs: Collection[RankLog]) -> list[RankLog]:
    """The minority, when ranks are compared by what they did last."""
    return _minority(logs, _last_shape) or _minority(logs, _last_step)


def strange_ones(logs: Collection[RankLog]) -> list[RankLog]:
    """Ranks with a line among their last that no rank printed before."""
    printed: Counter[str] = Counter()
    for log in logs:
        printed.update({shape_of(line.message) for line in log.ordinary[:-_LAST_LINES]})
    last = {
        log.rank: [shape_of(line.message) for line in log.ordinary[-_LAST_LINES:]] for log in logs
    }
    for shapes in last.values():
        printed.update(set(shapes))
    return [log for log in logs if any(printed[shape] == 1 for shape in last[log.rank])]


def step_of(text: str) -> int:
    """The number of the step that a line tells of; -1 where it tells none."""
    match = _STEP.search(text)
    number = read_int(match[1]) if match else None
    return -1 if number is None else number


def last_step(log: RankLog) -> int:
    """The furthest step among the last lines of a rank; -1 where they tell none."""
    return max((step_of(line.message) for line in log.ordinary[-_STEP_LINES:]), default=-1)


def _minority(logs: Iterable[RankLog], likeness: Callable[[RankLog], Hashable]) -> list[RankLog]:
    groups: dict[Hashable, list[RankLog]] = defaultdict(list)
    for log in logs:
        if log.last:
            groups[likeness(log)].append(log)
    sizes = sorted((len(group) for group in groups.values()), reverse=True)
    if len(sizes) < 2 or sizes[-1] == sizes[0]:
        return []
    return [log for group in groups.values() if len(group) < sizes[0] for log in group]


def _last_shape(log: RankLog) -> str:
    return shape_of(log.last.message) if log.last else ""


def _last_step(log: RankLog) -> int:
    return step_of(log.last.message) if log.last else -1
