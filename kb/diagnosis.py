"""The waist: every way in goes through `diagnose`, every view hangs off `Diagnosis`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from kb.confidence import ANSWER_AT, SHOW_ALSO_AT, SHOW_AT, SHOW_CALM_AT, confidences
from kb.evidence import Evidence, collect
from kb.found import By, Found, Why, find, is_calm
from kb.incident import Incident, Kind
from kb.inquiry import Belief, Inquiry, next_inquiry, seen_in
from kb.job import Analysis, Job, analyse
from kb.knowledge import Knowledge
from kb.log import Block, Log
from kb.nearest import Near, near
from kb.reading import Reading, read


class Verdict(StrEnum):
    """What the diagnosis comes to."""

    MATCH = "match"
    """The first match is above the bar."""
    POSSIBLE = "possible"
    """Candidates worth reading, or only follow-on errors."""
    UNKNOWN = "unknown"
    """Nothing known fits."""
    HEALTHY = "healthy"
    """No sign of failure in the input."""


class Match(msgspec.Struct, frozen=True):
    """An incident with its confidence and evidence."""

    incident: Incident
    confidence: float
    why: tuple[Why, ...]


class Note(msgspec.Struct, frozen=True):
    """A known follow-on error or known noise that the log holds."""

    incident: Incident
    why: tuple[Why, ...]


DONT_KNOW = "don't know"
"""Can be answered to every question, and changes nothing."""


class Question(msgspec.Struct, frozen=True):
    """What would change the order of the matches."""

    text: str
    answers: tuple[str, ...] = ("yes", "no", DONT_KNOW)


class Diagnosis(msgspec.Struct, frozen=True):
    """The whole answer."""

    verdict: Verdict
    matches: tuple[Match, ...]
    """Best first; records of kind `incident` only."""
    notes: tuple[Note, ...]
    candidates: tuple[Match, ...]
    """The matches and those behind them that are too unlikely to be shown, for a conversation to
    choose among; empty where nothing known fits."""
    job: Job | None
    """Who failed first; None where the log is not from several ranks."""
    evidence: Evidence
    notices: tuple[str, ...]
    """What the user should know about the input itself."""
    elapsed_ms: float
    nearest: tuple[Near, ...] = ()
    """Where nothing fits: what comes nearest, and why it is not that."""

    @property
    def question(self) -> Question | None:
        """What would tell most about the order; worked out when it is asked for."""
        inquiry = first_inquiry(self)
        return to_question(inquiry) if inquiry else None


MOST_MATCHES = 5
"""So many matches are shown unless the user asks for another number."""

MOST_CANDIDATES = 40
"""So many records are kept for a conversation."""

_MOST_NEAR = 2
_LEAST = 0.0001
_BELOW_THE_BAR = ANSWER_AT - 0.01


def diagnose(log: Log, knowledge: Knowledge, top: int = MOST_MATCHES) -> Diagnosis:
    """Read the log, find what is known about it and say how sure that is.

    Raises:
        LogError: the log cannot be read.
    """
    started = time.perf_counter()
    reading = read(log, knowledge.signatures, knowledge.markers)
    analysis = analyse(reading.files, reading.dumps)
    opinion = _opinion(reading, knowledge, analysis)
    verdict = _verdict(opinion.matches, opinion.notes, opinion.calm)
    return Diagnosis(
        verdict=verdict,
        matches=shown(opinion.matches)[:top],
        notes=opinion.notes,
        candidates=tuple(opinion.matches[:MOST_CANDIDATES]),
        job=analysis.job if analysis else None,
        evidence=opinion.evidence,
        notices=tuple(log.notices),
        elapsed_ms=(time.perf_counter() - started) * 1000,
        nearest=opinion.nearest if verdict is Verdict.UNKNOWN else (),
    )


class _Opinion(msgspec.Struct, frozen=True):
    """What is known about some of the lines, or about all."""

    evidence: Evidence
    matches: list[Match]
    notes: tuple[Note, ...]
    nearest: tuple[Near, ...]
    calm: bool

    @property
    def answers(self) -> bool:
        return bool(self.matches) and self.matches[0].confidence >= ANSWER_AT


def _opinion(reading: Reading, knowledge: Knowledge, analysis: Analysis | None) -> _Opinion:
    """Of a job, the lines of its culprits are asked first. A paste in which they alone do not
    suffice is asked whole, as long as they are a part of the answer."""
    if analysis is None or not analysis.evidence:
        return _ask(reading.collector.evidence(), knowledge, analysis)
    excerpt = collect(analysis.evidence, knowledge.signatures, knowledge.markers)
    opinion = _ask(excerpt, knowledge, analysis)
    if opinion.answers:
        return opinion
    if analysis.is_short:
        whole = _ask(reading.collector.evidence(), knowledge, analysis)
        places = {(block.source, n) for block in analysis.evidence for n in block.numbers}
        whys = [why.line for match in whole.matches[:1] for why in match.why]
        if whole.answers and any((line.file, line.number) in places for line in whys):
            return whole
    return msgspec.structs.replace(opinion, matches=_merged(opinion.matches, analysis, knowledge))


def _merged(matches: list[Match], analysis: Analysis, knowledge: Knowledge) -> list[Match]:
    """Add what is known about such a failure in general, below the bar: the lines do not say it."""
    job = analysis.job
    first = job.culprits[0] if job.culprits else None
    if first is None or job.finding is None:
        return matches
    said = Block(first.file, first.line or 1, 1, job.finding.encode())
    general = _ask(collect([said], knowledge.signatures, knowledge.markers), knowledge, None)
    best = {match.incident.id: match for match in matches}
    for match in general.matches:
        known = best.get(match.incident.id)
        confidence = round(min(match.confidence, _BELOW_THE_BAR), 4)
        if known is None or known.confidence < confidence:
            line = msgspec.structs.replace(match.why[0].line, text=first.text or job.finding)
            why = known.why if known else (Why(line, By.MEANING),)
            best[match.incident.id] = Match(match.incident, confidence, why)
    return sorted(best.values(), key=lambda match: (-match.confidence, match.incident.id))


def _ask(evidence: Evidence, knowledge: Knowledge, analysis: Analysis | None) -> _Opinion:
    job = analysis.job if analysis else None
    found = find(evidence, knowledge)
    calm = (job is None or job.kind is None) and is_calm(found, evidence)
    if analysis and analysis.ended_well and not analysis.job.culprits:
        calm, found = True, [item for item in found if item.kind is Kind.HARMLESS]
    show_at = SHOW_CALM_AT if calm and evidence.progressing else SHOW_AT
    ranked = _ranked([item for item in found if item.kind is Kind.INCIDENT], calm)
    notes = tuple(
        Note(item.incident, item.why)
        for item in found
        if item.kind is not Kind.INCIDENT and item.hits
    )
    matches = ranked if ranked and ranked[0].confidence >= show_at else []
    return _Opinion(evidence, matches, notes, tuple(_nearest(ranked, evidence)), calm)


def weigh(evidence: Evidence, knowledge: Knowledge) -> list[Match]:
    """What could be behind some evidence, best first, whether likely enough to be shown or not."""
    found = find(evidence, knowledge)
    incidents = [item for item in found if item.kind is Kind.INCIDENT]
    return _ranked(incidents, is_calm(found, evidence))


def _nearest(ranked: Sequence[Match], evidence: Evidence) -> Iterator[Near]:
    for match in ranked[:_MOST_NEAR]:
        signed = [why.line for why in match.why if why.by is By.SIGNATURE]
        yield near(match.incident, signed, evidence)


def _ranked(incidents: Sequence[Found], calm: bool) -> list[Match]:
    """Score and sort."""
    sure = confidences([item.signs(calm) for item in incidents])
    ranked = sorted(
        zip(sure, incidents, strict=True), key=lambda pair: (-pair[0], pair[1].candidate.id)
    )
    return [
        Match(item.incident, round(confidence, 4), item.why)
        for confidence, item in ranked[:MOST_CANDIDATES]
        if confidence >= _LEAST
    ]


def _verdict(matches: Sequence[Match], notes: Sequence[Note], calm: bool) -> Verdict:
    if matches:
        return Verdict.MATCH if matches[0].confidence >= ANSWER_AT else Verdict.POSSIBLE
    if any(note.incident.kind is Kind.CASCADE for note in notes):
        return Verdict.POSSIBLE
    return Verdict.HEALTHY if calm else Verdict.UNKNOWN


def shown(candidates: Iterable[Match]) -> tuple[Match, ...]:
    """Those likely enough to be shown behind the first one."""
    return tuple(match for match in candidates if match.confidence >= SHOW_ALSO_AT)


def first_inquiry(diagnosis: Diagnosis) -> Inquiry | None:
    """What to ask first about the candidates; None when no answer would change their order."""
    shares = {match.incident.id: match.confidence for match in diagnosis.candidates}
    incidents = {match.incident.id: match.incident for match in diagnosis.candidates}
    return next_inquiry(Belief.of(shares), incidents, seen_in(diagnosis.evidence))


def to_question(inquiry: Inquiry) -> Question:
    """The question with the answers to pick."""
    return Question(inquiry.text, (*(option.text for option in inquiry.options), DONT_KNOW))
