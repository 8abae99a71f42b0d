"""When a line was said. The ways of writing a time are rows of `kb/rules/times.toml`.

Many formats leave something out: glog the year, a bare clock the date. What is missing is taken
from the other lines of the job, so times become comparable only when all are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from itertools import chain

import msgspec

from kb.rules import read_rows
from kb.rules.rows import Time

_TABLES = ("date", "epoch", "clock", "elapsed")
"""Those that tell more come first."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BEGINNING_CHARACTERS = 120
"""The part of a line in which its time is looked for: further on, words speak of other times."""
_FIELD = re.compile(r"\"(?:@?timestamp|time|ts|asctime|datetime)\"\s?:\s?\"?(?=\d)")
_FIELD_CHARACTERS = 40
"""Of a field that holds a time: the longest has a date, nanoseconds and a zone."""
_SOME_YEAR = 2000
"""Stands for an unknown year, and has a 29th of February."""
_YEARS = range(1970, 3000)
"""Years of logs, far enough from the ends of the calendar for any zone and any sum. Others stand
for "never": the zero time of Go is in the year 1, the last day of SQL in 9999."""


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """A time as far as a line tells it."""

    text: str
    """As printed."""
    moment: datetime
    """In UTC where the line names a zone, else in the clock of its host."""
    has_year: bool
    has_date: bool
    has_zone: bool
    is_elapsed: bool = False
    """Counted from the start of the program."""


def read_stamp(line: str) -> Stamp | None:
    """The time at the beginning of a line, or in the field of a JSON object that is named after
    it."""
    stamp = _stamp_in(line[:_BEGINNING_CHARACTERS])
    if stamp is None and line.startswith("{") and (field := _FIELD.search(line)):
        return _stamp_in(line[field.end() : field.end() + _FIELD_CHARACTERS])
    return stamp


def _stamp_in(head: str) -> Stamp | None:
    for pattern in _formats():
        match = pattern.search(head)
        if match:
            try:
                stamp = _stamp(match.group(), {k: v for k, v in match.groupdict().items() if v})
            except (ValueError, OverflowError):
                continue
            if is_dated(stamp.moment):
                return stamp
            head = head.replace(match.group(), " ")  # no part of it is a time either
    return None


def is_dated(moment: datetime) -> bool:
    """Whether a time is one in which something was written, and not the beginning or the end of a
    calendar."""
    return moment.year in _YEARS


@cache
def _formats() -> tuple[re.Pattern[str], ...]:
    """Tried in this order; the first that is found in the beginning of a line is its time."""
    rows = chain.from_iterable(read_rows("times", table, Time) for table in _TABLES)
    return tuple(re.compile(row.pattern) for row in rows)


def _stamp(text: str, part: dict[str, str]) -> Stamp:
    if "epoch" in part:
        return Stamp(text, datetime.fromtimestamp(float(part["epoch"]), UTC), True, True, True)
    if "epoch_ms" in part:
        seconds = int(part["epoch_ms"]) / 1000
        return Stamp(text, datetime.fromtimestamp(seconds, UTC), True, True, True)
    if "elapsed" in part:
        moment = datetime.fromtimestamp(float(part["elapsed"]), UTC)
        return Stamp(text.strip(), moment, False, False, False, is_elapsed=True)
    year = int(part.get("year", 0)) or (2000 + int(part["year2"]) if "year2" in part else 0)
    month = int(part.get("month", 0)) or (_MONTHS.index(part["name"]) + 1 if "name" in part else 1)
    moment = datetime(
        year or _SOME_YEAR,
        month,
        int(part.get("day", 1)),
        int(part["hour"]),
        int(part["minute"]),
        int(part["second"]),
        int(part.get("fraction", "0").ljust(6, "0")[:6]),
        tzinfo=_zone(part.get("zone", "Z")),
    )
    if "yearday" in part:
        moment += timedelta(days=int(part["yearday"]) - 1)
    dated = "day" in part or "yearday" in part
    shown = text.strip().lstrip("IWEF")
    return Stamp(shown, moment, bool(year), dated, "zone" in part)


def _zone(text: str) -> timezone:
    if text in ("Z", "UTC"):
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


class Calendar:
    """Completes stamps with the date that other lines of the same job name. Where most lines
    count from the start of the program, only those are comparable."""

    def __init__(self, stamps: Iterable[Stamp]) -> None:
        seen = list(stamps)
        self._elapsed = 2 * sum(stamp.is_elapsed for stamp in seen) > len(seen)
        dated = (stamp.moment for stamp in seen if stamp.has_year and stamp.has_date)
        self._date = next(dated, None)

    @property
    def knows_the_day(self) -> bool:
        """Whether a line names a whole date."""
        return self._date is not None

    def seconds(self, stamp: Stamp) -> float | None:
        """Seconds since 1970, or since the start; without any date, from an arbitrary day on."""
        if stamp.is_elapsed is not self._elapsed:
            return None
        moment = stamp.moment
        if stamp.is_elapsed:
            return moment.timestamp()
        if self._date is not None and not stamp.has_date:
            moment = moment.replace(self._date.year, self._date.month, self._date.day)
        elif self._date is not None and not stamp.has_year:
            moment = _in_year(moment, self._date.year)
        return moment.timestamp()


def _in_year(moment: datetime, year: int) -> datetime:
    try:
        return moment.replace(year=year)
    except ValueError:  # the 29th of February
        return moment.replace(year=year, day=28)
