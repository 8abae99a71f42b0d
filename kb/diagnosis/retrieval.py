"""The results of a search in a tier: records, each with the user's lines that support it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from index.documents import Candidate, Pattern
from index.progress import Notify, silent_notify
from kb.containment import surviving
from kb.corpus.base import KnowledgeBase
from kb.corpus.document import Entry, declared_pattern, from_payload
from kb.diagnosis.contradictions import Stated, stated_in
from kb.diagnosis.features import Features
from kb.diagnosis.model import By, Why
from kb.diagnosis.query import to_query
from kb.diagnosis.symptoms import apart, may_have_symptom, symptom_shares
from kb.evidence import Evidence, EvidenceLine, SignatureHit
from kb.evidence.endings import says_end
from kb.evidence.markers import Grade
from kb.evidence.notices import is_notice
from kb.incident import Incident, Kind, Strength

MAX_WHY_LINES = 4
"""Maximum number of lines quoted for one record."""

SEVERAL_WEAK = 1.5
"""Weak signatures, each divided by the number of records that have it, that make a match without a
strong one. Of the answers to strangers, 6 of 8 with so many held the remedy, and 7 of 19 with
fewer; so did 15 of 17 false answers to near misses rest on fewer."""

MIN_TELLING_IDF = 1.2
"""A line supports a record if their shared words weigh more than one rare word."""


class ScoredCandidate(msgspec.Struct, frozen=True):
    """A record with its features and supporting lines."""

    incident: Incident
    features: Features
    """But for what the whole log says: see `for_log_without_failure`."""
    why: tuple[Why, ...]
    """The lines that support it, in the order of the log."""
    has_signature: bool
    """The log holds at least one pattern that the record declares."""
    is_contradicted: bool
    """The log states what the record excludes."""

    @property
    def tells_beside_a_good_end(self) -> bool:
        """Whether it counts in a log that shows no failure and ends well: by its own words it is no
        failure, or a strong signature is there. Weak ones, and words, stand in healthy logs too."""
        is_noise = self.incident.kind is Kind.HARMLESS
        return is_noise or self.features.strong_signatures > 0

    @property
    def has_one_shared_line(self) -> bool:
        """Whether all that it declares of the log is one line that other causes print too."""
        seen = self.features
        return not seen.strong_signatures and 0 < seen.weak_signatures < SEVERAL_WEAK

    def for_log_without_failure(self, *, made_progress: bool) -> Features:
        """The features when no line of the log shows a failure."""
        return msgspec.structs.replace(
            self.features, no_failure_seen=1.0, progress_without_failure=float(made_progress)
        )


def retrieve(
    evidence: Evidence, knowledge: KnowledgeBase, notify: Notify = silent_notify
) -> list[ScoredCandidate]:
    """All records that anything speaks for, unordered. A record that cannot be weighed is told and
    left out."""
    if not evidence.lines:
        return []
    stated = stated_in(evidence)
    # The lines of a log name causes: their symptom says nothing more.
    in_words = not evidence.is_log and may_have_symptom(evidence)
    shares = symptom_shares(evidence, knowledge) if in_words else {}

    def scored(candidate: Candidate) -> ScoredCandidate:
        entry = from_payload(candidate.payload)
        other_symptom = apart(shares, knowledge.guides.symptoms_of(entry.incident))
        return _scored(candidate, entry, evidence, stated, other_symptom)

    return list(
        surviving(
            knowledge.search(to_query(evidence)),
            scored,
            lambda candidate: f"the record {candidate.id} is left out",
            notify,
        )
    )


def _scored(
    candidate: Candidate, entry: Entry, evidence: Evidence, stated: Stated, other_symptom: float
) -> ScoredCandidate:
    declared = {declared_pattern(one): one.strength for one in entry.incident.header.signatures}
    hits = [hit for hit in evidence.hits if hit.pattern in declared]
    return ScoredCandidate(
        incident=entry.incident,
        features=_features(candidate, entry, declared, hits, evidence, stated, other_symptom),
        why=_why(hits, candidate, evidence),
        has_signature=bool(hits),
        is_contradicted=stated.contradicts(entry, hits),
    )


def _features(
    candidate: Candidate,
    entry: Entry,
    declared: dict[Pattern, Strength],
    hits: Sequence[SignatureHit],
    evidence: Evidence,
    stated: Stated,
    other_symptom: float,
) -> Features:
    def weigh(strength: Strength) -> float:
        return sum(
            share
            for pattern, share in candidate.pattern_shares.items()
            if declared[pattern] is strength
        )

    strong = weigh(Strength.STRONG)
    return Features(
        strong_signatures=strong,
        weak_signatures=weigh(Strength.WEAK),
        coverage=candidate.coverage,
        shared_idf=candidate.shared_idf,
        best_line_idf=max(candidate.line_idf, default=0.0),
        cosine=candidate.cosine,
        shared_systems=candidate.tag_idf,
        log_lines=math.log1p(len(evidence.lines)),
        shared_code=float(stated.shares_code(entry)),
        other_code=float(stated.other_code(entry)),
        other_reason=float(not strong and stated.other_reason(entry)),
        unexplained_exception=float(not strong and stated.leaves_unexplained(entry, hits)),
        other_hardware=float(stated.other_hardware(entry)),
        after_fix=float(stated.after_fix(entry)),
        absent_system=float(stated.lacks_system(entry)),
        other_symptom=other_symptom,
    )


def _why(hits: Sequence[SignatureHit], candidate: Candidate, evidence: Evidence) -> tuple[Why, ...]:
    """The lines that speak for a record: its signatures, then shared words, then meaning."""
    found = [Why(hit.line, By.SIGNATURE) for hit in hits]
    found += [Why(line, By.WORDS) for line in _telling(candidate, evidence)]
    if not found:
        found = [Why(evidence.lines[0], By.MEANING)]
    unique = {(why.line.file, why.line.number): why for why in reversed(found)}
    chosen = list(reversed(unique.values()))[:MAX_WHY_LINES]
    return tuple(sorted(chosen, key=lambda why: (why.line.file or "", why.line.number)))


def _telling(candidate: Candidate, evidence: Evidence) -> list[EvidenceLine]:
    pairs = zip(candidate.line_idf, evidence.lines, strict=False)
    telling = [(idf, line) for idf, line in pairs if idf >= MIN_TELLING_IDF]
    return [line for _idf, line in sorted(telling, key=lambda pair: -pair[0])][:MAX_WHY_LINES]


def no_failure_is_seen(found: Sequence[ScoredCandidate], evidence: Evidence) -> bool:
    """Whether the text is only program output, and no line except known noise shows a failure."""
    noise = {
        (why.line.file, why.line.number)
        for one in found
        if one.incident.kind is Kind.HARMLESS and one.has_signature
        for why in one.why
    }
    return (evidence.ended_well or (evidence.is_log and not evidence.human_written)) and all(
        line.grade in (Grade.CONTEXT, Grade.HINT)
        or (line.file, line.number) in noise
        or (line.grade is Grade.ERROR and says_end(line.text))
        or is_notice(line.text)
        for line in evidence.lines
    )
