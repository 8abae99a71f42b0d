"""Large files, whose ranges all workers scan: one file then takes no longer than its share.

One process diagnoses the file. It reads on from what the workers found in their ranges, in order,
as if it had found it itself.
"""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

from kb.diagnosis.scan import RangeScan
from kb.errors import LogError
from kb.log.ranges import Range, can_be_cut

CUT_ABOVE_BYTES = 1 << 29
"""A worker scans half of a smaller file in less time than it takes to start another one."""
_MAX_AHEAD_PER_WORKER = 2
"""Ranges per worker that are scanned or wait to be read: no worker waits, and some megabytes do."""

Running = TypeVar("Running")


def files_to_cut(units: Iterable[str], workers: int) -> list[str]:
    """The files that are larger than a worker's share of all. Where there are enough files, each
    worker has one of its own, and nobody has to put anything together."""
    sizes = dict(_sizes(units)) if workers > 1 else {}
    share = max(sum(sizes.values()) // max(workers, 1), CUT_ABOVE_BYTES)
    return [unit for unit, size in sizes.items() if size > share and _can_be_cut(unit)]


def in_order(
    parts: Iterator[Range],
    workers: int,
    start: Callable[[Range], Running],
    finish: Callable[[Running], RangeScan],
) -> Iterator[RangeScan]:
    """Scan ranges ahead of whoever reads the results, in order. The first are started at once."""
    running = deque(map(start, islice(parts, workers * _MAX_AHEAD_PER_WORKER)))

    def results() -> Iterator[RangeScan]:
        while running:
            result = finish(running.popleft())
            running.extend(map(start, islice(parts, 1)))
            yield result

    return results()


def _sizes(units: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The size of each unit that is a file of this machine, in bytes."""
    for unit in units:
        with suppress(OSError, ValueError):  # whoever reads it says what is wrong
            found = Path(unit).stat()
            if stat.S_ISREG(found.st_mode):
                yield unit, found.st_size


def _can_be_cut(unit: str) -> bool:
    with suppress(OSError, LogError):
        return can_be_cut(Path(unit))
    return False
