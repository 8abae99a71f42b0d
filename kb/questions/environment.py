"""Questions about the job itself: systems, number of nodes, accelerators, versions.

The records' environments say which answer each of them expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from kb.evidence import Evidence
from kb.evidence.accelerators import FAMILIES, names_family
from kb.evidence.systems import system_patterns, systems_in
from kb.incident import Incident, Topology
from kb.questions.belief import Belief, Option, QuestionPlan, Topic
from kb.questions.gain import expected_gain
from kb.questions.observe import NO, PRINTED, YES
from kb.questions.picks import one_of
from kb.questions.versions import first_release
from kb.rules.rows import Accelerator

ONE_NODE, SEVERAL_NODES = "one", "several"

RUNS_IF_NEEDED = 0.85
"""Likelihood that a user with this incident names a system that the record is about."""
RUNS_IF_NOT = 0.3
"""Likelihood that a user with another incident names it all the same."""
FITS_TOPOLOGY = 0.93
"""Likelihood that a user with this incident runs on as many nodes as the record says: one or
several."""
FITS_HARDWARE = 0.9
"""Likelihood that a user with this incident has accelerators that the record names."""
OLDER_IF_FIXED = 0.93
"""Likelihood that a user with a fixed incident runs a version before the fix."""

_MAX_SYSTEMS_OFFERED = 3
"""Systems in one question, besides "none of these"; more are tedious to read."""


class KnownEnvironment(msgspec.Struct, frozen=True):
    """What is known of the job already, from its log or from the user."""

    systems: frozenset[str] = frozenset()
    """Those that were seen, or asked about."""
    several_nodes: bool | None = None
    versions: dict[str, str] = {}
    printed: frozenset[str] = frozenset()
    """What the log states exactly; see `PRINTED`."""

    def updated_with(self, further: KnownEnvironment) -> KnownEnvironment:
        """Both together; where they differ, the further ones hold."""
        several = self.several_nodes if further.several_nodes is None else further.several_nodes
        return KnownEnvironment(
            systems=self.systems | further.systems,
            several_nodes=several,
            versions={**self.versions, **further.versions},
            printed=self.printed | further.printed,
        )


def seen_in(evidence: Evidence) -> KnownEnvironment:
    """What the log says."""
    hosts = {line.host for line in evidence.lines if line.host}
    return KnownEnvironment(
        systems=frozenset(evidence.facts.systems),
        several_nodes=True if len(hosts) > 1 else None,
        versions=evidence.facts.versions,
        printed=frozenset(
            name for name in PRINTED if getattr(evidence.facts, name) not in (None, ())
        ),
    )


def environment_questions(
    belief: Belief, candidates: Sequence[Incident], known: KnownEnvironment
) -> Iterator[QuestionPlan]:
    """The questions about the job that tell the candidates apart, without what is known."""
    yield from _systems(belief, candidates, known.systems)
    if known.several_nodes is None:
        yield nodes(candidates)
    yield hardware(candidates)
    yield from _versions(candidates, known.versions)


def systems_of(incident: Incident) -> frozenset[str]:
    """What runs where the incident happens, by the names that logs are searched for."""
    header = incident.header
    return _known_systems((*header.systems, *header.environment.frameworks))


@lru_cache(1024)
def _known_systems(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(system_patterns().keys() & set(names)) | frozenset(
        systems_in("\n".join(names))
    )


def _systems(
    belief: Belief, candidates: Sequence[Incident], known: frozenset[str]
) -> Iterator[QuestionPlan]:
    """Grow the list of systems to pick from as long as it tells more."""
    named = {incident.id: systems_of(incident) - known for incident in candidates}
    left = sorted(frozenset().union(*named.values()))
    chosen: list[str] = []
    while left and len(chosen) < _MAX_SYSTEMS_OFFERED:
        best = max(left, key=lambda name: expected_gain(belief, systems([*chosen, name], named)))
        left.remove(best)
        chosen.append(best)
    if chosen:
        yield systems(chosen, named)


def systems(names: Sequence[str], needed: Mapping[str, frozenset[str]]) -> QuestionPlan:
    """Which of these systems runs; `needed` has those of each record."""
    wanted = frozenset(names)
    return QuestionPlan(
        topic=Topic.SYSTEMS,
        key="systems:" + ",".join(names),
        text="Which of these does the job use?",
        options=one_of(names, needed, if_needed=RUNS_IF_NEEDED, if_not=RUNS_IF_NOT),
        records=tuple(i for i, needs in needed.items() if needs & wanted),
    )


def nodes(candidates: Iterable[Incident]) -> QuestionPlan:
    """One node or several; records of either kind expect theirs."""
    several = {
        incident.id: FITS_TOPOLOGY if kind is Topology.MULTI_NODE else 1 - FITS_TOPOLOGY
        for incident in candidates
        if (kind := incident.header.environment.topology) is not Topology.ANY
    }
    one = {identifier: 1 - chance for identifier, chance in several.items()}
    return QuestionPlan(
        topic=Topic.NODES,
        key="nodes",
        text="On how many nodes does the job run?",
        options=(Option(ONE_NODE, one, 0.5), Option(SEVERAL_NODES, several, 0.5)),
        records=tuple(several),
    )


def families_of(incident: Incident) -> list[Accelerator]:
    """The accelerators that a record names."""
    text = incident.header.environment.hardware
    return [family for family in FAMILIES if names_family(family, text)]


def hardware(candidates: Iterable[Incident]) -> QuestionPlan:
    """Which family of accelerators."""
    named = {incident.id: found for incident in candidates if (found := families_of(incident))}
    return QuestionPlan(
        topic=Topic.HARDWARE,
        key="hardware",
        text="Which accelerators does the job use?",
        options=tuple(
            Option(
                family.name,
                {identifier: _fits(family, found) for identifier, found in named.items()},
                family.share,
            )
            for family in FAMILIES
        ),
        records=tuple(named),
    )


def _fits(family: Accelerator, named: Sequence[Accelerator]) -> float:
    if len(named) == len(FAMILIES):
        return 1 / len(FAMILIES)
    if family in named:
        return FITS_HARDWARE / len(named)
    return (1 - FITS_HARDWARE) / (len(FAMILIES) - len(named))


def _versions(candidates: Iterable[Incident], known: Mapping[str, str]) -> Iterator[QuestionPlan]:
    for incident in candidates:
        fix = first_release(incident)
        if fix is None or fix.system in known:
            continue
        newer = {incident.id: 1 - OLDER_IF_FIXED}
        older = {incident.id: OLDER_IF_FIXED}
        yield QuestionPlan(
            topic=Topic.VERSION,
            key=f"version:{fix.system} {fix.version}",
            text=f"Does it run {fix.system} {fix.version} or newer?",
            options=(Option(YES, newer, 0.5), Option(NO, older, 0.5)),
            records=(incident.id,),
        )
