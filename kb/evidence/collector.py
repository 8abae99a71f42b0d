"""From a log of any length to the few lines that matter.

Every block is scanned at memory speed; only lines that a marker fired on are looked at one by
one. Short input is read whole: in a few lines typed by a person every word counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from index.documents import Pattern
from index.signatures import Scanner
from kb.evidence.endings import ends_well, is_told_by_a_person
from kb.evidence.exceptions import RaisedExceptions
from kb.evidence.facts import find_facts
from kb.evidence.folding import FoldedLines
from kb.evidence.glossary import has_chinese
from kb.evidence.lines import evidence_line, evidence_lines_before
from kb.evidence.marked import MarkedBlock
from kb.evidence.markers import Grade
from kb.evidence.marks import Marks
from kb.evidence.model import Evidence, EvidenceLine, SignatureHit
from kb.evidence.nature import is_human_written, is_log, shows_progress, stops_midway
from kb.evidence.remarks import is_remark
from kb.evidence.setbacks import without_setbacks
from kb.log import Block
from kb.log.lines import BlockLines

SHORT_LINES = 300
"""Input of at most this many lines is read line by line."""
_MAX_SHORT_BLOCKS = 8
"""... unless its lines are so long that it takes more blocks: they are kept until the end."""

_MAX_FIRST_MARKED_LINES, _MAX_LAST_MARKED_LINES = 300, 100
"""Marked lines looked at in one block: from its beginning, and from its end."""
_FIRST_REPEATED_LINES, _LAST_REPEATED_LINES = 20, 10
"""The same behind a block in which all of them repeated what is known."""
_MAX_TELLING_LINES = 120
"""Lines of the evidence that a marker fired on: more would only repeat the trouble."""
_MIN_CONTEXT_LINES = 40
"""Everyday lines of the evidence, however many telling ones there are."""
_COUNTER = re.compile(rb"(?<![A-Za-z0-9_])\d*[1-9]\d*(?![A-Za-z_])")
"""A number that is none of a name. A zero stays: `0 errors` denies what `3 errors` says."""
_KEPT_ADDRESS = re.compile(rb"127\.|0\.0\.0\.0|169\.254\.")
"""What a mask keeps of the numbers in a line."""
_MAX_SHAPES = 10_000
"""Shapes of lines that are remembered: some megabytes."""
_LINES_BEFORE_FAILURE = 3
"""Everyday lines kept in front of the first failure: what was being done."""
_TAIL_LINES = 8
"""Last lines of a log, by which it is told whether the work goes on."""


def collect(blocks: Iterable[Block], signatures: Scanner, markers: Scanner) -> Evidence:
    """Read the blocks of a log once and keep what matters.

    Raises:
        LogError: a source cannot be read.
    """
    collector = Collector(signatures)
    for block in blocks:
        collector.add(MarkedBlock(block, markers.scan(block.data), signatures.scan(block.data)))
    return collector.evidence()


class Collector:
    """Keeps what matters of a log that is handed over block by block."""

    def __init__(self, signatures: Scanner) -> None:
        self._signatures = signatures
        self._folded = FoldedLines()
        # A line of an error is not to be lost between a thousand warnings, so each has its own.
        self._any, self._grave = Attention(), Attention()
        self._hits: dict[Pattern, SignatureHit] = {}
        self._masks: dict[bytes, str] = {}
        """Of lines that are no failures, by their shape."""
        self._raised = RaisedExceptions()
        self._first_blocks: list[BlockLines] = []
        self._last_block: BlockLines | None = None
        self._short = True
        self._failure_seen = False
        self._in_doubt = False
        self._evidence: Evidence | None = None
        self._total = 0

    def add(self, block: MarkedBlock) -> None:
        """Take in the next block."""
        if not self._short:
            self._folded.forget_places()
        grave = self._grave.choose(block, block.grave)
        for start in sorted(grave | self._any.choose(block, block.marks)):
            known = len(self._folded)
            self._take_marked(block, start)
            if len(self._folded) > known:
                (self._grave if start in grave else self._any).hears_news = True
        for number, end in block.hits:
            pattern = self._signatures.patterns[number]
            if pattern not in self._hits:
                line = evidence_line(block, block.start_of(end), end=end)
                self._hits[pattern] = SignatureHit(pattern, line)
        self._in_doubt = self._in_doubt or block.doubts()
        self._total += block.block.line_count
        self._remember(block)

    def evidence(self) -> Evidence:
        """What was kept; to be asked at the end."""
        if self._evidence is None:
            self._evidence = self._kept()
        return self._evidence

    def _kept(self) -> Evidence:
        sample = list(self._all_lines())
        tail = sample[-_TAIL_LINES:]
        if self._last_block is not None and not self._short:
            end = len(self._last_block.data)
            tail = evidence_lines_before(self._last_block, end, _TAIL_LINES)
        for line in sample or tail:
            self._folded.add(line)
        texts = [line.text for line in sample]
        human_written = self._short and any(map(is_human_written, texts))
        made_progress = self._made_progress(tail)
        ended = [line.text for line in tail]
        told = is_told_by_a_person(texts or ended)
        if told and not self._failure_seen and (complaints := _complaints(sample)):
            human_written = True
            for line in complaints:
                self._folded.add(line)
        lines = _most_telling(self._folded.by_grade())
        hit_lines = [hit.line for hit in self._hits.values()]
        return Evidence(
            lines=tuple(lines),
            hits=tuple(self._hits.values()),
            facts=find_facts(_with_stacks([*lines, *hit_lines])),
            raised=tuple(self._raised.read(self._signatures)),
            total_lines=self._total,
            is_log=not self._short or is_log(texts) or (made_progress and not human_written),
            made_progress=made_progress,
            ended_well=(
                not (told or self._in_doubt or is_remark(texts or ended)) and ends_well(ended)
            ),
            in_doubt=self._in_doubt,
            told=told,
            human_written=human_written,
            has_chinese=any(map(has_chinese, texts)),
        )

    def without_setbacks(self) -> str | None:
        """A short log without what went wrong on the way and was made good; None if there is
        nothing of that kind, or not all of it was made good."""
        texts = [line.text for line in self._all_lines()] if self._short else []
        left = without_setbacks(texts)
        return None if left is None else "\n".join(left)

    def _made_progress(self, tail: Iterable[EvidenceLine]) -> bool:
        """The end shows steps, and does not stop in the middle of something."""
        spoken = [line for line in tail if line.masked]
        if spoken and stops_midway(spoken[-1].text):
            return False
        calm = (Grade.CONTEXT, Grade.HINT)
        return any(
            self._folded.grade(line) in calm and shows_progress(line.text) for line in spoken
        )

    def _remember(self, block: BlockLines) -> None:
        few = self._total <= SHORT_LINES and len(self._first_blocks) < _MAX_SHORT_BLOCKS
        self._short = self._short and few
        if self._short:
            self._first_blocks.append(block)
        self._last_block = block

    def _all_lines(self) -> Iterator[EvidenceLine]:
        for block in self._first_blocks:
            yield from (evidence_line(block, start) for start in block.starts())

    def _take_marked(self, block: MarkedBlock, start: int) -> None:
        """Add a line that a marker fired on; one of a known shape is only counted."""
        shape = b"" if self._short else _shape(block.raw(start))
        if shape in self._masks:
            self._folded.count(self._masks[shape])
            return
        line = self._add_marked(block, start, block.markers_of(start))
        is_kept = shape and line.grade < Grade.ERROR and line.masked in self._folded
        if is_kept and len(self._masks) < _MAX_SHAPES:
            self._masks[shape] = line.masked

    def _add_marked(self, block: MarkedBlock, start: int, markers: set[int]) -> EvidenceLine:
        grade = block.grade(start, markers)
        stack = block.stack(start)
        if stack is not None and stack.exception is not None:
            exception = evidence_line(block, stack.exception, Grade.FATAL)
            self._raised.add(block, start, stack.exception, exception)
            self._folded.add(msgspec.structs.replace(exception, stack=stack.frames))
        if grade >= Grade.ERROR and not self._failure_seen:
            self._failure_seen = True
            for before in evidence_lines_before(block, start, _LINES_BEFORE_FAILURE):
                self._folded.add(before)
        line = evidence_line(block, start, grade)
        if grade is Grade.FATAL:
            self._raised.add(block, start, start, line)
        self._folded.add(line)
        return line


def _shape(raw: bytes) -> bytes:
    """What lines that differ in counters alone have in common; nothing for a line that has to be
    read as a whole."""
    if _KEPT_ADDRESS.search(raw):
        return b""
    return _COUNTER.sub(b"1", raw)


class Attention:
    """Chooses which marked lines of a block are looked at. Of a block that is full of trouble, what
    lies between its first and its last lines is not; of one that follows a block which only
    repeated what is known, even fewer are."""

    def __init__(self) -> None:
        self.hears_news = True
        """A line that was chosen said what no line before it did."""

    def choose(self, block: MarkedBlock, marks: Marks) -> set[int]:
        """The starts of the lines to look at."""
        first, last = (
            (_MAX_FIRST_MARKED_LINES, _MAX_LAST_MARKED_LINES)
            if self.hears_news
            else (_FIRST_REPEATED_LINES, _LAST_REPEATED_LINES)
        )
        at_begin = block.lines_of(marks, first)
        self.hears_news = len(at_begin) < first
        if self.hears_news:
            return at_begin  # these are all
        return at_begin | block.lines_of(reversed(marks), last)


def _most_telling(by_grade: Iterable[EvidenceLine]) -> list[EvidenceLine]:
    """The first lines that tell something; context only as far as it fits."""
    ordered = list(by_grade)
    telling = [line for line in ordered if line.grade is not Grade.CONTEXT][:_MAX_TELLING_LINES]
    context = [line for line in ordered if line.grade is Grade.CONTEXT]
    return telling + context[: max(_MIN_CONTEXT_LINES, SHORT_LINES - len(telling))]


def _complaints(lines: Sequence[EvidenceLine]) -> list[EvidenceLine]:
    """What a person says beside a program's lines that show no failure: it is the failure."""
    spoken = [line for line in lines if line.masked]
    said = [line for line in spoken if is_told_by_a_person([line.text])]
    if len(said) == len(spoken):
        return []
    return [msgspec.structs.replace(line, grade=Grade.HINT) for line in said]


def _with_stacks(lines: Iterable[EvidenceLine]) -> Iterator[str]:
    for line in lines:
        yield line.text
        yield from line.stack
