"""The next check: the one that is expected to tell most about the cause, for its price."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set

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
    worth = [_worth(offer, offers, job_ended=job_ended) for offer in offers]
    near = [
        offer
        for offer, value in zip(offers, worth, strict=True)
        if value >= NEAR_EQUAL * max(worth)
    ]
    best = min(near, key=lambda offer: _lost_at(offer.check, job_ended=job_ended))
    return NextCheck(best.check, _command(best.check, evidence), best.why)


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
    seen = set(read)
    for match in playbooks:
        for position, step in enumerate(match.playbook.body.checks):
            check = guides.by_id.get(step.check)
            if not isinstance(check, Check) or check.id in seen:
                continue
            seen.add(check.id)
            if job_ended and check.header.needs_job is JobState.RUNNING:
                continue
            gain = _gain(check, playbooks, belief)
            if gain >= MIN_GAIN_BITS:
                yield _Offer(check, step.why, gain, position)


def _gain(check: Check, playbooks: Sequence[PlaybookMatch], belief: Belief) -> float:
    """In bits; 0 where no outcome changes what is likeliest, or comes near it."""
    outcomes = {
        _hypotheses(led, belief) for match in playbooks for led in _outcomes(check, match.playbook)
    }
    names = {str(number): led for number, led in enumerate(sorted(map(sorted, outcomes))) if led}
    if not names:
        return 0.0
    needed = {
        hypothesis: frozenset(name for name, led in names.items() if hypothesis in led)
        for hypothesis in belief.shares
    }
    plan = QuestionPlan(
        topic=Topic.OBSERVATION,
        key=check.id,
        text=check.header.question,
        options=one_of(list(names), needed, if_needed=SHOWN_IF_CAUSE, if_not=SHOWN_IF_NOT),
        records=(),
    )
    return expected_gain(belief, plan) if could_change_order(belief, plan) else 0.0


def _outcomes(check: Check, playbook: Playbook) -> Iterator[frozenset[str]]:
    """Where each outcome of the check leads to in a playbook: causes and other playbooks. Its
    findings name them too."""
    steps = [step for step in playbook.body.checks if step.check == check.id]
    if not steps:
        return
    for step in steps:
        yield from (_led(outcome.then, playbook) for outcome in step.outcomes)
    for finding in check.body.findings:
        yield from (_named(target, playbook) for target in finding.points_to)


def _led(way: str, playbook: Playbook) -> frozenset[str]:
    kind, _colon, name = way.partition(":")
    if kind == "cause":
        return frozenset({f"{playbook.id}:{name}"})
    if kind != "check":
        return _named(name, playbook)
    further = (step for step in playbook.body.checks if step.check == name)
    return frozenset().union(*(_at_once(step, playbook) for step in further))


def _at_once(step: CheckStep, playbook: Playbook) -> frozenset[str]:
    """What a check that another one sends to can tell."""
    return frozenset(
        f"{playbook.id}:{outcome.then.removeprefix('cause:')}"
        for outcome in step.outcomes
        if outcome.then.startswith("cause:")
    )


def _named(target: str, playbook: Playbook) -> frozenset[str]:
    """What an incident, a playbook or `playbook:cause` is among the hypotheses."""
    causes = {
        f"{playbook.id}:{cause.key}" for cause in playbook.body.causes if target in cause.incidents
    }
    return frozenset(causes or {target})


def _hypotheses(led: Set[str], belief: Belief) -> frozenset[str]:
    """Those that are led to; a playbook that leads stands for all of its causes."""
    return frozenset(name for name in belief.shares if name in led or name.partition(":")[0] in led)


def _worth(offer: _Offer, offers: Sequence[_Offer], *, job_ended: bool) -> float:
    """Gain for the price, as far as the order of the expert bears it out."""
    others = [other.check for other in offers if other is not offer]
    price = _price(offer.check.header.cost)
    if offer.check.header.cost.risk is Risk.RESTARTS and not job_ended:
        price *= 1 + sum(_restart_destroys(check) for check in others)
    return offer.gain * LATER_STEP**offer.position / price


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


def _command(check: Check, evidence: Evidence) -> Command:
    named = (place for system, place in _PLACES.items() if system in evidence.facts.systems)
    return check.command(next(named, Place.BARE))
