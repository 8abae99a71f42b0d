"""Finds the outputs of checks in a log of any length.

What a person pastes is short, and what a program says of its set-up stands at the beginning of its
log, what ended it at the end. So the first and the last part of each source are looked at: the many
expressions of the checks are several times slower than the markers that all lines pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from index.signatures import Scanner
from kb.check import Check
from kb.checks.model import Output
from kb.log import Block
from kb.log.lines import BlockLines
from kb.log.prefixes import split_prefix

WINDOW_BYTES = 1 << 16
"""Of a source, so much of its beginning and of its end is looked at; no output is longer."""
MAX_ROWS = 500
"""Lines of an output in front of the place where it was recognised, and behind it."""

_PROMPT = re.compile(r"^(\S*\$|root@\S*#) +\S")
"""The line of a shell at which a command was typed."""


class Window(msgspec.Struct, frozen=True):
    """A part of a source in which something was recognised."""

    block: Block
    hits: tuple[tuple[int, int], ...]
    """Number of a pattern, and the offset behind its first match."""


class OutputKeeper:
    """Keeps the beginning and the end of one source that is handed over block by block."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._source: str | None = None
        self._head = self._tail = b""
        self._bytes = self._lines = 0

    def add(self, block: Block) -> None:
        """Take in the next block."""
        if not self._bytes:
            self._source = block.source
            self._head = _whole_lines(block.data)
        self._bytes += len(block.data)
        self._lines += block.line_count
        self._tail = (self._tail + block.data[-WINDOW_BYTES:])[-WINDOW_BYTES:]

    def windows(self) -> list[Window]:
        """The parts in which an output was recognised."""
        tail_start = self._bytes - len(self._tail)
        if tail_start <= len(self._head):
            tail = self._tail[len(self._head) - tail_start :]
        else:
            tail = self._tail[self._tail.find(b"\n") + 1 :]
        rows = tail.count(b"\n") + (not tail.endswith(b"\n"))
        parts = [
            Block(self._source, 1, self._head.count(b"\n") + 1, self._head),
            Block(self._source, self._lines - rows + 1, rows, tail),
        ]
        scanned = (Window(part, tuple(self._scanner.scan(part.data))) for part in parts)
        return [window for window in scanned if window.hits]


def _whole_lines(data: bytes) -> bytes:
    if len(data) <= WINDOW_BYTES:
        return data
    return data[: data.rfind(b"\n", 0, WINDOW_BYTES) + 1 or WINDOW_BYTES]


def whole_output(source: str | None, blocks: Iterable[Block]) -> Output:
    """The beginning of a text that is one output."""
    data = _whole_lines(b"".join(block.data for block in blocks))
    lines = BlockLines(Block(source, 1, data.count(b"\n") + 1, data))
    return Output(source, 1, tuple(lines.text(start) for start in lines.starts()))


def cut_output(block: Block, ends: Iterable[int], check: Check) -> Output:
    """The lines around the matches that belong to the same output.

    Where no line of the check's examples carries a time or a rank, a line that does is of the log
    around, and a shell's prompt begins or ends an output.
    """
    lines = BlockLines(block)
    starts = list(lines.starts())
    texts = [lines.text(start) for start in starts]
    anchors = sorted(block.data.count(b"\n", 0, max(end - 1, 0)) for end in ends)
    first, last = anchors[0], anchors[-1]
    spoken = _speaks(check)
    low = _until_foreign(texts, range(first - 1, max(first - MAX_ROWS, 0) - 1, -1), spoken)
    high = _until_foreign(texts, range(last + 1, min(last + MAX_ROWS, len(texts))), spoken)
    rows = slice(first - low, last + high + 1)
    return Output(block.source, block.number_of(rows.start), tuple(texts[rows]))


def _until_foreign(texts: Sequence[str], rows: range, spoken: bool) -> int:
    """How many of the rows belong to the output."""
    for count, row in enumerate(rows):
        if _PROMPT.match(texts[row]) or (not spoken and _is_spoken(texts[row])):
            return count
    return len(rows)


@lru_cache(512)
def _speaks(check: Check) -> bool:
    """Whether its output is, or holds, lines of a log."""
    examples = (finding.example or "" for finding in check.body.findings)
    lines = "\n".join((check.body.normal, *examples)).splitlines()
    return any(map(_is_spoken, lines))


def _is_spoken(text: str) -> bool:
    return split_prefix(text).text != text
