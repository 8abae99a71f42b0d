"""The last lines of a file that grows, and the windows around its trouble."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from kb.log import Block, Source
from kb.log.clean import clean_block

_HEAD_LINES, _HEAD_BYTES = 15, 1 << 12
"""Kept of the start of a file: versions, hardware and the command speak for or against a record."""
_LINES_BEFORE, _LINES_AFTER = 300, 50
"""Around the trouble: what led to it, and what came of it."""
_QUIET_LINES = 200
"""Everyday lines behind which trouble is another one."""


class Part(msgspec.Struct, frozen=True):
    """Some lines of a file."""

    first_line: int
    data: bytes


class Window(msgspec.Struct, frozen=True):
    """What is diagnosed of a file: its head, and the lines around some trouble."""

    name: str
    parts: tuple[Part, ...]

    def sources(self) -> Iterator[Source]:
        """What a log is made of."""
        for part in self.parts:
            yield Source(self.name, partial(io.BytesIO, part.data), first_line=part.first_line)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(len(part.data) for part in self.parts)


class Trail:
    """Takes in what is added to one file. A window is open from the first line of trouble on until
    everyday lines follow, and then waits to be taken."""

    def __init__(self, name: str, most: int) -> None:
        """Keep at most about `most` bytes of a window, and a quarter of that of what was read, in
        case that trouble follows."""
        self.name = name
        self._most = most
        self._closed: list[Window] = []
        self._head: Part | None = None
        self._first: int | None = None
        """Of the lines that tell of trouble, in the window that is open."""
        self._last: int | None = None
        self._opened_at = 0.0
        self._told = 1
        """The line behind the window before, which is about other trouble."""
        self._begin()

    @property
    def size(self) -> int:
        """Of the windows that wait, in bytes."""
        return sum(window.size for window in self._closed)

    @property
    def is_open(self) -> bool:
        """There is trouble that was not taken."""
        return self._first is not None

    def add(self, data: bytes, *, begins: bool) -> Block:
        """Take in some lines, and return them to be looked at."""
        if begins:
            self._close()
            self._begin()
        block = Block(self.name, self._next, _count(data), clean_block(data))
        self._data += data
        self._next += data.count(b"\n")
        if self._head is None:
            self._head = _head(data)
        return block

    def mark(self, numbers: Sequence[int], at: float) -> None:
        """Say which of the lines that were added tell of trouble, and when that was."""
        for number in numbers:
            if self._last is not None and number - self._last > _QUIET_LINES:
                self._close()
            if self._first is None:
                self._first, self._opened_at = number, at
            self._last = number
        if self._first is not None and self._last is not None:
            self._drop_lines(self._first - _LINES_BEFORE)
            if self._next - self._last > _QUIET_LINES or len(self._data) > self._most:
                self._close()
        if self._last is None:
            self._forget()

    def take(self, until: float) -> list[Window]:
        """The windows that opened until then, of a file without trouble its last lines: it may be
        the one that hangs. What comes later is in others."""
        if self._opened_at <= until:
            self._close()
        taken, self._closed = self._closed, []
        return taken or ([] if self.is_open else [self.end()])

    def end(self) -> Window:
        """The last lines, without those of trouble that was in a window."""
        start = max(self._start, self._told)
        lines = self._data.split(b"\n")[start - self._start :]
        return Window(self.name, self._whole(Part(start, b"\n".join(lines))))

    def _begin(self) -> None:
        self._data, self._start, self._next = b"", 1, 1
        self._head, self._trouble_in_head = None, False
        self._first = self._last = None
        self._told = 1

    def _close(self) -> None:
        if self._first is None or self._last is None:
            return
        if self._first <= _HEAD_LINES and self._start == 1:
            self._trouble_in_head = True
        start = max(self._first - _LINES_BEFORE, self._start, self._told)
        lines = self._data.split(b"\n")
        data = b"\n".join(lines[start - self._start : self._last + _LINES_AFTER + 1 - self._start])
        self._closed.append(Window(self.name, self._whole(*self._bounded(Part(start, data)))))
        self._told = self._last + 1
        self._first = self._last = None
        self._forget()

    def _bounded(self, part: Part) -> Iterator[Part]:
        """Of too much, the beginning and the end."""
        half = self._most // 2
        if len(part.data) <= self._most:
            yield part
            return
        left_out = part.data[:-half].count(b"\n")
        yield Part(part.first_line, part.data[:half])
        yield Part(part.first_line + left_out, part.data[-half:])

    def _whole(self, *parts: Part) -> tuple[Part, ...]:
        """With the head of the file, where it lies before and tells of no other trouble."""
        head, first = self._head, parts[0]
        if head is None or self._trouble_in_head or first.first_line <= _HEAD_LINES:
            return parts
        return (head, *parts)

    def _forget(self) -> None:
        """All but the last lines."""
        kept = self._data[-self._most // 4 :]
        kept = kept[kept.find(b"\n") + 1 :] if len(kept) < len(self._data) else kept
        self._start += self._data.count(b"\n") - kept.count(b"\n")
        self._data = kept

    def _drop_lines(self, until: int) -> None:
        """Those before a line: they count for no window."""
        if until > self._start:
            self._data = self._data.split(b"\n", until - self._start)[-1]
            self._start = until


def _head(data: bytes) -> Part:
    lines = data[:_HEAD_BYTES].splitlines(keepends=True)[:_HEAD_LINES]
    return Part(1, b"".join(lines))


def _count(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n"))
