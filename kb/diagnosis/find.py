"""Looks records up by words and meaning, as one looks into a library: nothing is diagnosed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from index.documents import Candidate
from kb.corpus.base import KnowledgeBase
from kb.corpus.document import from_payload
from kb.corpus.guide_document import from_guide_payload
from kb.corpus.tier import TierName
from kb.diagnosis.query import to_query
from kb.evidence import Evidence, collect
from kb.guides import Record
from kb.incident import Kind
from kb.log import Block

MIN_LIKENESS = 0.3
"""From 0 to 1. Below it, a record shares one or two words, and not the subject."""


class FoundRecord(msgspec.Struct, frozen=True):
    """A record that is near to what was looked for."""

    record: Record
    likeness: float
    """0 to 1. Says nothing of the cause of a failure."""


def find_records(text: str, kinds: Collection[Kind], knowledge: KnowledgeBase) -> list[FoundRecord]:
    """The records of some kinds that are near to a text, best first. One that it names by its id is
    the first."""
    found = [one for one in _near(text, knowledge) if one.record.kind in kinds]
    return sorted(found, key=lambda one: (-one.likeness, one.record.id))


def evidence_in(text: str, knowledge: KnowledgeBase) -> Evidence:
    """What a text tells, whatever it is."""
    lines = [Block(None, 1, text.count("\n") + 1, text.encode("utf-8", "replace"))]
    return collect(lines, knowledge.signatures, knowledge.markers)


def _near(text: str, knowledge: KnowledgeBase) -> Iterator[FoundRecord]:
    query = to_query(evidence_in(text, knowledge))
    for tier in (TierName.CURATED, TierName.GUIDES):
        for candidate in knowledge.search(query, tier):
            likeness = 1.0 if candidate.id in text.split() else _likeness(candidate)
            if likeness >= MIN_LIKENESS:
                yield FoundRecord(_record(candidate, tier), round(likeness, 3))


def _likeness(candidate: Candidate) -> float:
    """Words and meaning count the same: each misses what the other finds."""
    return (candidate.coverage + max(candidate.cosine, 0.0)) / 2


def _record(candidate: Candidate, tier: TierName) -> Record:
    if tier is TierName.GUIDES:
        return from_guide_payload(candidate.payload).guide
    return from_payload(candidate.payload).incident
