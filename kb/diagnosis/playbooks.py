"""Which playbooks treat the symptom of a log, and what is to be checked first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import msgspec

from index.documents import Pattern
from kb.check import Check, Command, JobState, Place, Risk
from kb.corpus.base import KnowledgeBase
from kb.corpus.tier import TierName
from kb.diagnosis.confidence import share_among_playbooks
from kb.diagnosis.features import PlaybookFeatures
from kb.diagnosis.model import Match, NextCheck, PlaybookMatch
from kb.diagnosis.retrieval import to_query
from kb.evidence import Evidence
from kb.playbook import CheckStep, Playbook

MAX_PLAYBOOKS = 3
"""Number of playbooks of a diagnosis; a person who is in a hurry reads the first."""

MIN_PLAYBOOK_CONFIDENCE = 0.01
"""A playbook below this confidence is not shown."""

MIN_LEADING_SHARE = 0.05
"""Of what the incidents leave: a real report whose best playbook has less is seldom helped."""

MAX_NAMED_LINES = 8
"""Lines compared with the names of symptoms, most telling first."""

MAX_QUICK_SECONDS = 60
"""A check that takes longer waits for those that do not."""

_HARMLESS = (Risk.READ_ONLY, Risk.PAUSES_PROCESS)
"""What may be run at once: a pause of some seconds harms no job that is in trouble."""

_PLACES = {"kubernetes": Place.K8S, "docker": Place.DOCKER, "slurm": Place.SLURM}
"""The environment that a log names, the innermost first."""


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


def next_check(
    playbooks: Sequence[PlaybookMatch],
    evidence: Evidence,
    knowledge: KnowledgeBase,
    *,
    job_ended: bool,
    taken: Set[str] = frozenset(),
) -> NextCheck | None:
    """The first check of the leading playbook that can be run and whose output is not there yet:
    harmless ones first, then quick ones, else in the order of the playbook. `taken` are the checks
    whose output is there for certain."""
    if not playbooks:
        return None
    read = {name for owners in _seen(evidence, knowledge).values() for name in owners} | taken
    known: list[tuple[CheckStep, Check]] = []
    for step in playbooks[0].playbook.body.checks:
        check = knowledge.guides.by_id.get(step.check)
        if isinstance(check, Check) and check.id not in read:
            known.append((step, check))

    def price(pair: tuple[CheckStep, Check]) -> tuple[bool, bool, bool]:
        header = pair[1].header
        return (
            job_ended and header.needs_job is JobState.RUNNING,
            header.cost.risk not in _HARMLESS,
            header.cost.seconds > MAX_QUICK_SECONDS,
        )

    if not known:
        return None
    step, check = min(known, key=price)  # the first of equals
    return NextCheck(check, _command(check, evidence), step.why)


def _command(check: Check, evidence: Evidence) -> Command:
    named = (place for system, place in _PLACES.items() if system in evidence.facts.systems)
    return check.command(next(named, Place.BARE))


def _seen(evidence: Evidence, knowledge: KnowledgeBase) -> Mapping[Pattern, tuple[str, ...]]:
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
        to_query(evidence), patterns=frozenset(_seen(evidence, knowledge))
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
