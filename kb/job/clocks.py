"""Clocks of hosts differ, by seconds or, where time zones differ, by hours.

Ranks work in step, so lines about the same step were said at about the same time: their difference
is that of the clocks.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from kb.job.absent import step_of
from kb.job.cast import Cast
from kb.log.mask import mask

_TOLERATED = 1.0
"""Seconds; less is within what steps themselves differ by."""
_LEAST_SHARED = 3


def clock_offsets(cast: Cast) -> dict[str | None, float]:
    """Seconds to take off the times of each host to compare them with those of the first."""
    if len({voice.host for voice in cast.ranks.values()}) < 2:
        return {}
    steps: dict[str | None, dict[tuple[str, int], float]] = defaultdict(dict)
    for voice in cast.ranks.values():
        for remark in voice.ordinary:
            step = step_of(remark.spoken)
            if remark.stamped and remark.at is not None and step >= 0:
                steps[voice.host].setdefault((mask(remark.spoken), step), remark.at)
    reference = next(iter(steps.values()), {})
    offsets = {}
    for host, times in steps.items():
        shared = [times[key] - reference[key] for key in times.keys() & reference.keys()]
        if len(shared) >= _LEAST_SHARED and abs(median(shared)) > _TOLERATED:
            offsets[host] = median(shared)
    return offsets
