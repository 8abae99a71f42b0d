"""When units failed: the time of their main line, otherwise the file's modification time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from index.progress import Notify, silent_notify
from kb.classify.result import Result
from kb.containment import surviving
from kb.log.timestamps import is_dated, read_stamp
from kb.verdict import Verdict

_MAX_SLOTS = 60
"""Bars of a timeline; more would be too thin to see on a page."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400  # in seconds
_SECONDS_OR_MINUTES = (1, 5, 15, 30)
_STEPS_SECONDS = (
    *_SECONDS_OR_MINUTES,
    *(_MINUTE * count for count in _SECONDS_OR_MINUTES),
    *(_HOUR * count for count in (1, 2, 6, 12)),
    *(_DAY * count for count in (1, 7, 28, 364)),
)
"""Possible lengths of a slot."""


class Slot(msgspec.Struct, frozen=True):
    """The failures of a span of time."""

    start: datetime
    counts: Counter[Verdict]


class Timeline(msgspec.Struct, frozen=True):
    """Slots of one length without gaps, from the first failure to the last."""

    step: timedelta
    slots: tuple[Slot, ...]
    from_files: int
    """Number of units dated by the modification time of their file."""


def find_timeline(results: Iterable[Result], notify: Notify = silent_notify) -> Timeline | None:
    """Count failures by time; None where no time is known. A unit whose time cannot be read is told
    and left out."""
    failed = [result for result in results if result.verdict is not Verdict.HEALTHY]
    printed = list(
        surviving(
            failed,
            lambda result: (_printed(result), result),
            lambda result: f"{result.path} is left out of the timeline",
            notify,
        )
    )
    written = [(_written(result), result) for moment, result in printed if moment is None]
    known = [
        (moment, result.verdict) for moment, result in (*printed, *written) if moment is not None
    ]
    if not known:
        return None
    first, last = min(known)[0], max(known)[0]
    step = _step((last - first).total_seconds())
    begin = _floor(first, step)
    slots = [Counter[Verdict]() for _ in range(int((last - begin) / step) + 1)]
    for moment, verdict in known:
        slots[int((moment - begin) / step)][verdict] += 1
    return Timeline(
        step=step,
        slots=tuple(Slot(begin + number * step, counts) for number, counts in enumerate(slots)),
        from_files=sum(moment is not None for moment, _result in written),
    )


def _printed(result: Result) -> datetime | None:
    if result.main_line and result.main_line.moment:
        return result.main_line.moment
    stamp = read_stamp(result.main_line.text) if result.main_line else None
    if stamp is None or not (stamp.has_year and stamp.has_date):
        return None
    moment = stamp.moment.astimezone() if stamp.has_zone else stamp.moment
    return moment.replace(tzinfo=None, microsecond=0)


def _written(result: Result) -> datetime | None:
    try:
        moment = datetime.fromtimestamp(int(Path(result.path).stat().st_mtime))
    except (OSError, ValueError, OverflowError):
        return None
    return moment if is_dated(moment) else None


def _step(seconds: float) -> timedelta:
    fitting = (step for step in _STEPS_SECONDS if seconds / step < _MAX_SLOTS)
    return timedelta(seconds=next(fitting, max(seconds / _MAX_SLOTS, _STEPS_SECONDS[-1])))


def _floor(moment: datetime, step: timedelta) -> datetime:
    midnight = datetime(moment.year, 1, 1)
    return midnight + (moment - midnight) // step * step
