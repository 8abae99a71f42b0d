"""Which playbooks treat the symptom of a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from index.documents import Pattern
from kb.corpus.base import KnowledgeBase
from kb.diagnosis.confidence import share_among_playbooks
from kb.diagnosis.features import PlaybookFeatures
from kb.diagnosis.model import Match, PlaybookMatch
from kb.diagnosis.symptoms import symptom_features
from kb.evidence import Evidence

MAX_PLAYBOOKS = 3
"""Number of playbooks of a diagnosis; a person who is in a hurry reads the first."""

MIN_SHARE = 0.01
"""Of what the incidents leave: a playbook that has less is not shown. A confident match leaves
little, and may be wrong: the symptom is named behind it all the same."""

MIN_PLAYBOOK_CONFIDENCE = 0.0001
"""Confidences are rounded to four digits; a playbook below this value has none."""

MIN_LEADING_SHARE = 0.05
"""The same for the first: a real report whose best playbook has less is seldom helped."""


def playbooks_for(
    evidence: Evidence,
    incidents: Sequence[Match],
    knowledge: KnowledgeBase,
) -> tuple[PlaybookMatch, ...]:
    """The playbooks of the symptom, best first. They share what the incidents leave; none is named
    where the first one has hardly any of it."""
    left = left_by(incidents)
    playbooks = knowledge.guides.playbooks
    if not evidence.lines or not playbooks or left <= 0.0:
        return ()
    shares = share_among_playbooks(playbook_features(evidence, incidents, knowledge), left)
    ranked = sorted(zip(shares, playbooks, strict=True), key=lambda pair: (-pair[0], pair[1].id))[
        :MAX_PLAYBOOKS
    ]
    if ranked[0][0] < MIN_LEADING_SHARE * left:
        return ()
    return tuple(
        PlaybookMatch(playbook, round(share, 4), round(share / left, 4))
        for share, playbook in ranked
        if share >= max(MIN_SHARE * left, MIN_PLAYBOOK_CONFIDENCE)
    )


def left_by(incidents: Iterable[Match]) -> float:
    """What is left of 1. Incidents that only the kind of failure names are added to those of the
    log and may come to more; then it is what the first leaves."""
    confidences = [match.confidence for match in incidents]
    left = 1.0 - sum(confidences)
    return left if left > 0.0 else 1.0 - max(confidences, default=0.0)


def patterns_seen(
    evidence: Evidence, knowledge: KnowledgeBase
) -> Mapping[Pattern, tuple[str, ...]]:
    """The patterns of checks that a line of the evidence has, and whose they are."""
    text = "\n".join(line.text for line in evidence.lines).encode()
    scanner = knowledge.guides.patterns
    found = {scanner.patterns[number] for number, _end in scanner.scan(text)}
    return {pattern: knowledge.guides.owners[pattern] for pattern in found}


def playbook_features(
    evidence: Evidence, incidents: Sequence[Match], knowledge: KnowledgeBase
) -> list[PlaybookFeatures]:
    """Of all playbooks, in the order of the shelf. `incidents` are those that may be the cause."""
    linked: dict[str, float] = defaultdict(float)
    for one in incidents:
        for name in knowledge.guides.symptoms_of(one.incident):
            linked[name] += one.confidence
    return [
        msgspec.structs.replace(features, linked=linked[playbook.id])
        for playbook, features in zip(
            knowledge.guides.playbooks, symptom_features(evidence, knowledge), strict=True
        )
    ]
