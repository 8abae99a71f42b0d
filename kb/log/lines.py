"""The lines of a block, found by offset: each is cut and cleaned once, whoever asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from kb.log.clean import strip_controls
from kb.log.reader import Block

MAX_LINE_BYTES = 4_000
"""Of a longer line only the beginning is read: it is data that got into the log."""


class BlockLines:
    """The lines of one block. A line is named by its start, the offset of its first byte."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self._texts: dict[int, str] = {}
        self._found = range(0)
        """The line in which a match was looked up last, with its newline: the next one is often in
        it, and a line may be as long as the block."""
        self._counted = (0, 0)
        """An offset and the number of lines before it, as counted last."""

    @cached_property
    def data(self) -> bytes:
        """The text of the block, read when the first line is looked at."""
        return self.block.data

    def start_of(self, end: int) -> int:
        """The start of the line in which a match that ends at `end` stands."""
        last = max(end - 1, 0)
        if last not in self._found:
            stop = self.data.find(b"\n", last)
            start = self.data.rfind(b"\n", 0, last) + 1
            self._found = range(start, len(self.data) if stop < 0 else stop + 1)
        return self._found.start

    def starts(self) -> Iterator[int]:
        """The starts of all lines."""
        start = 0
        while start < len(self.data):
            yield start
            stop = self.data.find(b"\n", start)
            start = len(self.data) if stop < 0 else stop + 1

    def starts_before(self, offset: int) -> Iterator[int]:
        """The starts of the lines in front of an offset, the nearest first."""
        while offset > 0:
            offset = self.data.rfind(b"\n", 0, offset - 1) + 1
            yield offset

    def text(self, start: int) -> str:
        """A line as printed, without what a terminal would interpret."""
        text = self._texts.get(start)
        if text is None:
            text = strip_controls(self.raw(start).decode("utf-8", "replace")).rstrip()
            self._texts[start] = text
        return text

    def raw(self, start: int) -> bytes:
        """A line as it is in the block, cut where it is very long."""
        stop = self.data.find(b"\n", start, start + MAX_LINE_BYTES)
        return self.data[start : start + MAX_LINE_BYTES if stop < 0 else stop]

    def number(self, start: int) -> int:
        """The number of a line in its file; cheapest in rising order, as newlines are counted."""
        known, count = self._counted
        if start < known // 2:
            known, count = 0, 0
        if known <= start:
            count += self.data.count(b"\n", known, start)
        else:
            count -= self.data.count(b"\n", start, known)
        self._counted = (start, count)
        return self.block.number_of(count)
