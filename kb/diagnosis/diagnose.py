"""The central function `diagnose`: all inputs go through it, all views use its `Diagnosis`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence, Set

import msgspec

from index.progress import Notify
from kb.checks.model import Observation
from kb.containment import contained
from kb.corpus.base import KnowledgeBase
from kb.diagnosis.causes import causes_of_lines
from kb.diagnosis.confidence import confidences
from kb.diagnosis.features import Features
from kb.diagnosis.model import (
    MAX_MATCHES_SHOWN,
    By,
    Diagnosis,
    Match,
    Note,
    PlaybookMatch,
    Why,
)
from kb.diagnosis.next_check import next_check
from kb.diagnosis.observed import Standing, after_readings
from kb.diagnosis.outputs import OutputsRead, read_outputs
from kb.diagnosis.playbooks import playbooks_for
from kb.diagnosis.query import to_query
from kb.diagnosis.rejection import explain_rejections
from kb.diagnosis.retrieval import ScoredCandidate, no_failure_is_seen, retrieve
from kb.diagnosis.scan import RangeScan, ScannedLog, scan_log
from kb.diagnosis.symptoms import may_be_question, may_have_symptom
from kb.evidence import Evidence, collect
from kb.incident import Kind
from kb.job import Analysis, analyse
from kb.log import Block, Log
from kb.verdict import (
    MAX_CONTRADICTED_CONFIDENCE,
    MAX_GENERAL_CONFIDENCE,
    SHOW_ALSO_AT,
    SHOW_AT,
    SHOW_CALM_AT,
    SHOW_QUIET_AT,
    SYMPTOM_AT,
    Verdict,
    decide,
)

MAX_CANDIDATES = 40
"""Maximum number of records kept for a conversation; the rest are too unlikely for a question."""

WORDS_ENOUGH_AT = 0.70
"""Confidence of the words beside a line that other causes print too, from which on they need no
other line: a little less than a match, to which such a line adds."""

MIN_CONFIDENCE = 0.0001
"""Confidences are rounded to four digits; a record below this value is not a candidate."""


def diagnose(
    log: Log,
    knowledge: KnowledgeBase,
    top: int = MAX_MATCHES_SHOWN,
    ranges: Iterable[RangeScan] | None = None,
) -> Diagnosis:
    """Read the log, find what is known about it and say how sure that is. All `ranges` of a log of
    one file may have been scanned elsewhere.

    Raises:
        LogError: the log cannot be read.
        KbError: a range was scanned for other incidents.
    """
    started = time.perf_counter()
    patterns = knowledge.guides.patterns
    scanned = scan_log(log, knowledge.signatures, knowledge.markers, patterns, ranges)
    losses = scanned.losses
    if len(scanned.files) == 1:  # of several, only the lines of a culprit may be searched for
        knowledge.encode_ahead(to_query(scanned.collector.evidence()).passages)
    analysis = None
    with contained("nothing is said of who failed first", losses.append):
        analysis = analyse(scanned.files, scanned.dumps, scanned.damaged_dumps, losses.append)
    read = OutputsRead()
    with contained("the outputs of checks are not read", losses.append):
        read = read_outputs(scanned.windows, knowledge, scanned.collected)
    opinion = _opinion(scanned, knowledge, analysis)
    standing = _standing(opinion, read, analysis, knowledge, losses.append)
    opinion = opinion.with_known(standing)
    if scanned.collected:
        opinion = _without_log(opinion, {one.output.source for one in scanned.collected})
    verdict = opinion.verdict
    is_whole = not (log.losses or losses or scanned.collected)
    if verdict is Verdict.HEALTHY and not is_whole:
        # What could not be read, or is left out, or the log of the job, may tell of a failure.
        verdict = Verdict.UNKNOWN
    if verdict is Verdict.HEALTHY and not (
        _went_on(analysis) or (opinion.is_calm and not read.shows_fault)
    ):
        verdict = Verdict.UNKNOWN
    if verdict is Verdict.HEALTHY:
        if _names_symptom(opinion.evidence, standing.playbooks):
            verdict = Verdict.UNKNOWN
        else:
            standing = msgspec.structs.replace(standing, playbooks=())
    if is_whole and verdict is not Verdict.HEALTHY:
        calm = _all_clear_in_spite_of_setbacks(scanned, knowledge)
        if calm is not None:
            elapsed = (time.perf_counter() - started) * 1000
            return msgspec.structs.replace(calm, elapsed_ms=elapsed, notices=tuple(log.notices))
    return Diagnosis(
        verdict=verdict,
        matches=shown(opinion.matches)[:top],
        notes=opinion.notes,
        candidates=tuple(opinion.matches[:MAX_CANDIDATES]),
        job=analysis.job if analysis else None,
        evidence=opinion.evidence,
        notices=tuple(dict.fromkeys([*log.notices, *losses])),
        elapsed_ms=(time.perf_counter() - started) * 1000,
        nearest=(
            explain_rejections(opinion.ranked, opinion.evidence)
            if verdict is Verdict.UNKNOWN
            else ()
        ),
        observations=(*_differences(analysis), *read.observations),
        playbooks=standing.playbooks,
        pointed={name: ratio for name, ratio in standing.ratios.items() if ":" in name},
        leads=(
            knowledge.find_leads(opinion.evidence)
            if verdict in (Verdict.POSSIBLE, Verdict.UNKNOWN)
            else ()
        ),
        next=(
            None
            if verdict is Verdict.MATCH  # its fix comes next
            else next_check(
                standing,
                opinion.evidence,
                knowledge,
                read=read.checks,
                job_ended=analysis is not None and analysis.job.failed,
            )
        ),
    )


def _all_clear_in_spite_of_setbacks(
    scanned: ScannedLog, knowledge: KnowledgeBase
) -> Diagnosis | None:
    """Of a short log of one file in which all that went wrong on the way was made good."""
    calm = scanned.collector.without_setbacks() if len(scanned.files) == 1 else None
    if calm is None:
        return None
    found = diagnose(Log.from_text(calm), knowledge)
    return found if found.verdict is Verdict.HEALTHY else None


def _differences(analysis: Analysis | None) -> Iterator[Observation]:
    """The values by which one rank differs from all others, as if a check had compared them."""
    for one in analysis.differences if analysis else ():
        yield Observation(
            check="ranks",
            finding=None,
            text=one.text,
            file=one.line.file,
            line=one.line.number,
            abnormal=True,
            differs=True,
        )


def _went_on(analysis: Analysis | None) -> bool:
    """Whether all of several ranks ended well: what they report on the way, they survived."""
    return _ended_well(analysis) and analysis is not None and (analysis.job.world_size or 0) > 1


def _standing(
    opinion: _Opinion,
    read: OutputsRead,
    analysis: Analysis | None,
    knowledge: KnowledgeBase,
    notify: Notify,
) -> Standing:
    """What is believed by the lines of the input, and then by the outputs of checks in it."""
    standing = Standing(tuple(opinion.known))
    if read.shows_fault or may_have_symptom(opinion.evidence) or _failed(analysis):
        with contained("no playbook is named", notify):
            playbooks = playbooks_for(opinion.evidence, opinion.known, knowledge)
            standing = msgspec.structs.replace(standing, playbooks=playbooks)
    if read.outputs and opinion.verdict is not Verdict.HEALTHY:
        with contained("the outputs of checks change nothing", notify):
            standing = after_readings(standing, read, knowledge)
    with contained("no cause of a symptom is named", notify):
        said = causes_of_lines(opinion.evidence, standing.playbooks, knowledge)
        return msgspec.structs.replace(standing, ratios={**standing.ratios, **said})
    return standing


def _names_symptom(evidence: Evidence, playbooks: Sequence[PlaybookMatch]) -> bool:
    """Whether somebody asks about a symptom; a whole log may speak of one in passing."""
    return may_be_question(evidence) and bool(playbooks) and playbooks[0].share >= SYMPTOM_AT


class _Opinion(msgspec.Struct, frozen=True):
    """What is known about some of the lines, or about all."""

    evidence: Evidence
    ranked: list[Match]
    """All possible causes, likely or not."""
    matches: list[Match]
    """Those worth showing."""
    notes: tuple[Note, ...]
    all_is_well: bool
    """The log itself shows that the work went on to its end, without a failure; its ranks survived
    what they report on their way."""
    is_calm: bool
    """None of the lines shows a failure or raises a doubt."""
    show_at: float
    """Below this confidence of the first one, none is shown."""

    @property
    def known(self) -> list[Match]:
        """Those worth showing, else all."""
        return self.matches or self.ranked

    def with_known(self, standing: Standing) -> _Opinion:
        """What is shown stays so; what was read can bring others up."""
        known = list(standing.matches)
        if self.matches or (known and known[0].confidence >= self.show_at):
            return msgspec.structs.replace(self, matches=known)
        return msgspec.structs.replace(self, ranked=known)

    @property
    def verdict(self) -> Verdict:
        return decide(
            self.matches[0].confidence if self.matches else None,
            follow_on=any(note.incident.kind is Kind.CASCADE for note in self.notes),
            healthy=self.all_is_well,
        )

    @property
    def answers(self) -> bool:
        return self.verdict is Verdict.MATCH


def _opinion(scanned: ScannedLog, knowledge: KnowledgeBase, analysis: Analysis | None) -> _Opinion:
    """For a job, search with the culprits' lines first. If they do not suffice in a paste, search
    with all lines, provided that the answer still includes the culprits' lines."""
    notify = scanned.losses.append
    if analysis is None or not analysis.evidence:
        return _ask(scanned.collector.evidence(), knowledge, analysis, notify)
    excerpt = collect(analysis.evidence, knowledge.signatures, knowledge.markers)
    opinion = _ask(excerpt, knowledge, analysis, notify)
    if opinion.answers:
        return opinion
    if analysis.is_short:
        whole = _ask(scanned.collector.evidence(), knowledge, analysis, notify)
        places = {(block.source, n) for block in analysis.evidence for n in block.numbers}
        whys = [why.line for match in whole.matches[:1] for why in match.why]
        if whole.answers and any((line.file, line.number) in places for line in whys):
            return whole
    merged = _merged(opinion.matches, analysis, knowledge, notify)
    return msgspec.structs.replace(opinion, matches=merged)


def _without_log(opinion: _Opinion, outputs: Set[str | None]) -> _Opinion:
    """What outputs of checks alone suggest is below the threshold: a kernel log tells of weeks, and
    nothing says that the job failed of that."""
    matches = [
        msgspec.structs.replace(match, confidence=min(match.confidence, MAX_GENERAL_CONFIDENCE))
        if all(why.line.file in outputs for why in match.why)
        else match
        for match in opinion.matches
    ]
    matches.sort(key=lambda match: -match.confidence)
    return msgspec.structs.replace(opinion, matches=matches)


def _merged(
    matches: list[Match], analysis: Analysis, knowledge: KnowledgeBase, notify: Notify
) -> list[Match]:
    """Add records about this kind of failure, below the threshold, because no line proves them."""
    job = analysis.job
    first = job.culprits[0] if job.culprits else None
    if first is None or job.finding is None:
        return matches
    explanation = Block(first.file, first.line or 1, 1, job.finding.encode())
    evidence = collect([explanation], knowledge.signatures, knowledge.markers)
    best = {match.incident.id: match for match in matches}
    for match in _ask(evidence, knowledge, None, notify).matches:
        known = best.get(match.incident.id)
        confidence = round(min(match.confidence, MAX_GENERAL_CONFIDENCE), 4)
        if known is None or known.confidence < confidence:
            line = msgspec.structs.replace(match.why[0].line, text=first.text or job.finding)
            why = known.why if known else (Why(line, By.MEANING),)
            best[match.incident.id] = Match(match.incident, confidence, why)
    return sorted(best.values(), key=lambda match: (-match.confidence, match.incident.id))


def _ask(
    evidence: Evidence, knowledge: KnowledgeBase, analysis: Analysis | None, notify: Notify
) -> _Opinion:
    found = retrieve(evidence, knowledge, notify)
    is_calm = no_failure_is_seen(found, evidence)
    ended_well = _ended_well(analysis)
    if ended_well:
        found = [one for one in found if one.incident.kind is Kind.HARMLESS]
    no_failure = ended_well or (not _failed(analysis) and is_calm)
    if no_failure and evidence.ended_well:
        found = [one for one in found if one.tells_beside_a_good_end]
    ranked = _ranked(found, evidence, knowledge.covered, no_failure=no_failure)
    show_at = _show_at(evidence, no_failure=no_failure)
    matches = ranked if ranked and ranked[0].confidence >= show_at else []
    ends = ended_well or (no_failure and evidence.ended_well)
    all_is_well = ends and not evidence.told and not _is_unfinished(analysis)
    return _Opinion(
        evidence,
        ranked,
        matches,
        _notes(found),
        all_is_well=all_is_well,
        is_calm=is_calm and not evidence.in_doubt,
        show_at=show_at,
    )


def _show_at(evidence: Evidence, *, no_failure: bool) -> float:
    """The confidence of the first incident from which on some are shown."""
    if no_failure and evidence.made_progress:
        return SHOW_CALM_AT
    return SHOW_QUIET_AT if no_failure or may_be_question(evidence) else SHOW_AT


def _ended_well(analysis: Analysis | None) -> bool:
    return analysis is not None and analysis.ended_well and not analysis.job.culprits


def _is_unfinished(analysis: Analysis | None) -> bool:
    return analysis is not None and analysis.unfinished


def _failed(analysis: Analysis | None) -> bool:
    return analysis is not None and analysis.job.kind is not None


def _notes(found: Iterable[ScoredCandidate]) -> tuple[Note, ...]:
    """The known follow-on errors and the known noise in the log."""
    return tuple(
        Note(one.incident, one.why)
        for one in found
        if one.incident.kind is not Kind.INCIDENT and one.has_signature
    )


def weigh(evidence: Evidence, knowledge: KnowledgeBase) -> list[Match]:
    """All candidates for some evidence, best first, including those too unlikely to show."""
    found = retrieve(evidence, knowledge)
    return _ranked(
        found, evidence, knowledge.covered, no_failure=no_failure_is_seen(found, evidence)
    )


_Ranked = tuple[float, ScoredCandidate, Features]
"""A confidence, whose it is, and what it was computed from."""


def _ranked(
    found: Sequence[ScoredCandidate], evidence: Evidence, covered: float | None, *, no_failure: bool
) -> list[Match]:
    """Score the incidents and sort them."""
    incidents = [one for one in found if one.incident.kind is Kind.INCIDENT]
    features = [
        one.for_log_without_failure(made_progress=evidence.made_progress)
        if no_failure
        else one.features
        for one in incidents
    ]
    ranked = sorted(
        zip(confidences(features, covered=covered), incidents, features, strict=True),
        key=lambda row: (-row[0], row[1].incident.id),
    )
    capped = [
        (min(confidence, _most(one, evidence)), one)
        for confidence, one, _seen in ranked[:MAX_CANDIDATES]
    ]
    if ranked and _rests_on_a_shared_line(ranked, evidence, covered):
        confidence, first = capped[0]
        capped[0] = min(confidence, MAX_GENERAL_CONFIDENCE), first
    capped.sort(key=lambda pair: -pair[0])
    return [
        Match(one.incident, round(confidence, 4), one.why)
        for confidence, one in capped
        if confidence >= MIN_CONFIDENCE
    ]


def _most(one: ScoredCandidate, evidence: Evidence) -> float:
    """The cap of its confidence. A person's words are all that there is; in a log, shared words
    without a line that the record declares are those of its neighbours too."""
    if one.is_contradicted:
        return MAX_CONTRADICTED_CONFIDENCE
    return 1.0 if one.has_signature or not evidence.is_log else MAX_GENERAL_CONFIDENCE


def _rests_on_a_shared_line(
    ranked: Sequence[_Ranked], evidence: Evidence, covered: float | None
) -> bool:
    """Whether the first would be no match without one line that other causes print too. In a log in
    which nobody speaks, its words alone make none."""
    (confidence, first, seen), *others = ranked
    if confidence <= MAX_GENERAL_CONFIDENCE or not first.has_one_shared_line:
        return False
    if evidence.is_log and not evidence.told:
        return True
    words = msgspec.structs.replace(seen, weak_signatures=0.0)
    rivals = [features for _confidence, _one, features in others]
    return confidences([words, *rivals], covered=covered)[0] < WORDS_ENOUGH_AT


def shown(candidates: Iterable[Match]) -> tuple[Match, ...]:
    """Those likely enough to be shown behind the first one."""
    return tuple(match for match in candidates if match.confidence >= SHOW_ALSO_AT)
