"""What is searched for: the lines of the evidence for words, a summary of them for meaning."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from index.documents import Query
from kb.evidence import Evidence, EvidenceLine, fact_words
from kb.evidence.glossary import has_chinese, translate
from kb.evidence.markers import Grade
from kb.evidence.nature import without_request

MAX_QUERY_LINES = 60
"""Number of lines searched by words; the most informative come first, later ones cost time."""

MAX_QUERY_PASSAGES = 2
"""Number of encoded passages, about 3 ms each: the whole input, and its informative lines."""

MAX_PASSAGE_LINES = 8
"""Lines of one passage; more rarely fit into its characters."""
MAX_PASSAGE_CHARACTERS = 900
"""Characters per passage; the encoder truncates at 256 tokens anyway."""


def without_requests(evidence: Evidence) -> Evidence:
    """The evidence as a person tells it, without what they ask of whoever reads it."""
    if not (evidence.told or evidence.human_written):
        return evidence
    lines = (
        msgspec.structs.replace(
            line, text=without_request(line.text), masked=without_request(line.masked)
        )
        for line in evidence.lines
    )
    return msgspec.structs.replace(evidence, lines=tuple(lines))


def to_query(evidence: Evidence) -> Query:
    """The query for the index: informative lines for words, a summary of them for meaning."""
    evidence = without_requests(evidence)
    lines = [_searchable(line) for line in evidence.lines[:MAX_QUERY_LINES]]
    return Query(
        lines=(*lines, fact_words(evidence.facts)),
        passages=tuple(dict.fromkeys(filter(None, _passages(evidence))))[:MAX_QUERY_PASSAGES],
        tags=frozenset(evidence.facts.systems),
        patterns=frozenset(hit.pattern for hit in evidence.hits),
    )


def _searchable(line: EvidenceLine) -> str:
    words = " ".join([line.masked, *line.stack])
    return f"{words} {translate(words)}" if has_chinese(words) else words


def _passages(evidence: Evidence) -> Iterable[str]:
    telling = [line for line in evidence.lines if line.grade >= Grade.HINT][:MAX_PASSAGE_LINES]
    in_order = sorted(evidence.lines, key=lambda line: (line.file or "", line.number))
    whole = translate("\n".join(line.masked for line in in_order))
    if evidence.human_written or len(whole) <= MAX_PASSAGE_CHARACTERS:
        yield whole[:MAX_PASSAGE_CHARACTERS]
    if telling:
        yield translate("\n".join(line.masked for line in telling))[:MAX_PASSAGE_CHARACTERS]
    else:
        yield whole[:MAX_PASSAGE_CHARACTERS]
