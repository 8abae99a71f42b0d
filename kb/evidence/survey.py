"""Which lines of a block are worth a diagnosis: without a search for what is known about them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from index.signatures import Scanner
from kb.evidence.collector import Attention
from kb.evidence.lines import evidence_line
from kb.evidence.marked import MarkedBlock
from kb.evidence.markers import Grade
from kb.evidence.model import EvidenceLine
from kb.log import Block


class Survey(msgspec.Struct, frozen=True):
    """What strikes in a block."""

    lines: tuple[EvidenceLine, ...]
    """Those that state a failure or that a record declares, in their order."""
    in_doubt: bool
    """A line says in passing that something went wrong."""


def survey(block: Block, signatures: Scanner, markers: Scanner) -> Survey:
    """Scan a block once; of a block full of trouble, its first and last lines are looked at."""
    marked = MarkedBlock(block, markers.scan(block.data))
    grades = {**dict(_declared(marked, signatures)), **dict(_failures(marked))}
    lines = tuple(evidence_line(marked, start, grades[start]) for start in sorted(grades))
    return Survey(lines, marked.doubts())


def _failures(block: MarkedBlock) -> Iterator[tuple[int, Grade]]:
    """The starts of the lines that state a failure."""
    for start in Attention().choose(block, block.grave):
        grade = block.grade(start, block.markers_of(start))
        if grade >= Grade.ERROR:
            yield start, grade


def _declared(block: MarkedBlock, signatures: Scanner) -> Iterator[tuple[int, Grade]]:
    """The first line of each pattern of a record."""
    seen = set()
    for pattern, end in signatures.scan(block.data):
        if pattern not in seen:
            seen.add(pattern)
            yield block.start_of(end), Grade.CONTEXT
