"""From a log of any length to the few lines that matter.

Every block is scanned at memory speed; only lines that a marker fired on are looked at one by
one. Short input is read whole: in a few lines typed by a person every word counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from index.documents import Pattern
from index.signatures import Scanner
from kb.evidence.facts import Facts, find_facts
from kb.evidence.marked import MarkedBlock
from kb.evidence.markers import Grade
from kb.log import Block
from kb.log.lines import BlockLines
from kb.log.mask import mask
from kb.log.prefixes import split_prefix

SHORT_LINES = 300
"""Input of at most so many lines is read line by line."""

_MOST_BLOCKS = 8
"""... unless its lines are so long that it takes more blocks: they are kept until the end."""

_FIRST_LINES = 300
_LAST_LINES = 100
"""Lines looked at in one block: so many of those marked at its begin and at its end."""
_MOST_DISTINCT = 2_000
_MOST_SHOWN = 120
_MOST_CONTEXT = 40
_LONGEST_LINE = 600
_BEFORE_FAILURE = 3
_TAIL = 8
_LOG_SHAPE = re.compile(
    r"^\s*(?:\[|<|\$ |>>> |#\d|at |File \"|\d{4}[-/]\d\d|\d\d:\d\d|[A-Z]+[:\]]|[\w./-]+:\d+:)"
    r"|\b(?:INFO|WARN(?:ING)?|ERROR|DEBUG|LOG)\b|\w[=|]\S|\s\|\s|/\w+/\w+|\d+%|\b\d+/\d+\b|\d+\.\d+"
)
_LOG_SHARE = 0.5
_FEW_LINES = 3
_PROGRESS = re.compile(
    r"\b(?:step|iter(?:ation)?|epoch|loss|global_step)\b\W{0,4}\d|\d(?:it/s|s/it)\b|\b200 OK\b"
    r"|\b(?:finished|completed?|done|saved|passed|succeeded|built in|pass)\b",
    re.IGNORECASE,
)
_CHINESE_PHRASE = re.compile(r"[\u4e00-\u9fff]{4}")
_MIDWAY = re.compile(r"(?:\.\.\.|…)\s*$|(?<!\d)0%\||\?it/s")
_PERSON = re.compile(
    # The first letters of what follows: at most places nothing has to be tried.
    r"(?=[IMmOoWwh?\uff1f])(?:"
    r"\b(?:I|[Mm]y|[Oo]ur) [a-z]|\bI'(?:m|ve)\b|[?\uff1f]\s*$"
    r"|\b[Ww]e (?:run|use|have|are (?:seeing|running|trying)|get|see|tried|train|want|only)\b"
    r"|\b(?:how|why|what) (?:do|does|is|can|should)\b"
    r")"
)


class EvidenceLine(msgspec.Struct, frozen=True):
    """One line of the user's log, with how often it or its like was printed."""

    file: str | None
    number: int
    text: str
    """As printed, without what a terminal would interpret."""
    masked: str
    grade: Grade
    rank: int | None = None
    host: str | None = None
    count: int = 1
    stack: tuple[str, ...] = ()
    """For an exception: its innermost frames, innermost first."""


class SignatureHit(msgspec.Struct, frozen=True):
    """A pattern and the first line it was seen on."""

    pattern: Pattern
    line: EvidenceLine


class Evidence(msgspec.Struct, frozen=True):
    """What a diagnosis works on."""

    lines: tuple[EvidenceLine, ...]
    """Most telling first."""
    hits: tuple[SignatureHit, ...]
    facts: Facts
    total_lines: int
    is_log: bool
    """Printed by programs, at least in most of its lines."""
    made_progress: bool
    """It shows steps, requests or an end, so what it was started for happens."""
    human_written: bool
    """A person speaks in it: whoever asks has a problem, even if no line shows one."""


def collect(blocks: Iterable[Block], signatures: Scanner, markers: Scanner) -> Evidence:
    """Read the blocks of a log once and keep what matters.

    Raises:
        LogError: a source cannot be read.
    """
    collector = Collector(signatures)
    for block in blocks:
        collector.add(MarkedBlock(block, markers.scan(block.data)))
    return collector.evidence()


class Collector:
    """Keeps what matters of a log that is handed over block by block."""

    def __init__(self, signatures: Scanner) -> None:
        self._signatures = signatures
        self._folded: dict[str, EvidenceLine] = {}
        self._hits: dict[Pattern, SignatureHit] = {}
        self._first_blocks: list[BlockLines] = []
        self._last_block: BlockLines | None = None
        self._short = True
        self._folded_lines: set[tuple[str | None, int]] = set()
        self._failure_seen = False
        self._total = 0

    def add(self, block: MarkedBlock) -> None:
        """Take in the next block."""
        if not self._short:
            self._folded_lines.clear()
        marked = _marked_lines(block)
        for start in sorted(marked):
            self._add_marked(block, start, marked[start])
        for number, end in self._signatures.scan(block.data):
            pattern = self._signatures.patterns[number]
            if pattern not in self._hits:
                line = _line(block, block.start_of(end))
                self._hits[pattern] = SignatureHit(pattern, line)
        self._total += block.block.line_count
        self._remember(block)

    def evidence(self) -> Evidence:
        """What was kept; to be asked once, at the end."""
        sample = list(self._all_lines())
        tail = sample[-_TAIL:]
        if self._last_block is not None and not self._short:
            end = len(self._last_block.data)
            tail = _lines_before(self._last_block, end, _TAIL)
        for line in sample or tail:
            self._fold(line)
        human_written = self._short and any(_is_spoken(line.text) for line in sample)
        made_progress = self._is_progressing(tail)
        lines = _most_telling(self._folded.values())
        hit_lines = [hit.line for hit in self._hits.values()]
        return Evidence(
            lines=tuple(lines),
            hits=tuple(self._hits.values()),
            facts=find_facts(_with_stacks([*lines, *hit_lines])),
            total_lines=self._total,
            is_log=not self._short or _is_log(sample) or (made_progress and not human_written),
            made_progress=made_progress,
            human_written=human_written,
        )

    def _is_progressing(self, tail: list[EvidenceLine]) -> bool:
        """The end shows steps, and does not stop in the middle of something."""
        spoken = [line for line in tail if line.masked]
        calm = [
            line.text
            for line in spoken
            if self._folded.get(line.masked, line).grade in (Grade.CONTEXT, Grade.HINT)
        ]
        midway = bool(spoken) and _MIDWAY.search(spoken[-1].text) is not None
        return not midway and any(_PROGRESS.search(text) for text in calm)

    def _remember(self, block: BlockLines) -> None:
        few = self._total <= SHORT_LINES and len(self._first_blocks) < _MOST_BLOCKS
        self._short = self._short and few
        if self._short:
            self._first_blocks.append(block)
        self._last_block = block

    def _all_lines(self) -> Iterator[EvidenceLine]:
        for block in self._first_blocks:
            yield from (_line(block, start) for start in block.starts())

    def _add_marked(self, block: MarkedBlock, start: int, markers: set[int]) -> None:
        grade = block.grade(start, markers)
        stack = block.stack(start)
        if stack is not None and stack.exception is not None:
            exception = _line(block, stack.exception, Grade.FATAL)
            self._fold(msgspec.structs.replace(exception, stack=stack.frames))
        if grade >= Grade.ERROR and not self._failure_seen:
            self._failure_seen = True
            for before in _lines_before(block, start, _BEFORE_FAILURE):
                self._fold(before)
        self._fold(_line(block, start, grade))

    def _fold(self, line: EvidenceLine) -> None:
        """Add a line, or count it with the one that says the same; a line counts once."""
        if not line.masked:
            return
        place = (line.file, line.number)
        again = place in self._folded_lines
        known = self._folded.get(line.masked)
        if known is not None:
            line = msgspec.structs.replace(
                known,
                count=known.count + (not again),
                grade=max(known.grade, line.grade),
                stack=known.stack or line.stack,
            )
        elif len(self._folded) >= _MOST_DISTINCT and line.grade is not Grade.FATAL:
            return
        self._folded[line.masked] = line
        self._folded_lines.add(place)


def _line(block: BlockLines, start: int, grade: Grade = Grade.CONTEXT) -> EvidenceLine:
    text = block.text(start)
    if len(text) > _LONGEST_LINE:
        text = text[:_LONGEST_LINE] + " ..."
    spoken = split_prefix(text)
    return EvidenceLine(
        file=block.block.source,
        number=block.number(start),
        text=text,
        masked=mask(spoken.text).strip(),
        grade=grade,
        rank=spoken.rank,
        host=spoken.host,
    )


def _lines_before(block: BlockLines, offset: int, count: int) -> list[EvidenceLine]:
    starts = list(islice(block.starts_before(offset), count))
    return [_line(block, start) for start in reversed(starts)]


def _marked_lines(block: MarkedBlock) -> dict[int, set[int]]:
    """The lines to look at with the markers that fired on them. Of a block that is full of trouble,
    what lies between is not even sorted by line."""
    last = block.markers_by_line(reversed(block.marks), _LAST_LINES)
    return last | block.markers_by_line(block.marks, _FIRST_LINES)


def _most_telling(lines: Iterable[EvidenceLine]) -> list[EvidenceLine]:
    """By grade, then in the order of the log; context only as far as it fits."""
    ordered = sorted(lines, key=lambda line: -line.grade)
    telling = [line for line in ordered if line.grade is not Grade.CONTEXT][:_MOST_SHOWN]
    context = [line for line in ordered if line.grade is Grade.CONTEXT]
    return telling + context[: max(_MOST_CONTEXT, SHORT_LINES - len(telling))]


def _with_stacks(lines: Iterable[EvidenceLine]) -> Iterator[str]:
    for line in lines:
        yield line.text
        yield from line.stack


def _is_spoken(line: str) -> bool:
    """Words of a person, not of a program."""
    chinese = _CHINESE_PHRASE.search(line) and not _LOG_SHAPE.match(line)
    return bool(chinese or _PERSON.search(line))


def _is_log(lines: list[EvidenceLine]) -> bool:
    """Most lines look like a program's; of a few lines, the beginnings must."""
    spoken = [line.text for line in lines if line.text.strip()]
    looks = _LOG_SHAPE.match if len(spoken) <= _FEW_LINES else _LOG_SHAPE.search
    shaped = sum(bool(looks(text)) for text in spoken)
    return bool(spoken) and shaped >= _LOG_SHARE * len(spoken)
