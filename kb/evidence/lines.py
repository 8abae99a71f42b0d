"""Lines of a block as evidence: cut to a length, masked, with rank and host."""

from __future__ import annotations

from itertools import islice

from kb.evidence.markers import Grade
from kb.evidence.model import EvidenceLine
from kb.log.lines import BlockLines
from kb.log.mask import mask
from kb.log.prefixes import split_prefix

_MAX_LINE_CHARACTERS = 600
"""A longer line is cut: several lines of a screen hold what a message says."""
_END_CHARACTERS = 200
"""Of them, those of its end: a long head of fields may stand before the message."""


def evidence_line(
    block: BlockLines, start: int, grade: Grade = Grade.CONTEXT, end: int | None = None
) -> EvidenceLine:
    """The line that starts at this offset; what ends at offset `end` is not cut off."""
    text = block.text(start)
    if len(text) > _MAX_LINE_CHARACTERS:
        before = None if end is None else block.raw(start)[: end - start]
        text = _cut(text, None if before is None else len(before.decode("utf-8", "replace")))
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


def _cut(text: str, end: int | None) -> str:
    """The head and the end of a line, or else what stands before the place `end`."""
    head = _MAX_LINE_CHARACTERS - _END_CHARACTERS
    if end is None or end <= head or end > len(text) - _END_CHARACTERS:
        return f"{text[:head]} ... {text[-_END_CHARACTERS:]}"
    return f"... {text[max(0, end - head) : end + _END_CHARACTERS]} ..."


def evidence_lines_before(block: BlockLines, offset: int, count: int) -> list[EvidenceLine]:
    """At most `count` lines that end at an offset, in their order."""
    starts = list(islice(block.starts_before(offset), count))
    return [evidence_line(block, start) for start in reversed(starts)]
