"""Who is slow: ranks of a healthy job compared by the times they print at every step.

The slow rank computes long and waits little; all others wait for it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

import msgspec

from kb.job.cast import Cast, Voice
from kb.job.remark import Remark

_FIELD = re.compile(
    r"(?P<name>[A-Za-z][\w/.-]*?)[\"']?\s{0,3}[=:]?\s{0,8}"
    r"(?P<value>\d+(?:\.\d+)?)\s?(?P<unit>ms|us|s|sec)?\b"
)
_TIME = re.compile(
    r"time|(?:^|_)(?:ms|sec|secs|dt|t)$|fwd|bwd|forward|backward|compute|load|data|step_?s|elapsed|dur",
    re.I,
)
_WAIT = re.compile(r"comm|wait|sync|reduce|gather|barrier|nccl|idle|mpi", re.IGNORECASE)
_TOTAL = re.compile(
    r"total|/step|/iter|per_step|step_?time|iter_?time|interval|wall|eta", re.IGNORECASE
)

_PARTS = (2, 4, 8)
"""The last half of the run, or less."""
_LEAST_SAMPLES = 5
_SLOWER = 1.8
_LESS_WAIT = 0.7
_HARDLY = 0.4
"""Of what any other rank waits."""
_NOTHING = 0.01
"""Of the longest time printed; less counts as this much."""
_LEAST_PART = 0.2
"""What is slow must make up this part of the longest time printed."""


_Samples = dict[str, list[tuple[float, Remark]]]


class Straggler(msgspec.Struct, frozen=True):
    """A rank that the others wait for."""

    rank: int
    field: str
    """What takes it longer."""
    ratio: float
    """How many times longer than the others."""
    remark: Remark
    """A typical line of it."""


def find_straggler(cast: Cast) -> Straggler | None:
    """The rank that is slower than all others, where step times tell; perhaps only of late."""
    for part in _PARTS:
        found = _slowest(cast, part)
        if found:
            return found
    return None


def _slowest(cast: Cast, part: int) -> Straggler | None:
    samples = {rank: _samples(voice, part) for rank, voice in cast.ranks.items()}
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
    if not _WAIT.search(name) or len(others) < 2 or least > _HARDLY * min(others):
        return None
    values = sorted(samples[rank][name], key=lambda pair: pair[0])
    ratio = median(others) / max(least, _NOTHING * median(others))
    return Straggler(rank, "anything but waiting", ratio, values[len(values) // 2][1])


def _samples(voice: Voice, part: int) -> _Samples:
    """By field: its values in the last part of the run, without the first, which warms up."""
    fields: dict[str, list[tuple[float, Remark]]] = defaultdict(list)
    for remark in voice.ordinary:
        for name, value in _fields(remark.spoken):
            fields[name].append((value, remark))
    halves = {name: values[1:][-(len(values) // part) :] for name, values in fields.items()}
    return {name: values for name, values in halves.items() if len(values) >= _LEAST_SAMPLES}


def _fields(text: str) -> Iterator[tuple[str, float]]:
    for match in _FIELD.finditer(text):
        unit = match["unit"]
        scale = {"s": 1000.0, "sec": 1000.0, "us": 0.001}.get(unit or "", 1.0)
        yield match["name"] + (" ms" if unit else ""), float(match["value"]) * scale


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
    usual = max(median(others), _NOTHING * longest)
    if usual <= 0 or slowest < _SLOWER * max(usual, 0.9 * max(others)):
        return None
    waits_less = any(
        _WAIT.search(other) and values[rank] <= _LESS_WAIT * median(_others(values, rank))
        for other, values in medians.items()
    )
    is_time = name.endswith(" ms") or _TIME.search(name)
    if not (waits_less or is_time) or slowest - usual < _LEAST_PART * longest:
        return None
    values = sorted(samples[rank][name], key=lambda pair: pair[0])
    return Straggler(rank, name.removesuffix(" ms"), slowest / usual, values[len(values) // 2][1])


def _others(values: Mapping[int, float], rank: int) -> list[float]:
    return [value for other, value in values.items() if other != rank]
