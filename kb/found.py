"""What a search finds in the index: records, each with the user's lines that speak for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from index.documents import Candidate, Query
from kb.confidence import Signs
from kb.documents import Entry, from_payload
from kb.evidence import Evidence, EvidenceLine, Facts, SignatureHit, fact_words
from kb.evidence.markers import Grade
from kb.glossary import has_chinese, translate
from kb.incident import Incident, Kind, Strength
from kb.knowledge import Knowledge

_QUERY_LINES = 60
_QUERY_PASSAGES = 2
_PASSAGE_LINES = 8
_PASSAGE_CHARACTERS = 900
_WHY_LINES = 4
_TELLING_WORDS = 1.2


class By(StrEnum):
    """Which channel a line speaks through."""

    SIGNATURE = "signature"
    WORDS = "words"
    MEANING = "meaning"


class Why(msgspec.Struct, frozen=True):
    """A line of the log that speaks for an incident."""

    line: EvidenceLine
    by: By


def find(evidence: Evidence, knowledge: Knowledge) -> list[Found]:
    """All records that anything speaks for, unordered."""
    if not evidence.lines:
        return []
    return [
        Found(candidate, from_payload(candidate.payload), evidence, knowledge)
        for candidate in knowledge.search(to_query(evidence))
    ]


def to_query(evidence: Evidence) -> Query:
    """What the index is asked: telling lines for the words, the gist of them for the meaning."""
    lines = [_searchable(line) for line in evidence.lines[:_QUERY_LINES]]
    return Query(
        lines=(*lines, fact_words(evidence.facts)),
        passages=tuple(dict.fromkeys(_passages(evidence)))[:_QUERY_PASSAGES],
        tags=frozenset(evidence.facts.systems),
        patterns=frozenset(hit.pattern for hit in evidence.hits),
    )


def _searchable(line: EvidenceLine) -> str:
    words = " ".join([line.masked, *line.stack])
    return f"{words} {translate(words)}" if has_chinese(words) else words


def _passages(evidence: Evidence) -> Iterable[str]:
    telling = [line for line in evidence.lines if line.grade >= Grade.HINT][:_PASSAGE_LINES]
    in_order = sorted(evidence.lines, key=lambda line: (line.file or "", line.number))
    whole = translate("\n".join(line.masked for line in in_order))
    if evidence.asked or len(whole) <= _PASSAGE_CHARACTERS:
        yield whole[:_PASSAGE_CHARACTERS]
    if telling:
        yield translate("\n".join(line.masked for line in telling))[:_PASSAGE_CHARACTERS]
    else:
        yield whole[:_PASSAGE_CHARACTERS]


class Found:
    """A candidate with its record and the user's lines that speak for it."""

    def __init__(
        self, candidate: Candidate, entry: Entry, evidence: Evidence, knowledge: Knowledge
    ) -> None:
        self.candidate, self.entry, self._evidence = candidate, entry, evidence
        self.incident, self.kind = entry.incident, entry.incident.kind
        self.hits = _hits_of(entry.incident, evidence, knowledge)

    @property
    def strong(self) -> float:
        """Strong signatures seen, each divided by the number of records that have it."""
        return self._weigh(Strength.STRONG)

    @property
    def weak(self) -> float:
        """Weak signatures seen, likewise."""
        return self._weigh(Strength.WEAK)

    def _weigh(self, strength: Strength) -> float:
        signatures = self.incident.header.signatures
        return sum(
            share
            for place, share in zip(self.candidate.patterns, self.candidate.rarity, strict=True)
            if signatures[place].strength is strength
        )

    def signs(self, calm: bool) -> Signs:
        """What the confidence is made from; `calm` as `is_calm` says."""
        words = self.candidate.line_words
        return Signs(
            strong=self.strong,
            weak=self.weak,
            coverage=self.candidate.coverage,
            mass=self.candidate.mass,
            line=max(words, default=0.0),
            meaning=self.candidate.meaning,
            systems=self.candidate.tags,
            size=math.log1p(len(self._evidence.lines)) / 5,
            unsigned=float(
                self._evidence.is_log
                and not self._evidence.asked
                and bool(self.incident.header.signatures)
                and not self.hits
            ),
            calm=float(calm),
            calm_progress=float(calm and self._evidence.progressing),
            codes=float(_share_code(self._evidence.facts, self.entry.facts)),
            conflict=float(_differ_in_codes(self._evidence.facts, self.entry.facts)),
        )

    @property
    def why(self) -> tuple[Why, ...]:
        """The lines that speak for the record: its signatures, then shared words, then meaning."""
        found = [Why(hit.line, By.SIGNATURE) for hit in self.hits]
        found += [Why(line, By.WORDS) for line in self._by_words()]
        if not found and self._evidence.lines:
            found = [Why(self._evidence.lines[0], By.MEANING)]
        unique = {(why.line.file, why.line.number): why for why in reversed(found)}
        chosen = list(reversed(unique.values()))[:_WHY_LINES]
        return tuple(sorted(chosen, key=lambda why: (why.line.file or "", why.line.number)))

    def _by_words(self) -> list[EvidenceLine]:
        pairs = zip(self.candidate.line_words, self._evidence.lines, strict=False)
        telling = [(weight, line) for weight, line in pairs if weight >= _TELLING_WORDS]
        return [line for _weight, line in sorted(telling, key=lambda pair: -pair[0])][:_WHY_LINES]


def _hits_of(incident: Incident, evidence: Evidence, knowledge: Knowledge) -> list[SignatureHit]:
    patterns = {signature.pattern for signature in incident.header.signatures}
    declared = knowledge.snapshot.patterns
    return [hit for hit in evidence.hits if declared[hit.pattern].pattern.text in patterns]


def _codes(log: Facts, record: Facts) -> Iterator[tuple[set[int], set[int]]]:
    """The exact codes of each kind that both state."""
    for here, there in ((log.xid, record.xid), (log.cuda_errors, record.cuda_errors)):
        if here and there:
            yield set(here), set(there)


def _share_code(log: Facts, record: Facts) -> bool:
    return any(here & there for here, there in _codes(log, record))


def _differ_in_codes(log: Facts, record: Facts) -> bool:
    return any(not here & there for here, there in _codes(log, record))


def is_calm(found: Sequence[Found], evidence: Evidence) -> bool:
    """Nothing but a program's output, and no line shows a failure but those known to be noise."""
    noise = {
        (why.line.file, why.line.number)
        for item in found
        if item.kind is Kind.HARMLESS and item.hits
        for why in item.why
    }
    return (
        evidence.is_log
        and not evidence.asked
        and all(
            line.grade in (Grade.CONTEXT, Grade.HINT) or (line.file, line.number) in noise
            for line in evidence.lines
        )
    )
