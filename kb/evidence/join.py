"""Further evidence, told after the log was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kb.evidence.facts import find_facts
from kb.evidence.markers import Grade
from kb.evidence.model import Evidence, EvidenceLine


def join(log: Evidence, told: Evidence) -> Evidence:
    """One evidence of both. What is told comes first: every word of it counts."""
    lines = (*map(_telling, told.lines), *log.lines)
    known = {hit.pattern for hit in told.hits}
    hits = (*told.hits, *(hit for hit in log.hits if hit.pattern not in known))
    return Evidence(
        lines=lines,
        hits=hits,
        facts=find_facts(_texts([*lines, *(hit.line for hit in hits)])),
        raised=(*log.raised, *told.raised),
        total_lines=log.total_lines + told.total_lines,
        is_log=log.is_log,
        made_progress=log.made_progress,
        ended_well=False,
        in_doubt=log.in_doubt or told.in_doubt,
        told=True,
        human_written=True,
        has_chinese=log.has_chinese or told.has_chinese,
    )


def _telling(line: EvidenceLine) -> EvidenceLine:
    return msgspec.structs.replace(line, grade=max(line.grade, Grade.HINT))


def _texts(lines: Iterable[EvidenceLine]) -> Iterator[str]:
    for line in lines:
        yield line.text
        yield from line.stack
