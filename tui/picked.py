"""The lines of a log that a condition picks: found in time-boxed batches, in memory that does not
grow with the log."""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from textual.cache import LRUCache

from tui.conditions import Condition, Places
from tui.lines import CHUNK_BYTES, Lines, Passage

_CHUNKS_AT_ONCE = 16
"""Chunks searched in one step: a megabyte."""
_BATCH_SECONDS = 0.05
"""A search pauses this often, so that keys are answered, and that it can be given up."""
_MAX_CHUNKS_KEPT = 64
"""Chunks whose picked lines are remembered: several screens."""


class Rows(Protocol):
    """What a view shows of a log, row by row, from 0."""

    @property
    def count(self) -> int:
        """The rows known so far."""

    def number(self, row: int) -> int | None:
        """The number of the line in a row; None if there is none."""

    def row(self, number: int) -> int:
        """The row of a line, or that of the next one which has a row."""

    def has_come_to(self, number: int) -> bool:
        """Whether all rows in front of a line are known."""


class Everything:
    """All lines."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    @property
    def count(self) -> int:
        """The lines known so far."""
        return self._lines.line_count

    def number(self, row: int) -> int | None:
        """Numbers begin with 1."""
        return row + 1 if 0 <= row < self.count else None

    def row(self, number: int) -> int:
        """Rows begin with 0."""
        return number - 1

    def has_come_to(self, number: int) -> bool:
        """Whether a line is counted, or there is no such line."""
        return number <= self.count or self._lines.complete


class Picked:
    """Those that a condition picks. Only how many there are before each chunk is remembered; the
    chunk itself is searched again when its lines are asked for."""

    def __init__(self, lines: Lines, condition: Condition) -> None:
        self._lines = lines
        self._condition = condition
        self._before = array("q", [0])
        self._rest = 0
        self._searching = threading.Lock()
        self._numbers: LRUCache[tuple[int, int], list[int]] = LRUCache(_MAX_CHUNKS_KEPT)

    @property
    def count(self) -> int:
        """The lines found so far."""
        return self._before[-1] + self._rest

    @property
    def share(self) -> float:
        """The part of the log that is searched, 0 to 1, of what is counted so far."""
        return min(1.0, len(self._before) / max(1, self._lines.chunk_count))

    def find(self) -> Iterator[int]:
        """Go on where it was, for a thread: yields how many are found after every 50 ms of work,
        and at the end. What is not counted yet is counted."""
        counting = self._lines.count()
        while True:
            with self._searching:
                is_at_end = self._search_for(_BATCH_SECONDS)
            yield self.count
            if is_at_end and (self._lines.complete or next(counting, None) is None):
                return

    def number(self, row: int) -> int | None:
        """The number of a line by its place among those found."""
        if not 0 <= row < self.count:
            return None
        chunk = bisect_right(self._before, row) - 1
        numbers = self._numbers_in(chunk)
        place = row - self._before[chunk]
        return numbers[place] if place < len(numbers) else None

    def row(self, number: int) -> int:
        """How many are found before a line."""
        chunk = min(self._lines.chunk_of(number), len(self._before) - 1)
        return self._before[chunk] + bisect_left(self._numbers_in(chunk), number)

    def has_come_to(self, number: int) -> bool:
        """Whether all before a line is searched."""
        return self._lines.chunk_of(number) < len(self._before) - (not self._lines.complete)

    def _search_for(self, seconds: float) -> bool:
        """Do at least one step; whether all that is counted is searched."""
        until = time.monotonic() + seconds
        while count := min(self._whole_chunks - len(self._before) + 1, _CHUNKS_AT_ONCE):
            passage = self._lines.passage(len(self._before) - 1, count)
            chunks = _chunks_of(passage, self._pick(passage))
            found = np.bincount(chunks, minlength=count)[:count]
            self._rest = 0
            self._before.extend((self._before[-1] + np.cumsum(found)).tolist())
            if time.monotonic() > until:
                return False
        if self._lines.complete:
            self._rest = len(self._pick(self._lines.passage(len(self._before) - 1, 1)))
        return True

    @property
    def _whole_chunks(self) -> int:
        return self._lines.chunk_count - self._lines.complete

    def _numbers_in(self, chunk: int) -> list[int]:
        # The last chunk has other lines when the log has grown.
        key = (chunk, self._lines.line_count if chunk == len(self._before) - 1 else 0)
        numbers = self._numbers.get(key)
        if numbers is None:
            passage = self._lines.passage(chunk, 1)
            numbers = (passage.first + self._pick(passage)).tolist()
            self._numbers[key] = numbers
        return numbers

    def _pick(self, passage: Passage) -> Places:
        return np.unique(self._condition(passage.data, passage.ends))


def hunt(lines: Lines, condition: Condition, number: int, step: int) -> Iterator[int | None]:
    """Look for the nearest line behind `number` (step 1) or before it (-1), and from the other end
    on where there is none: yields None after every 50 ms of work, then the line, 0 if there is
    none.

    It needs nothing that a `Picked` has found: what is near is found at once in any log.
    """
    until = time.monotonic() + _BATCH_SECONDS
    for passage, is_near in _outward(lines, lines.chunk_of(number), step):
        found = passage.first + condition(passage.data, passage.ends) if passage else np.empty(0)
        if is_near:
            found = found[found > number] if step > 0 else found[found < number]
        if len(found):
            yield int(found[0] if step > 0 else found[-1])
            return
        if time.monotonic() > until:
            yield None
            until = time.monotonic() + _BATCH_SECONDS
    yield 0


def _outward(lines: Lines, chunk: int, step: int) -> Iterator[tuple[Passage | None, bool]]:
    """All of a log from a chunk on, and whether it lies in the direction of the step; None where
    it has to be counted first."""
    if step > 0:
        for passage in _onward(lines, chunk):
            yield passage, True
        for start, count in _steps(0, chunk + 1):
            yield lines.passage(start, count), False
        return
    for start, count in reversed(_steps(0, chunk + 1)):
        yield lines.passage(start, count), True
    for _known in lines.count():
        yield None, False
    for start, count in reversed(_steps(chunk, lines.chunk_count)):
        yield lines.passage(start, count), False


def _onward(lines: Lines, chunk: int) -> Iterator[Passage | None]:
    """From a chunk to the end, counting where nobody has counted yet."""
    counting = lines.count()
    while True:
        count = min(lines.chunk_count - chunk, _CHUNKS_AT_ONCE)
        if count > 0:
            yield lines.passage(chunk, count)
            chunk += count
        elif lines.complete or next(counting, None) is None:
            return
        else:
            yield None


def _steps(start: int, stop: int) -> list[tuple[int, int]]:
    return [
        (chunk, min(_CHUNKS_AT_ONCE, stop - chunk)) for chunk in range(start, stop, _CHUNKS_AT_ONCE)
    ]


def _chunks_of(passage: Passage, places: Places) -> Places:
    """The chunks in which lines begin, from that of the passage on."""
    starts: Places = np.append(0, passage.ends + 1)[places] + passage.skipped
    return starts // CHUNK_BYTES
