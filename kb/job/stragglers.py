"""Slow ranks of a healthy job, compared by the times they print at every step.

The slow rank computes long and waits little; all others wait for it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

import msgspec

from kb.expression import Expression
from kb.job.attempt import Attempt, RankLog
from kb.job.model import LogLine
from kb.numbers import MAX_INT

_FIELD = Expression(
    r"(?P<name>[A-Za-z][\w/.-]*?)[\"']?\s{0,3}[=:]?\s{0,8}"
    r"(?P<value>\d+(?:\.\d+)?)\s?(?P<unit>ms|us|s|sec)?\b"
)
_TIME = Expression(
    r"time|(?:^|_)(?:ms|sec|secs|dt|t)$|fwd|bwd|forward|backward|compute|load|data|step_?s|elapsed|dur",
    re.I,
)
_WAIT = Expression(r"comm|wait|sync|reduce|gather|barrier|nccl|idle|mpi", re.IGNORECASE)
_TOTAL = Expression(
    r"total|/step|/iter|per_step|step_?time|iter_?time|interval|wall|eta", re.IGNORECASE
)

_RUN_DIVISORS = (2, 4, 8)
"""The last half of the run is compared, then a quarter, an eighth: a rank may be slow only of
late."""
_MIN_SAMPLES = 5
"""Values of a field that make a median; fewer are noise."""
_SLOW_RATIO = 1.8
"""How many times as long as the median of the others a straggler takes: above the usual spread of
ranks that read or compute unevenly."""
_SPREAD_RATIO = 0.9
"""Of the slowest of the others: the straggler is also `_SLOW_RATIO` times slower than this."""
_WAITS_LESS_RATIO = 0.7
"""Of the median wait of the others: a rank that waits at most this long is waited for."""
_HARDLY_WAITS_RATIO = 0.4
"""The same, of the least wait of any other, where nothing but waiting is printed."""
_ZERO_RATIO = 0.01
"""Of the longest time printed: a shorter time counts as this long, so that no ratio is endless."""
_MIN_SHARE_OF_STEP = 0.2
"""Of the longest time printed: a slowness that makes up less delays nobody."""
_UNIT_MILLISECONDS = {"s": 1000.0, "sec": 1000.0, "ms": 1.0, "us": 0.001}


_Samples = dict[str, list[tuple[float, LogLine]]]


class Straggler(msgspec.Struct, frozen=True):
    """A rank that the others wait for."""

    rank: int
    field: str
    """What takes it longer."""
    ratio: float
    """How many times as long as the others."""
    line: LogLine
    """One with the median value."""


def find_straggler(attempt: Attempt) -> Straggler | None:
    """The rank that is slower than all others, where step times tell; perhaps only of late."""
    for divisor in _RUN_DIVISORS:
        found = _slowest(attempt, divisor)
        if found:
            return found
    return None


def _slowest(attempt: Attempt, divisor: int) -> Straggler | None:
    samples = {rank: _samples(log, divisor) for rank, log in attempt.ranks.items()}
    samples = {rank: fields for rank, fields in samples.items() if fields}
    if len(samples) < 2:
        return None
    names = set.intersection(*(set(fields) for fields in samples.values()))
    medians = {
        name: {rank: median(v for v, _ in fields[name]) for rank, fields in samples.items()}
        for name in names
    }
    found = [one for name in sorted(names) if (one := _slow(name, medians, samples))]
    found = found or [one for n in sorted(names) if (one := _never_waits(n, medians[n], samples))]
    return max(found, key=lambda one: one.ratio, default=None)


def _never_waits(
    name: str, medians: Mapping[int, float], samples: Mapping[int, _Samples]
) -> Straggler | None:
    """Where only waiting is printed: the rank that hardly waits, while all others do."""
    rank, least = min(medians.items(), key=lambda pair: pair[1])
    others = _others(medians, rank)
    if not _WAIT.search(name) or len(others) < 2 or least > _HARDLY_WAITS_RATIO * min(others):
        return None
    values = sorted(samples[rank][name], key=lambda pair: pair[0])
    ratio = median(others) / max(least, _ZERO_RATIO * median(others))
    return Straggler(rank, "anything but waiting", ratio, values[len(values) // 2][1])


def _samples(log: RankLog, divisor: int) -> _Samples:
    """By field: its values in the last part of the run, without the first, which warms up."""
    fields: dict[str, list[tuple[float, LogLine]]] = defaultdict(list)
    for line in log.ordinary:
        for name, value in _fields(line.message):
            fields[name].append((value, line))
    halves = {name: values[1:][-(len(values) // divisor) :] for name, values in fields.items()}
    return {name: values for name, values in halves.items() if len(values) >= _MIN_SAMPLES}


def _fields(text: str) -> Iterator[tuple[str, float]]:
    for match in _FIELD.finditer(text):
        unit = match["unit"]
        scale = _UNIT_MILLISECONDS.get(unit or "", 1.0)
        value = float(match["value"])
        if value <= MAX_INT:
            yield match["name"] + (" ms" if unit else ""), value * scale


def _slow(
    name: str,
    medians: Mapping[str, Mapping[int, float]],
    samples: Mapping[int, _Samples],
) -> Straggler | None:
    if _WAIT.search(name) or _TOTAL.search(name):
        return None
    longest = max(
        median(values.values())
        for other, values in medians.items()
        if other == name or _TOTAL.search(other) or _WAIT.search(other) or other.endswith(" ms")
    )
    rank, slowest = max(medians[name].items(), key=lambda pair: pair[1])
    others = _others(medians[name], rank)
    usual = max(median(others), _ZERO_RATIO * longest)
    if usual <= 0 or slowest < _SLOW_RATIO * max(usual, _SPREAD_RATIO * max(others)):
        return None
    waits_less = any(
        _WAIT.search(other) and values[rank] <= _WAITS_LESS_RATIO * median(_others(values, rank))
        for other, values in medians.items()
    )
    is_time = name.endswith(" ms") or _TIME.search(name)
    if not (waits_less or is_time) or slowest - usual < _MIN_SHARE_OF_STEP * longest:
        return None
    values = sorted(samples[rank][name], key=lambda pair: pair[0])
    return Straggler(rank, name.removesuffix(" ms"), slowest / usual, values[len(values) // 2][1])


def _others(values: Mapping[int, float], rank: int) -> list[float]:
    return [value for other, value in values.items() if other != rank]
