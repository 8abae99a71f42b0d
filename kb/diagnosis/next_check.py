"""The next check: the one that is expected to tell most about the cause, for its price."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import msgspec

from kb.check import Check, Command, Cost, JobState, Loss, Place, Risk
from kb.corpus.base import KnowledgeBase
from kb.corpus.guide_shelf import GuideShelf
from kb.diagnosis.confidence import belief_of_causes
from kb.diagnosis.model import NextCheck, PlaybookMatch
from kb.diagnosis.observed import Standing
from kb.diagnosis.playbooks import patterns_seen
from kb.evidence import Evidence
from kb.playbook import CheckStep, Playbook
from kb.questions import Belief, QuestionPlan, Topic
from kb.questions.choose import MIN_GAIN_BITS
from kb.questions.gain import could_change_order, expected_gain
from kb.questions.picks import one_of

SHOWN_IF_CAUSE = 0.8
"""Likelihood that a check shows what the playbook names for it, where this is the cause."""
SHOWN_IF_NOT = 0.2
"""Likelihood that it shows something that is named for other causes, where it is none of them."""

LATER_STEP = 0.8
"""What a step of a playbook is worth beside the one before it, of equal gain and price: the expert
who ordered them knew more than the outcomes say."""
NEAR_EQUAL = 0.8
"""Share of the best worth from which on the evidence clock decides."""

UNIT_SECONDS = 60
"""A check that takes this long costs twice as much as one that takes no time, and each doubling
costs as much again: nobody minds a second more, and of ten minutes or twenty both are long."""
_RISKS = {
    Risk.READ_ONLY: 1.0,
    Risk.PAUSES_PROCESS: 1.2,
    Risk.LOADS_GPU: 3.0,
    Risk.LOADS_FABRIC: 4.0,
    Risk.RESTARTS: 5.0,
}
"""Factors of the price. A pause of some seconds harms no job that is in trouble; a load disturbs
the neighbours; a new run takes as long as the failure takes to come back."""

_CLOCK = (Loss.EXIT, Loss.RESTART, Loss.ROTATION, Loss.REBOOT)
"""What destroys evidence, the soonest first."""

_ELSEWHERE = 0.1
"""What a check of a scheduler is worth where the log names another one: it may name only one of
two."""
_SCHEDULERS = frozenset({"kubernetes", "slurm", "pbs", "lsf", "flux"})

_PLACES = {"kubernetes": Place.K8S, "docker": Place.DOCKER, "slurm": Place.SLURM}
"""The environment that a log names, the innermost first."""


class _Offer(msgspec.Struct, frozen=True):
    """A check that can be run, and what it is good for."""

    check: Check
    why: str
    gain: float
    """In bits."""
    position: int
    """In its playbook, from 0."""


def next_check(
    standing: Standing,
    evidence: Evidence,
    knowledge: KnowledgeBase,
    *,
    read: frozenset[str],
    job_ended: bool,
) -> NextCheck | None:
    """The check of the leading playbooks with the largest expected gain for its price; where
    several are nearly worth the same, the one whose evidence is lost soonest.

    `read` are the checks whose output is there, beside those that the evidence shows. None when no
    outcome would change what to do next.
    """
    if not standing.playbooks:
        return None
    seen = read.union(*patterns_seen(evidence, knowledge).values())
    belief = _belief(standing)
    offers = list(_offers(standing.playbooks, belief, knowledge.guides, seen, job_ended=job_ended))
    if not offers:
        return None
    worth = [
        _worth(offer, offers, job_ended=job_ended) * _fit(offer.check, evidence.facts.systems)
        for offer in offers
    ]
    near = [
        offer
        for offer, value in zip(offers, worth, strict=True)
        if value >= NEAR_EQUAL * max(worth)
    ]
    best = min(near, key=lambda offer: _lost_at(offer.check, job_ended=job_ended))
    return NextCheck(best.check, command_for(best.check, evidence), best.why)


def _belief(standing: Standing) -> Belief:
    """The causes of the playbooks, as `playbook:cause`, given that one is the symptom. Another
    playbook that one of them hands over to counts as what that one does not name."""
    incidents = {match.incident.id: match.confidence for match in standing.matches}
    leading = {match.playbook.id for match in standing.playbooks}
    total = sum(match.confidence for match in standing.playbooks)
    shares: dict[str, float] = {}
    for match in standing.playbooks:
        playbook, lead = match.playbook, match.confidence / total
        causes = belief_of_causes(playbook, incidents, standing.ratios)
        for key, share in causes.shares.items():
            shares[f"{playbook.id}:{key}"] = lead * share
        for name in sorted(_handed_over(playbook) - leading):
            shares[name] = shares.get(name, 0.0) + lead * causes.nothing
    return Belief.of(shares).weighed({}, nothing=1.0)


def _handed_over(playbook: Playbook) -> set[str]:
    ways = (outcome.then for step in playbook.body.checks for outcome in step.outcomes)
    return {way.removeprefix("playbook:") for way in ways if way.startswith("playbook:")}


def _offers(
    playbooks: Sequence[PlaybookMatch],
    belief: Belief,
    guides: GuideShelf,
    read: Set[str],
    *,
    job_ended: bool,
) -> Iterator[_Offer]:
    """Each check once, in the order of the playbooks."""
    targets = _targets(playbooks, belief)
    seen = set(read)
    for match in playbooks:
        for position, step in enumerate(match.playbook.body.checks):
            check = guides.by_id.get(step.check)
            if not isinstance(check, Check) or check.id in seen:
                continue
            seen.add(check.id)
            if job_ended and check.header.needs_job is JobState.RUNNING:
                continue
            gain = _gain(check, playbooks, belief, targets)
            if gain:
                yield _Offer(check, step.why, gain, position)


def _targets(playbooks: Iterable[PlaybookMatch], belief: Belief) -> dict[str, frozenset[str]]:
    """The hypotheses that each target stands for: a hypothesis for itself, a playbook for its
    causes, an incident for the causes that it is a case of."""
    found: dict[str, set[str]] = {name: {name} for name in belief.shares}
    for match in playbooks:
        for cause in match.playbook.body.causes:
            name = f"{match.playbook.id}:{cause.key}"
            for target in (match.playbook.id, *cause.incidents):
                found.setdefault(target, set()).add(name)
    return {target: frozenset(names) for target, names in found.items()}


def _gain(
    check: Check,
    playbooks: Iterable[PlaybookMatch],
    belief: Belief,
    targets: Mapping[str, frozenset[str]],
) -> float:
    """In bits; 0 where no outcome changes what is likeliest, or comes near it."""
    outcomes = {
        led for match in playbooks for led in _outcomes(check, match.playbook, targets) if led
    }
    if not outcomes:
        return 0.0
    needed: dict[str, set[str]] = {}
    for number, led in enumerate(sorted(outcomes, key=sorted)):
        for name in led:
            needed.setdefault(name, set()).add(str(number))
    names = [str(number) for number in range(len(outcomes))]
    plan = QuestionPlan(
        topic=Topic.OBSERVATION,
        key=check.id,
        text=check.header.question,
        options=one_of(names, needed, if_needed=SHOWN_IF_CAUSE, if_not=SHOWN_IF_NOT),
        records=(),
    )
    gain = expected_gain(belief, plan)
    return gain if gain >= MIN_GAIN_BITS and could_change_order(belief, plan) else 0.0


def _outcomes(
    check: Check, playbook: Playbook, targets: Mapping[str, frozenset[str]]
) -> Iterator[frozenset[str]]:
    """The hypotheses that each outcome of a check of the playbook leads to. The findings of the
    check name some too."""
    steps = [step for step in playbook.body.checks if step.check == check.id]
    for step in steps:
        yield from (_led(outcome.then, playbook, targets) for outcome in step.outcomes)
    if steps:
        named = (target for finding in check.body.findings for target in finding.points_to)
        yield from (targets.get(target, frozenset()) for target in named)


def _led(way: str, playbook: Playbook, targets: Mapping[str, frozenset[str]]) -> frozenset[str]:
    kind, _colon, name = way.partition(":")
    if kind == "cause":
        return targets.get(f"{playbook.id}:{name}", frozenset())
    if kind != "check":
        return targets.get(name, frozenset())
    further = (step for step in playbook.body.checks if step.check == name)
    return frozenset().union(*(_at_once(step, playbook, targets) for step in further))


def _at_once(
    step: CheckStep, playbook: Playbook, targets: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """What a check that another one sends to can tell, without a further one."""
    ways = (outcome.then for outcome in step.outcomes if not outcome.then.startswith("check:"))
    return frozenset().union(*(_led(way, playbook, targets) for way in ways))


def _worth(offer: _Offer, offers: Sequence[_Offer], *, job_ended: bool) -> float:
    """Gain for the price, as far as the order of the expert bears it out."""
    others = [other.check for other in offers if other is not offer]
    price = _price(offer.check.header.cost)
    if offer.check.header.cost.risk is Risk.RESTARTS and not job_ended:
        price *= 1 + sum(_restart_destroys(check) for check in others)
    return offer.gain * LATER_STEP**offer.position / price


def _fit(check: Check, systems: Iterable[str]) -> float:
    """Of a check, where these systems are named."""
    needed = _SCHEDULERS.intersection(check.header.systems)
    named = _SCHEDULERS.intersection(systems)
    return _ELSEWHERE if needed and named and not needed & named else 1.0


def _price(cost: Cost) -> float:
    return _RISKS[cost.risk] * (1 + math.log2(1 + cost.seconds / UNIT_SECONDS))


def _restart_destroys(check: Check) -> bool:
    lost = check.header.lost_by
    return check.header.needs_job is JobState.RUNNING or Loss.EXIT in lost or Loss.RESTART in lost


def _lost_at(check: Check, *, job_ended: bool) -> int:
    """Position on the evidence clock; what the end of the process destroyed is gone already."""
    clock = [loss for loss in _CLOCK if not (job_ended and loss is Loss.EXIT)]
    return min(
        (clock.index(loss) for loss in check.header.lost_by if loss in clock), default=len(_CLOCK)
    )


def command_for(check: Check, evidence: Evidence) -> Command:
    """Its form for the environment that the log names."""
    named = (place for system, place in _PLACES.items() if system in evidence.facts.systems)
    return check.command(next(named, Place.BARE))
