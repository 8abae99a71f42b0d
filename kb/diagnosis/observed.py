"""What the outputs of checks do to the belief: incidents, playbooks and the causes of a playbook.

Each effect is a ratio of likelihoods: how much likelier the reading is where the hypothesis holds
than where it does not. The numbers are judgements, because nobody has counted; they are small, so
that a reading moves a belief and does not make one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby

import msgspec

from kb.check import Check
from kb.checks import Observation
from kb.checks.read import plain_findings
from kb.corpus.base import KnowledgeBase
from kb.corpus.guide_shelf import GuideShelf
from kb.diagnosis.confidence import UNSUPPORTED, weigh_readings
from kb.diagnosis.model import By, Match, PlaybookMatch, Why
from kb.diagnosis.outputs import OutputsRead, ReadOutput
from kb.diagnosis.playbooks import MAX_PLAYBOOKS, MIN_PLAYBOOK_CONFIDENCE, MIN_SHARE, left_by
from kb.evidence import EvidenceLine
from kb.evidence.markers import Grade
from kb.incident import Incident, Kind
from kb.log.mask import mask
from kb.playbook import Playbook
from kb.verdict import ANSWER_AT, MAX_CONFIDENCE_AFTER_TALK, MAX_GENERAL_CONFIDENCE

NAMED_RATIO = 4.0
"""Of a finding, under what it names: four of five jobs with that fault show it, and one in five
others, which have the fault as well and fail of another."""
CASE_RATIO = 2.0
"""Of a finding that names a cause, under an incident that is a case of the cause: the root of the
above, because the finding does not tell the cases apart."""
DOUBTED_RATIO = 1.5
"""At most, where the check lists readings that look wrong although all is well."""
NORMAL_RATIO = 0.7
"""Of a normal reading, under what an abnormal one would have named: it is often taken too late, or
on another host than the one that failed. It lowers nothing where nobody ran the check for sure,
because lines of a log may look like its output, nor where the check lists faults that it cannot see
or passes in spite of."""
MAX_RATIO = 10.0
"""Of all readings together, for and against: they were taken on the same hosts and share their
faults. One more answer can turn that (`MAX_REVERSIBLE_LEAD`)."""


def likelihood_ratios(
    outputs: Iterable[ReadOutput], guides: GuideShelf, run: Set[str]
) -> dict[str, float]:
    """By id of the incident or playbook, and by `playbook:cause`; what is not there is 1.

    `run` are the checks that somebody ran for sure. Several outputs of one check, as of several
    hosts, count once: an abnormal one decides.
    """
    ratios: dict[str, float] = {}
    by_check = sorted(outputs, key=lambda one: one.check.id)
    for _check, group in groupby(by_check, key=lambda one: one.check.id):
        for name, ratio in _of_check(list(group), guides, run).items():
            ratios[name] = ratios.get(name, 1.0) * ratio
    return {name: min(max(ratio, 1 / MAX_RATIO), MAX_RATIO) for name, ratio in ratios.items()}


def _of_check(
    outputs: Sequence[ReadOutput], guides: GuideShelf, run: Set[str]
) -> Mapping[str, float]:
    check = outputs[0].check
    if any(one.abnormal for output in outputs for one in output.observations):
        return _raised(check, outputs, guides)
    if check.id in run and all(one.is_normal for one in outputs):
        return _lowered(check, guides)
    return {}


def _raised(check: Check, outputs: Sequence[ReadOutput], guides: GuideShelf) -> dict[str, float]:
    limit = DOUBTED_RATIO if check.body.false_fail else NAMED_RATIO
    ratios: dict[str, float] = {}
    for one in _abnormal(outputs):
        for name, ratio in _effects(one, guides):
            if not check.header.in_log or _is_of_playbook(name, guides):
                ratios[name] = max(ratios.get(name, 1.0), min(ratio, limit))
    return ratios


def _abnormal(outputs: Iterable[ReadOutput]) -> Iterator[Observation]:
    return (one for output in outputs for one in output.observations if one.abnormal)


def _is_of_playbook(name: str, guides: GuideShelf) -> bool:
    """Lines of the job's own log are evidence for the incidents already, and the confidence of
    those was calibrated with them."""
    return isinstance(guides.by_id.get(name.partition(":")[0]), Playbook)


def _effects(observation: Observation, guides: GuideShelf) -> Iterator[tuple[str, float]]:
    for target in observation.points_to:
        yield target, NAMED_RATIO
        playbook, is_cause, _key = target.partition(":")
        if is_cause:
            yield playbook, NAMED_RATIO
            yield from ((case, CASE_RATIO) for case in guides.cases.get(target, ()))


def _lowered(check: Check, guides: GuideShelf) -> dict[str, float]:
    """A playbook itself is not lowered: it has other causes."""
    if check.header.in_log or check.body.cannot_see or check.body.false_pass:
        return {}
    return {
        target: NORMAL_RATIO
        for finding in plain_findings(check)
        if finding.abnormal
        for target in finding.points_to
        if not isinstance(guides.by_id.get(target), Playbook)
    }


class Standing(msgspec.Struct, frozen=True):
    """What is believed, each list best first."""

    matches: tuple[Match, ...]
    playbooks: tuple[PlaybookMatch, ...] = ()
    ratios: Mapping[str, float] = {}
    """Those of the likelihoods of what was read."""


def after_readings(standing: Standing, read: OutputsRead, knowledge: KnowledgeBase) -> Standing:
    """What is believed after the outputs were read.

    An abnormal reading brings up the incidents and playbooks that it names. No reading makes a
    match of an incident that no line outside of the outputs speaks for: a host has many faults, and
    the job failed of one.
    """
    ratios = likelihood_ratios(read.outputs, knowledge.guides, read.taken)
    if not ratios:
        return standing
    incidents = _weighed_incidents(standing.matches, read.outputs, ratios, knowledge)
    playbooks = weighed_playbooks(standing, incidents, ratios, knowledge.guides)
    return Standing(incidents, playbooks, ratios)


def _weighed_incidents(
    matches: Sequence[Match],
    outputs: Sequence[ReadOutput],
    ratios: Mapping[str, float],
    knowledge: KnowledgeBase,
) -> tuple[Match, ...]:
    incidents = {match.incident.id: match for match in matches}
    least = UNSUPPORTED * left_by(matches)
    for found in named_incidents(outputs, knowledge):
        known = incidents.get(found.incident.id, found)
        raised = max(known.confidence, least)
        incidents[found.incident.id] = msgspec.structs.replace(known, confidence=raised)
    after = weigh_readings({i: match.confidence for i, match in incidents.items()}, ratios)
    weighed = (_weighed(match, after[name], outputs) for name, match in incidents.items())
    return tuple(sorted(weighed, key=lambda match: (-match.confidence, match.incident.id)))


def weighed_playbooks(
    before: Standing, incidents: Sequence[Match], ratios: Mapping[str, float], guides: GuideShelf
) -> tuple[PlaybookMatch, ...]:
    """The playbooks after something was read, best first. They share what the incidents leave, now
    as `before`."""
    books = {match.playbook.id: match.playbook for match in before.playbooks}
    books |= {playbook.id: playbook for playbook in _named_playbooks(ratios, guides)}
    shares = dict.fromkeys(books, UNSUPPORTED) | {
        match.playbook.id: match.share for match in before.playbooks
    }
    after = weigh_readings(shares, ratios)
    now = left_by(incidents)
    return _best(
        PlaybookMatch(book, round(now * after[name], 4), round(after[name], 4))
        for name, book in books.items()
    )


def named_incidents(outputs: Iterable[ReadOutput], knowledge: KnowledgeBase) -> Iterator[Match]:
    """Those that an abnormal reading names itself, with the line that it was read from."""
    for output in outputs:
        for one in _abnormal([output]):
            for target in () if output.check.header.in_log else one.points_to:
                incident = _incident(target, knowledge)
                if incident is not None:
                    yield Match(incident, 0.0, (Why(_line(one, output), By.OBSERVATION),))


def _incident(target: str, knowledge: KnowledgeBase) -> Incident | None:
    if ":" in target or target in knowledge.guides.by_id:
        return None
    found = knowledge.incident(target)
    return found if found and found.kind is Kind.INCIDENT else None


def _line(one: Observation, output: ReadOutput) -> EvidenceLine:
    text = output.output.lines[one.line - output.output.first_line].strip()
    return EvidenceLine(one.file, one.line, text, mask(text), Grade.HINT)


def _named_playbooks(ratios: Mapping[str, float], guides: GuideShelf) -> Iterator[Playbook]:
    for name, ratio in ratios.items():
        guide = guides.by_id.get(name)
        if isinstance(guide, Playbook) and ratio > 1.0:
            yield guide


def _weighed(match: Match, confidence: float, outputs: Sequence[ReadOutput]) -> Match:
    alone = match.confidence < ANSWER_AT and all(
        any(output.holds(why.line.file, why.line.number) for output in outputs) for why in match.why
    )
    most = MAX_GENERAL_CONFIDENCE if alone else max(MAX_CONFIDENCE_AFTER_TALK, match.confidence)
    return msgspec.structs.replace(match, confidence=round(min(confidence, most), 4))


def _best(playbooks: Iterable[PlaybookMatch]) -> tuple[PlaybookMatch, ...]:
    ranked = sorted(playbooks, key=lambda match: (-match.confidence, match.playbook.id))
    least = max(MIN_SHARE * sum(match.confidence for match in ranked), MIN_PLAYBOOK_CONFIDENCE)
    return tuple(match for match in ranked[:MAX_PLAYBOOKS] if match.confidence >= least)
