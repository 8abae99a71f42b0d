"""The times that ranks print of their steps: who is slow, and in what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from statistics import median

from kb.checks.model import Found, Output, Reader

_COMPUTE = re.compile(r"^per-rank-timing rank (\d{1,6}) step (\d{1,9}): compute (\d[\d.]{0,15})$")
_STEP = re.compile(r"^step-time rank (\d{1,6}) step (\d{1,9}): (data \d.*)$")
_PART = re.compile(r"([a-z]+) (\d[\d.]{0,15})")

_LONGER = 1.2
"""Times the median of the step: the rank is late."""
_MOST = 0.6
"""Share of the steps at which the same rank is the slowest."""
_FEW_STEPS = 3
"""Steps that tell whether the delay wanders."""
_DATA_SHARE = 0.1
_COMM_SHARE = 0.5
_LITTLE = 0.2
"""Of what the others wait: the rank that hardly waits is the late one."""


def read_compute_times(output: Output) -> Iterator[Found]:
    """The slowest rank of each step."""
    steps: dict[str, dict[int, tuple[float, int]]] = {}
    for row, line in enumerate(output.lines):
        if match := _COMPUTE.match(line):
            steps.setdefault(match[2], {})[int(match[1])] = (_seconds(match[3]), row)
    slowest = []
    for ranks in steps.values():
        rank, (seconds, row) = max(ranks.items(), key=lambda pair: pair[1][0])
        others = [time for other, (time, _row) in ranks.items() if other != rank]
        if others and seconds > _LONGER * median(others):
            slowest.append((rank, seconds, median(others), row))
    if not slowest:
        yield from _even(steps)
        return
    rank, count = Counter(one[0] for one in slowest).most_common(1)[0]
    if count >= _MOST * len(steps):
        _rank, seconds, usual, row = next(one for one in slowest if one[0] == rank)
        text = (
            f"Rank {rank} is the slowest at {count} of {len(steps)} steps: {seconds:.3f} s, the"
            f" others {usual:.3f}."
        )
        yield Found("one-rank-long", text, row)
    elif len(slowest) >= max(_FEW_STEPS, _MOST * len(steps)):
        late = len({one[0] for one in slowest})
        text = f"The delay wanders: {late} ranks were the slowest in turn."
        yield Found("changes", text, slowest[0][3])


def _even(steps: dict[str, dict[int, tuple[float, int]]]) -> Iterator[Found]:
    compared = [ranks for ranks in steps.values() if len(ranks) > 1]
    if compared:
        times = [seconds for seconds, _row in compared[-1].values()]
        text = (
            f"No rank is late: {len(times)} ranks compute for {min(times):.3f} to"
            f" {max(times):.3f} s."
        )
        yield Found("even", text, min(row for _seconds, row in compared[-1].values()))


def read_step_times(output: Output) -> Iterator[Found]:
    """The part that a step goes into, and the rank that the others wait for."""
    steps: dict[str, dict[int, tuple[dict[str, float], int]]] = {}
    for row, line in enumerate(output.lines):
        if match := _STEP.match(line):
            parts = {name: _seconds(time) for name, time in _PART.findall(match[3])}
            steps.setdefault(match[2], {})[int(match[1])] = (parts, row)
    for step, ranks in steps.items():
        found = [*_waits_for_data(step, ranks), *_communication(step, ranks)]
        yield from found
        if found:
            return


_Ranks = dict[int, tuple[dict[str, float], int]]


def _waits_for_data(step: str, ranks: _Ranks) -> Iterator[Found]:
    for rank, (parts, row) in ranks.items():
        if parts.get("data", 0) > _DATA_SHARE * sum(parts.values()):
            whole = sum(parts.values())
            text = (
                f"Rank {rank} waits {parts['data']:.3f} of {whole:.3f} s for data at step {step}."
            )
            yield Found("data-slow", text, row)
            return


def _communication(step: str, ranks: _Ranks) -> Iterator[Found]:
    waits = {rank: parts.get("comm", 0.0) for rank, (parts, _row) in ranks.items()}
    long = [
        rank
        for rank, (parts, _row) in ranks.items()
        if waits[rank] > _COMM_SHARE * sum(parts.values())
    ]
    least = min(waits, key=lambda rank: waits[rank])
    if long and waits[least] < _LITTLE * max(waits.values()):
        text = (
            f"Rank {least} hardly waits at step {step} ({waits[least]:.3f} s), the others up to"
            f" {max(waits.values()):.3f} s: they wait for it."
        )
        yield Found("one-rank-late", text, ranks[least][1])
    elif len(long) == len(ranks):
        text = f"All ranks spend more than half of step {step} in communication."
        yield Found("communication-slow", text, ranks[long[0]][1])


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


READERS: dict[str, Reader] = {
    "per-rank-timing": read_compute_times,
    "step-time-breakdown": read_step_times,
}
"""By the id of the check."""
