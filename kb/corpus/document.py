"""`Incident` to the document that the index keeps, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from index.documents import Document, Pattern
from index.tokens import tokenize
from kb.evidence.facts import Facts, fact_words, find_facts
from kb.evidence.glossary import has_chinese, translate
from kb.evidence.reasons import reasons_in
from kb.evidence.systems import systems_in
from kb.incident import Incident, Signature
from kb.log.mask import mask
from kb.log.prefixes import split_prefix
from kb.rules import file_digest

_FORMAT_VERSION = 9
"""Increase this number when this module produces different documents from the same file."""

_MAX_PASSAGE_CHARACTERS = 600
"""Of an encoded passage; the encoder truncates at 256 tokens anyway."""
_MAX_EVIDENCE_LINES = 12
"""Lines of one evidence block that are encoded; further ones rarely fit into a passage."""
_REGEX_SIGNS = re.compile(r"\\[a-zA-Z]|[^\w\s/.-]")


class Entry(msgspec.Struct, frozen=True):
    """What the index hands back: the record, and what can be computed of it beforehand."""

    incident: Incident
    facts: Facts
    quoted: tuple[frozenset[str], ...]
    """The words of each line that programs print where it happens."""
    reasons: frozenset[str]
    """For which something is refused where it happens."""


def digest(source: bytes) -> str:
    """Key that changes when a file must be indexed again: hash of its content, of
    `_FORMAT_VERSION`, and of the rules whose results are kept with it: the glossary, in which it is
    translated, and the reasons for which something is refused."""
    rules = file_digest("glossary") + file_digest("reasons")
    return hashlib.sha256(b"%d\0" % _FORMAT_VERSION + rules + source).hexdigest()


def to_document(incident: Incident, source: bytes) -> Document:
    """Make the document of an incident and the bytes of its file."""
    facts = find_facts(incident.body.evidence_text.split("\n"))
    return Document(
        id=incident.id,
        digest=digest(source),
        words=" \n".join(_words(incident, facts)),
        passages=tuple(passage[:_MAX_PASSAGE_CHARACTERS] for passage in _passages(incident)),
        patterns=tuple(map(declared_pattern, incident.header.signatures)),
        example=incident.body.evidence_text,
        tags=_tags(incident),
        payload=msgspec.msgpack.encode(_to_entry(incident, facts)),
    )


def _to_entry(incident: Incident, facts: Facts) -> Entry:
    body = incident.body
    told = (incident.title, body.symptom, body.cause, body.evidence_text)
    signatures = (one.pattern for one in incident.header.signatures)
    return Entry(
        incident, facts, tuple(_quoted(incident)), reasons_in("\n".join((*told, *signatures)))
    )


def declared_pattern(signature: Signature) -> Pattern:
    """The pattern that the index scans for."""
    return Pattern(signature.pattern, signature.regex)


@lru_cache(512)
def from_payload(payload: bytes) -> Entry:
    """Read what `to_document` stored."""
    return msgspec.msgpack.decode(payload, type=Entry)


def masked_lines(block: str) -> list[str]:
    """The lines of an evidence block as a query would hold them."""
    return [mask(split_prefix(line).text).strip() for line in block.split("\n") if line.strip()]


def _tags(incident: Incident) -> frozenset[str]:
    """Its systems, by the names that a log is found to speak of."""
    header = incident.header
    named = " ".join([*header.systems, *header.environment.frameworks, header.title])
    return frozenset(systems_in(named))


def _words(incident: Incident, facts: Facts) -> Iterator[str]:
    header, body = incident.header, incident.body
    yield incident.id.replace("-", " ")
    yield header.title
    yield " ".join(header.systems)
    yield from header.environment.frameworks
    yield header.environment.hardware
    for alias in header.aliases:
        yield alias
        if has_chinese(alias):
            yield translate(alias)
    yield body.symptom
    yield body.setting
    yield body.cause
    for block in body.evidence:
        yield from masked_lines(block.text)
    yield from map(_plain, header.signatures)
    yield fact_words(facts)


def _quoted(incident: Incident) -> Iterator[frozenset[str]]:
    """The words of its evidence and signatures, and of what it is called by, line by line."""
    lines = masked_lines(incident.body.evidence_text)
    lines += map(_plain, incident.header.signatures)
    lines += [incident.title, *incident.header.aliases]
    return filter(None, dict.fromkeys(frozenset(tokenize(line)) for line in lines))


def _plain(signature: Signature) -> str:
    return _REGEX_SIGNS.sub(" ", signature.pattern) if signature.regex else signature.pattern


def _passages(incident: Incident) -> Iterator[str]:
    header, body = incident.header, incident.body
    yield header.title
    yield body.symptom
    for alias in header.aliases:
        yield translate(alias)
    for block in body.evidence:
        yield "\n".join(masked_lines(block.text)[:_MAX_EVIDENCE_LINES])
