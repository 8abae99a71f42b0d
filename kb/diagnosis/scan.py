"""One pass over a log: the same scan serves the evidence and the job."""

from __future__ import annotations

import msgspec

from index.signatures import Scanner
from kb.checks.model import CollectedOutput
from kb.checks.recognise import OutputKeeper, Window, whole_output
from kb.containment import contained
from kb.evidence.collector import Collector
from kb.evidence.marked import MarkedBlock
from kb.job.lines import Line, LineKeeper, line_budget
from kb.job.recorder import DamagedDump, Dump, read_dump
from kb.log import Block, Collected, Log, Source


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


MAX_WINDOWS = 256
"""Kept of one log: 16 MB. Whoever gives the logs of many ranks pasted no output into each."""

MAX_COLLECTED = 20_000
"""Outputs kept of a script on many hosts, such as 500 hosts with 40 checks each."""


def scan_log(
    log: Log, signatures: Scanner, markers: Scanner, outputs: Scanner | None = None
) -> ScannedLog:
    """Read every source once, in bounded memory. `outputs` recognises the outputs of checks.

    Raises:
        LogError: a source cannot be read.
    """
    scanned = ScannedLog(Collector(signatures), {}, [], set(), [], [], [])
    budget = line_budget(len(log.sources))
    for source in log.sources:
        if source.collected:
            _take(source, source.collected, scanned, markers)
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
        for block in source.blocks():
            with contained(_loss(block), losses.append):
                marked = MarkedBlock(block, markers.scan(block.data))
                scanned.collector.add(marked)
                keeper.add(marked)
                output_keeper.add(block)
        scanned.windows.extend(output_keeper.windows()[: MAX_WINDOWS - len(scanned.windows)])
        scanned.losses.extend(losses[:1])
        scanned.files.setdefault(source.name or "", []).extend(keeper.lines())
    return scanned


def _take(source: Source, origin: Collected, scanned: ScannedLog, markers: Scanner) -> None:
    """Its lines are evidence; they tell nothing of what the ranks of the job did."""
    blocks = list(source.blocks())
    for block in blocks:
        with contained(_loss(block), scanned.losses.append):
            scanned.collector.add(MarkedBlock(block, markers.scan(block.data)))
    if blocks and len(scanned.collected) == MAX_COLLECTED:
        scanned.losses.append(f"only the first {MAX_COLLECTED:,} outputs of checks are compared")
    if len(scanned.collected) < MAX_COLLECTED:
        output = whole_output(source.name, blocks)
        scanned.collected.append(CollectedOutput(origin, output))


def _loss(block: Block) -> str:
    last = block.number_of(block.line_count - 1)
    return f"lines {block.first_line} to {last} of {block.source or 'the input'} are left out"
