"""Finds the outputs of checks in a log of any length.

What a person pastes is short, and what a program says of its set-up stands at the beginning of its
log, what ended it at the end. So the first and the last part of each source are looked at: the many
expressions of the checks are several times slower than the markers that all lines pass.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache

import msgspec

from index.documents import Pattern
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

_PROMPT = re.compile(
    r"(?:\(\S{1,40}\) ?)?(?:\[[^][]{1,80}\][$#]|\S{0,200}\$|\S{1,100}@\S{1,100}#)(?: +\S|\s*$)"
)
"""The line of a shell at which a command was typed: `$ df`, `root@node-0:~# df`,
`[me@node-0 ~]$ df`, `(venv) me@node-0:~$ df`."""


class Window(msgspec.Struct, frozen=True):
    """A part of a source in which something was recognised."""

    block: Block
    hits: tuple[int, ...]
    """The numbers of the patterns that matched."""
    is_cut: bool
    """The source goes on behind it."""


class OutputKeeper:
    """Keeps the beginning and the end of one source that is handed over block by block."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._source: str | None = None
        self._head = b""
        self._ends: deque[Block] = deque()
        """The last blocks, as many as hold the end that is looked at."""
        self._bytes = self._lines = 0

    def add(self, block: Block) -> None:
        """Take in the next block."""
        if not self._bytes:
            self._source = block.source
            self._head = _whole_lines(block.data)
        self._bytes += block.size
        self._lines += block.line_count
        self._ends.append(block)
        while sum(one.size for one in self._ends) - self._ends[0].size >= WINDOW_BYTES:
            self._ends.popleft()

    def windows(self) -> list[Window]:
        """The parts in which an output was recognised."""
        tail = b"".join(block.data for block in self._ends)[-WINDOW_BYTES:]
        tail_start = self._bytes - len(tail)
        if tail_start <= len(self._head):
            tail = tail[len(self._head) - tail_start :]
        else:
            tail = tail[tail.find(b"\n") + 1 :]
        rows = tail.count(b"\n") + (not tail.endswith(b"\n"))
        parts = [
            Block(self._source, 1, self._head.count(b"\n") + 1, self._head),
            Block(self._source, self._lines - rows + 1, rows, tail),
        ]
        scanned = (
            Window(part, tuple(number for number, _end in self._scanner.scan(part.data)), is_cut)
            for part, is_cut in zip(parts, (bool(tail), False), strict=True)
        )
        return [window for window in scanned if window.hits]


def _whole_lines(data: bytes) -> bytes:
    if len(data) <= WINDOW_BYTES:
        return data
    return data[: data.rfind(b"\n", 0, WINDOW_BYTES) + 1 or WINDOW_BYTES]


def whole_output(source: str | None, blocks: Iterable[Block]) -> Output:
    """The beginning of a text that is one output."""
    whole = b"".join(block.data for block in blocks)
    data = _whole_lines(whole)
    lines = BlockLines(Block(source, 1, data.count(b"\n") + 1, data))
    texts = tuple(lines.text(start) for start in lines.starts())
    return Output(source, 1, texts, is_cut=len(data) < len(whole))


class WindowLines:
    """The lines of a window. Each is cut and judged once, however many checks look at it."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._lines = BlockLines(window.block)
        self.starts = list(self._lines.starts())
        self._prompts: dict[int, bool] = {}
        self._spoken: dict[int, bool] = {}

    def text(self, row: int) -> str:
        """A line, as printed."""
        return self._lines.text(self.starts[row])

    def is_prompt(self, row: int) -> bool:
        """Whether a command was typed there."""
        if row not in self._prompts:
            self._prompts[row] = is_prompt(self.text(row))
        return self._prompts[row]

    def is_spoken(self, row: int) -> bool:
        """Whether it carries a time or a rank."""
        if row not in self._spoken:
            self._spoken[row] = _is_spoken(self.text(row))
        return self._spoken[row]


def is_prompt(text: str) -> bool:
    """Whether a line is that of a shell at which a command was typed."""
    return bool(_PROMPT.match(text))


def cut_output(lines: WindowLines, check: Check, anchor_scanner: Scanner) -> Output:
    """The lines of a part of a source that are the output of a check. Lines between them that are
    not are left empty, so that one output holds what several hosts or several runs printed.

    `anchor_scanner` is that of the check's `anchor_patterns`. Where no line of its examples carries
    a time or a rank, a line that does is of the log around, and a shell's prompt begins or ends an
    output.
    """
    block = lines.window.block
    ends = {end for _number, end in anchor_scanner.scan(block.data)}
    anchors = {bisect_left(lines.starts, end) - 1 for end in ends}
    parts = list(_parts(lines, anchors, _speaks(check)))
    if not parts:
        return Output(block.source, block.first_line, ())
    first, last = parts[0].start, parts[-1].stop
    kept = [""] * (last - first)
    for part in parts:
        kept[part.start - first : part.stop - first] = map(lines.text, part)
    return Output(block.source, block.number_of(first), tuple(kept), lines.window.is_cut)


def _parts(lines: WindowLines, anchors: Set[int], spoken: bool) -> Iterator[range]:
    """The runs of lines that hold an anchor, and at most `MAX_ROWS` on either side."""
    for run in _runs(lines, anchors, spoken):
        found = [row for row in run if row in anchors]
        if found:
            yield range(
                max(found[0] - MAX_ROWS, run.start), min(found[-1] + MAX_ROWS + 1, run.stop)
            )


def _runs(lines: WindowLines, anchors: Set[int], spoken: bool) -> Iterator[range]:
    """The lines between those that belong to no output."""
    start = max(min(anchors, default=0) - MAX_ROWS, 0)
    stop = min(max(anchors, default=-1) + MAX_ROWS + 1, len(lines.starts))
    for row in range(start, stop):
        foreign = lines.is_prompt(row) or (not spoken and lines.is_spoken(row))
        if foreign and row not in anchors:
            yield range(start, row)
            start = row + 1
    yield range(start, stop)


def anchor_patterns(check: Check) -> tuple[Pattern, ...]:
    """What finds each line by which the output of a check is recognised."""
    return tuple(Pattern(_shortest(one), regex=True) for one in check.header.recognise)


def _shortest(expression: str) -> str:
    """An expression that matches in the same lines, at one place of each: of `\\d+` at its end
    Hyperscan reports every end."""
    shorter = expression.removesuffix(".*")
    return shorter[:-1] if shorter.endswith("+") and not shorter.endswith("\\+") else shorter


@lru_cache(512)
def _speaks(check: Check) -> bool:
    """Whether its output is, or holds, lines of a log."""
    examples = (finding.example or "" for finding in check.body.findings)
    lines = "\n".join((check.body.normal, *examples)).splitlines()
    return any(map(_is_spoken, lines))


def _is_spoken(text: str) -> bool:
    return split_prefix(text).text != text
