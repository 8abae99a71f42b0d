"""One pass over a log: the same scan serves the evidence and the job.

Of a large file, other processes scan ranges: what is found in a block by itself. What follows from
the blocks together is read here in their order, so the result is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from index.progress import Notify
from index.signatures import Scanner
from kb.checks.model import CollectedOutput
from kb.checks.recognise import OutputKeeper, Window, whole_output
from kb.containment import contained
from kb.errors import KbError, NothingReadError
from kb.evidence.collector import Collector
from kb.evidence.marked import Findings, MarkedBlock
from kb.job.lines import Line, LineKeeper, line_budget
from kb.job.recorder import DamagedDump, Dump, read_dump
from kb.log import Block, Collected, Log, Source

if TYPE_CHECKING:
    from kb.log.ranges import Range


class ScannedLog(msgspec.Struct, frozen=True):
    """What is left of a log after the scan."""

    collector: Collector
    """Holds the evidence of all lines."""
    files: dict[str, list[Line]]
    """By file: the lines that tell of a job."""
    dumps: list[Dump]
    """The collectives that ranks recorded."""
    damaged_dumps: set[int]
    """The ranks whose record cannot be read."""
    losses: list[str]
    """Parts that are left out, and why; one of each source."""
    windows: list[Window]
    """Parts in which the output of a check was recognised."""
    collected: list[CollectedOutput]
    """Outputs whose check is known, because a script took them."""

    @property
    def is_empty(self) -> bool:
        """Whether no source had anything to read."""
        return not (any(self.files.values()) or self.dumps or self.damaged_dumps or self.collected)


MAX_WINDOWS = 256
"""Kept of one log: 16 MB. Whoever gives the logs of many ranks pasted no output into each."""

MAX_COLLECTED = 20_000
"""Outputs kept of a script on many hosts, such as 500 hosts with 40 checks each."""


class RangeScan(msgspec.Struct, frozen=True):
    """What was found in a range of a file."""

    key: str
    """Of the patterns."""
    blocks: list[Findings]
    """In their order; their lines are numbered from 1."""


def scan_range(part: Range, signatures: Scanner, markers: Scanner) -> RangeScan:
    """Scan a range of a file, for `scan_log`.

    Raises:
        LogError: the file was changed.
        OSError: it cannot be read.
    """
    blocks: list[Findings] = []
    in_doubt = False
    for block, extent in part.blocks():
        marked = MarkedBlock(block, markers.scan(block.data), signatures.scan(block.data))
        without_text = msgspec.structs.replace(block, content=extent)
        blocks.append(marked.findings(without_text, in_doubt=in_doubt))
        in_doubt = blocks[-1].in_doubt
    return RangeScan(_key(signatures, markers), blocks)


def scan_log(
    log: Log,
    signatures: Scanner,
    markers: Scanner,
    outputs: Scanner | None = None,
    ranges: Iterable[RangeScan] | None = None,
) -> ScannedLog:
    """Read every source once, in bounded memory. `outputs` recognises the outputs of checks. Of a
    log of one file, all its `ranges` may have been scanned elsewhere.

    Raises:
        LogError: a source cannot be read.
        NothingReadError: none of the sources can be read.
        KbError: a range was scanned for other patterns.
    """
    scanned = ScannedLog(Collector(signatures), {}, [], set(), [], [], [])
    budget = line_budget(len(log.sources))
    for source in log.sources:
        if source.collected:
            _take(source, source.collected, scanned, signatures, markers)
            continue
        dump = read_dump(source)
        if isinstance(dump, Dump):
            scanned.dumps.append(dump)
            continue
        if isinstance(dump, DamagedDump):
            scanned.damaged_dumps.add(dump.rank)
            if not dump.is_text:
                continue
        keeper = LineKeeper(budget)
        output_keeper = OutputKeeper(outputs or Scanner(()))
        losses: list[str] = []
        blocks = (
            _marked(source, signatures, markers, losses.append)
            if ranges is None
            else _joined(source, ranges, _key(signatures, markers))
        )
        for marked in blocks:
            with contained(_loss(marked.block), losses.append):
                scanned.collector.add(marked)
                keeper.add(marked)
                output_keeper.add(marked.block)
        scanned.windows.extend(output_keeper.windows()[: MAX_WINDOWS - len(scanned.windows)])
        scanned.losses.extend(losses[:1])
        scanned.files.setdefault(source.name or "", []).extend(keeper.lines())
    if log.losses and len(log.losses) == len(log.sources) and scanned.is_empty:
        raise NothingReadError(log.losses)
    return scanned


def _marked(
    source: Source, signatures: Scanner, markers: Scanner, notify: Notify
) -> Iterator[MarkedBlock]:
    for block in source.blocks():
        marked = None
        with contained(_loss(block), notify):
            marked = MarkedBlock(block, markers.scan(block.data), signatures.scan(block.data))
        if marked is not None:
            yield marked


def _joined(source: Source, ranges: Iterable[RangeScan], key: str) -> Iterator[MarkedBlock]:
    """The blocks of all ranges, with the numbers that their lines have in the file."""
    first_line = 1
    for part in ranges:
        if part.key != key:
            raise KbError("the incidents changed while the log was read; run it again")
        for found in part.blocks:
            block = msgspec.structs.replace(found.block, source=source.name, first_line=first_line)
            yield MarkedBlock.found(msgspec.structs.replace(found, block=block))
            first_line += block.line_count


def _key(signatures: Scanner, markers: Scanner) -> str:
    return f"{signatures.key} {markers.key}"


def _take(
    source: Source, origin: Collected, scanned: ScannedLog, signatures: Scanner, markers: Scanner
) -> None:
    """Its lines are evidence; they tell nothing of what the ranks of the job did."""
    blocks = list(source.blocks())
    for block in blocks:
        with contained(_loss(block), scanned.losses.append):
            marks, hits = markers.scan(block.data), signatures.scan(block.data)
            scanned.collector.add(MarkedBlock(block, marks, hits))
    if blocks and len(scanned.collected) == MAX_COLLECTED:
        scanned.losses.append(f"only the first {MAX_COLLECTED:,} outputs of checks are compared")
    if len(scanned.collected) < MAX_COLLECTED:
        output = whole_output(source.name, blocks)
        scanned.collected.append(CollectedOutput(origin, output))


def _loss(block: Block) -> str:
    last = block.number_of(block.line_count - 1)
    return f"lines {block.first_line} to {last} of {block.source or 'the input'} are left out"
