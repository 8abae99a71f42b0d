"""One pass over a log: the same scan serves the evidence and the job."""

from __future__ import annotations

import msgspec

from index.signatures import Scanner
from kb.evidence.collector import Collector
from kb.evidence.marked import MarkedBlock
from kb.job.lines import Line, LineKeeper, line_budget
from kb.job.recorder import Dump, read_dump
from kb.log import Log


class ScannedLog(msgspec.Struct, frozen=True):
    """What is left of a log after the scan."""

    collector: Collector
    """Holds the evidence of all lines."""
    files: dict[str, list[Line]]
    """By file: the lines that tell of a job."""
    dumps: list[Dump]
    """The collectives that ranks recorded."""


def scan_log(log: Log, signatures: Scanner, markers: Scanner) -> ScannedLog:
    """Read every source once, in bounded memory.

    Raises:
        LogError: a source cannot be read.
    """
    scanned = ScannedLog(Collector(signatures), {}, [])
    budget = line_budget(len(log.sources))
    for source in log.sources:
        dump = read_dump(source)
        if dump is not None:
            scanned.dumps.append(dump)
            continue
        keeper = LineKeeper(budget)
        for block in source.blocks():
            marked = MarkedBlock(block, markers.scan(block.data))
            scanned.collector.add(marked)
            keeper.add(marked)
        scanned.files.setdefault(source.name or "", []).extend(keeper.lines())
    return scanned
