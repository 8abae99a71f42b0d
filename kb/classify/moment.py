"""When a line was printed: its own time, otherwise that of the nearest line of the evidence with
one; in a file without times, the last time of the whole log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from kb.diagnosis import Diagnosis
from kb.log.timestamps import Calendar, Stamp, is_dated, read_stamp

_Place = tuple[str | None, int]
"""A file and the number of a line."""


def moment_of(diagnosis: Diagnosis, file: str | None, line: int | None) -> datetime | None:
    """In the clock of this machine where the log names a zone, else in that of the host; None where
    the log names no day."""
    stamps = {place: stamp for place, stamp in _stamps(diagnosis) if not stamp.is_elapsed}
    calendar = Calendar(stamps.values())
    if not calendar.knows_the_day:
        return None
    here = {number: stamp for (where, number), stamp in stamps.items() if where == file}
    nearest = min(here, key=lambda number: _distance(number, line or 0), default=None)
    latest = max(stamps.values(), key=lambda stamp: calendar.seconds(stamp) or 0.0)
    stamp = latest if nearest is None else here[nearest]
    seconds = calendar.seconds(stamp)
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    local = moment.astimezone() if stamp.has_zone else moment
    return local.replace(tzinfo=None, microsecond=0) if is_dated(local) else None


def _distance(number: int, line: int) -> tuple[int, bool]:
    """Of lines that are equally near, the one before is nearer. Between them lie lines like others,
    of which evidence keeps the first, so one far before may be hours older."""
    return abs(number - line), number > line


def _stamps(diagnosis: Diagnosis) -> Iterator[tuple[_Place, Stamp]]:
    for line in diagnosis.evidence.lines:
        if stamp := read_stamp(line.text):
            yield (line.file, line.number), stamp
    job = diagnosis.job
    for quoted in (*job.timeline, *job.culprits) if job else ():
        stamp = read_stamp(quoted.time or "") or read_stamp(quoted.text or "")
        if stamp and quoted.line is not None:
            yield (quoted.file, quoted.line), stamp
