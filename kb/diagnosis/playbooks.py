"""Which playbooks treat the symptom of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from index.documents import Pattern
from kb.corpus.base import KnowledgeBase
from kb.corpus.tier import TierName
from kb.diagnosis.confidence import share_among_playbooks
from kb.diagnosis.features import PlaybookFeatures
from kb.diagnosis.model import Match, PlaybookMatch
from kb.diagnosis.retrieval import to_query
from kb.evidence import Evidence
from kb.playbook import Playbook

MAX_PLAYBOOKS = 3
"""Number of playbooks of a diagnosis; a person who is in a hurry reads the first."""

MIN_PLAYBOOK_CONFIDENCE = 0.01
"""A playbook below this confidence is not shown."""

MIN_LEADING_SHARE = 0.05
"""Of what the incidents leave: a real report whose best playbook has less is seldom helped."""

MAX_NAMED_LINES = 8
"""Lines compared with the names of symptoms, most telling first."""


def playbooks_for(
    evidence: Evidence,
    incidents: Sequence[Match],
    knowledge: KnowledgeBase,
) -> tuple[PlaybookMatch, ...]:
    """The playbooks of the symptom, best first. They share what the incidents leave; none is named
    where the first one has hardly any of it."""
    left = 1.0 - sum(match.confidence for match in incidents)
    playbooks = (
        knowledge.guides.playbooks if evidence.lines and left > MIN_PLAYBOOK_CONFIDENCE else []
    )
    if not playbooks:
        return ()
    shares = share_among_playbooks(_features(playbooks, evidence, incidents, knowledge), left)
    ranked = sorted(
        (
            PlaybookMatch(playbook, round(share, 4))
            for playbook, share in zip(playbooks, shares, strict=True)
        ),
        key=lambda match: (-match.confidence, match.playbook.id),
    )
    if ranked[0].confidence < MIN_LEADING_SHARE * left:
        return ()
    return tuple(
        match for match in ranked[:MAX_PLAYBOOKS] if match.confidence >= MIN_PLAYBOOK_CONFIDENCE
    )


def patterns_seen(
    evidence: Evidence, knowledge: KnowledgeBase
) -> Mapping[Pattern, tuple[str, ...]]:
    """The patterns of guides that a line of the evidence has, and whose they are."""
    text = "\n".join(line.text for line in evidence.lines).encode()
    scanner = knowledge.guides.patterns
    found = {scanner.patterns[number] for number, _end in scanner.scan(text)}
    return {pattern: knowledge.guides.owners[pattern] for pattern in found}


def _features(
    playbooks: Sequence[Playbook],
    evidence: Evidence,
    incidents: Sequence[Match],
    knowledge: KnowledgeBase,
) -> list[PlaybookFeatures]:
    query = msgspec.structs.replace(
        to_query(evidence), patterns=frozenset(patterns_seen(evidence, knowledge))
    )
    found = {one.id: one for one in knowledge.search(query, TierName.GUIDES)}
    lines = [line.text for line in evidence.lines[:MAX_NAMED_LINES]]
    likeness = knowledge.guides.symptom_names.likeness(lines)
    features = []
    for playbook in playbooks:
        candidate = found.get(playbook.id)
        linked = {name for cause in playbook.body.causes for name in cause.incidents}
        features.append(
            PlaybookFeatures(
                lines=sum(candidate.pattern_shares.values()) if candidate else 0.0,
                named=likeness.get(playbook.id, 0.0),
                coverage=candidate.coverage if candidate else 0.0,
                cosine=max(candidate.cosine, 0.0) if candidate else 0.0,
                linked=sum(one.confidence for one in incidents if one.incident.id in linked),
            )
        )
    return features
