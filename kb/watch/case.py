"""One case that is watched: a log, or the logs of one job."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from index.progress import Notify
from kb.containment import reason
from kb.errors import short_name
from kb.log import Log
from kb.log.clean import decode_path
from kb.service.service import Service, result_of
from kb.watch.follow import Added, Follower, most_open_files
from kb.watch.trail import Trail, Window

SETTLE_SECONDS = 2.0
"""After the last new line of trouble its case is diagnosed: ranks complain one after the other, and
a launcher behind them."""
_MAX_WAIT_SECONDS = 10.0
"""After the first one, however much follows."""
_MAX_WAITING_BYTES = 1 << 23
"""Of windows that wait for a diagnosis, at most; then it is made at once."""
_WINDOWS_BYTES = 1 << 24
_MIN_WINDOW_BYTES, _MAX_WINDOW_BYTES = 1 << 14, 1 << 18
"""Of one file: the files of a job share what a diagnosis reads."""
_READ_BYTES = 1 << 23
_MIN_READ_BYTES, _MAX_READ_BYTES = 1 << 14, 1 << 20
"""Read of one file at a look: all that are followed take turns."""
_MAX_KINDS = 100_000
"""Lines of trouble that are known, so that what is printed again and again costs nothing."""


def share(total: int, least: int, most: int, files: int) -> int:
    """What one of so many files gets of a total."""
    return max(least, min(most, total // max(files, 1)))


def shown(path: Path) -> str:
    """The name of a path, for people."""
    return short_name(decode_path(str(path)))


class Case:
    """Follows the files of a case; trouble waits in windows until it is time for a diagnosis."""

    def __init__(self, path: Path, notify: Notify) -> None:
        """`notify` is told again what it was told before."""
        self.name = shown(path)
        self.behind = False
        """There is more to read."""
        self._notify = notify
        self._followed: dict[Path, tuple[Follower, Trail]] = {}
        self._kinds: set[int] = set()
        self._calm = True
        self._grew_at: float | None = None
        """Since the last look for a good end; by a clock that never goes back."""
        self._first_trouble = self._last_trouble = 0.0
        self._trouble = False
        self._parks = False
        """Files are closed after each look, because there are too many to hold them open."""

    @property
    def files(self) -> int:
        """How many are followed."""
        return len(self._followed)

    def follow(self, found: Mapping[Path, str]) -> None:
        """Follow these files under their names, and let go of others once they are read."""
        most = share(_WINDOWS_BYTES, _MIN_WINDOW_BYTES, _MAX_WINDOW_BYTES, len(found))
        for path, name in found.items():
            if path not in self._followed:
                self._followed[path] = Follower(path), Trail(decode_path(name), most)
        for path in self._followed.keys() - found.keys():
            if not self._followed[path][0].is_open and not self._followed[path][1].size:
                del self._followed[path]

    def look(self, service: Service, files: int) -> int:
        """Read what is new, of each of so many files its share; return the number of bytes."""
        most = share(_READ_BYTES, _MIN_READ_BYTES, _MAX_READ_BYTES, files)
        self._parks = files > most_open_files()
        self.behind = False
        new = [
            [(trail, one) for one in self._read(follower, most)]
            for follower, trail in self._followed.values()
        ]
        return self._take_in(new, service)

    def last_look(self, service: Service) -> int:
        """Take lines without an end as they are; return the number of bytes."""
        new = [
            [(trail, one) for one in follower.last_words()]
            for follower, trail in self._followed.values()
        ]
        return self._take_in(new, service)

    def logs(self, *, at_once: bool = False) -> list[Log]:
        """What is to be diagnosed now: nothing while trouble may still go on, unless `at_once`."""
        if not (at_once or self._is_due()):
            return []
        # Where trouble comes again and again, what has just begun waits: half of it misleads.
        until = time.monotonic() - (0 if at_once or self._is_over() else SETTLE_SECONDS)
        taken = [trail.take(until) for _, trail in self._followed.values()]
        self._trouble = any(trail.is_open for _, trail in self._followed.values())
        self._first_trouble = self._last_trouble
        # The last windows of all files are about the same trouble, and so are those before them.
        beside = zip_longest(*(reversed(windows) for windows in taken))
        return [_log(filter(None, windows)) for windows in reversed(list(beside))]

    def end(self, *, at_once: bool = False) -> Log | None:
        """The last lines, once after each growth, if nothing before them tells of trouble."""
        grew = self._grew_at
        if grew is None or self.behind or not self._calm:
            return None
        if not at_once and time.monotonic() - grew < SETTLE_SECONDS:
            return None
        self._grew_at = None
        return _log(trail.end() for _, trail in self._followed.values())

    def close(self) -> None:
        """Let go of all files."""
        for follower, _ in self._followed.values():
            follower.close()

    def _read(self, follower: Follower, most: int) -> Iterator[Added]:
        name = shown(follower.path)
        try:
            yield from follower.read(most)
        except OSError as error:
            self._calm = False
            self._notify(f"cannot read {name}: {reason(error)}")
        if self._parks:
            follower.park()
        if follower.unfit:
            self._calm = False
            self._notify(f"{name} is not followed: {follower.unfit}")
        self.behind = self.behind or follower.behind

    def _take_in(self, new: Sequence[Sequence[tuple[Trail, Added]]], service: Service) -> int:
        """What is new in each file, one after the other where a file ended and the next began."""
        rounds = (list(filter(None, beside)) for beside in zip_longest(*new))
        return sum(self._look_at(some, service) for some in rounds)

    def _look_at(self, new: Sequence[tuple[Trail, Added]], service: Service) -> int:
        added = [(trail, trail.add(one.data, begins=one.begins)) for trail, one in new]
        now = self._grew_at = time.monotonic()
        surveys = result_of(service.survey([block for _, block in added]))
        for (trail, _), seen in zip(added, surveys, strict=True):
            self._calm = self._calm and not (seen.lines or seen.in_doubt)
            numbers = [line.number for line in seen.lines if self._is_new((line.file, line.masked))]
            trail.mark(numbers, now)
            if numbers:
                self._first_trouble = self._first_trouble if self._trouble else now
                self._last_trouble, self._trouble = now, True
        return sum(len(block.data) for _, block in added)

    def _is_new(self, kind: tuple[str | None, str]) -> bool:
        if len(self._kinds) >= _MAX_KINDS:
            self._kinds.clear()
        before = len(self._kinds)
        self._kinds.add(hash(kind))
        return len(self._kinds) > before

    def _is_due(self) -> bool:
        if not self._trouble:
            return False
        waiting = sum(trail.size for _, trail in self._followed.values())
        return (
            self._is_over()
            or time.monotonic() - self._first_trouble >= _MAX_WAIT_SECONDS
            or waiting > _MAX_WAITING_BYTES
        )

    def _is_over(self) -> bool:
        return time.monotonic() - self._last_trouble >= SETTLE_SECONDS


def _log(windows: Iterable[Window]) -> Log:
    return Log(source for window in windows for source in window.sources())
