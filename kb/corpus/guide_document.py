"""`Check` or `Playbook` to the document that the index of the guides keeps, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

import msgspec
import zstandard

from index.documents import Document, Pattern
from index.signatures import Scanner
from kb.check import Check
from kb.checks.read import finding_patterns
from kb.checks.recognise import anchor_patterns
from kb.corpus.document import digest
from kb.corpus.symptom_names import name_words
from kb.evidence.glossary import has_chinese, translate
from kb.evidence.systems import systems_in
from kb.guides import Guide
from kb.incident import Kind
from kb.playbook import Playbook


class GuideEntry(msgspec.Struct, frozen=True, dict=True):
    """What the index hands back: a guide, read when it is first asked for, since a log concerns
    few of them, and what else would take long to make."""

    kind: Kind
    content: msgspec.Raw
    """The guide, as MessagePack."""
    names: tuple[frozenset[str], ...]
    """The words of each name of a symptom; empty for a check."""
    compiled: bytes
    """What its `guide_scanner` is loaded from: compiling it takes up to half a second."""
    compiled_anchors: bytes
    """The same for its `anchor_scanner`; empty for a playbook."""

    @cached_property
    def guide(self) -> Guide:
        """The check or playbook."""
        return msgspec.msgpack.decode(self.content, type=Check | Playbook)


def to_guide_document(guide: Guide, source: bytes) -> Document:
    """Make the document of a check or playbook and the bytes of its file."""
    passages = tuple(_passages(guide))
    return Document(
        id=guide.id,
        digest=digest(source),
        words=" \n".join([guide.id.replace("-", " "), *_words(guide)]),
        passages=tuple(map(translate, passages)),
        # The lines of a symptom are looked for in the evidence only, never in a whole log.
        patterns=declared_by(guide) if isinstance(guide, Check) else (),
        example="\n".join(_examples(guide)),
        tags=frozenset(systems_in(" ".join(passages))),
        payload=msgspec.msgpack.encode(_to_entry(guide)),
    )


def _to_entry(guide: Guide) -> GuideEntry:
    return GuideEntry(
        kind=guide.header.kind,
        content=msgspec.Raw(msgspec.msgpack.encode(guide)),
        names=tuple(_names(guide)),
        compiled=_compressed(Scanner(_own_patterns(guide))),
        compiled_anchors=(
            _compressed(Scanner(anchor_patterns(guide), first_only=False))
            if isinstance(guide, Check)
            else b""
        ),
    )


def declared_by(guide: Guide) -> tuple[Pattern, ...]:
    """What tells it: the output of a check, the lines that state a symptom."""
    if isinstance(guide, Check):
        return tuple(Pattern(pattern, regex=True) for pattern in guide.header.recognise)
    return tuple(Pattern(line.pattern, line.regex) for line in guide.header.lines)


@lru_cache(512)
def from_guide_payload(payload: bytes) -> GuideEntry:
    """Read what `to_guide_document` stored."""
    return msgspec.msgpack.decode(payload, type=GuideEntry)


def guide_scanner(entry: GuideEntry) -> Scanner:
    """Finds what the output of a check shows, as far as it needs no reader, or the lines of the
    symptom of a playbook."""
    return Scanner.cached(_own_patterns(entry.guide), zstandard.decompress(entry.compiled))


def anchor_scanner(entry: GuideEntry) -> Scanner:
    """Finds each line by which the output of a check is recognised."""
    patterns = anchor_patterns(entry.guide) if isinstance(entry.guide, Check) else ()
    compiled = zstandard.decompress(entry.compiled_anchors) if patterns else None
    return Scanner.cached(patterns, compiled, first_only=False)


def _compressed(scanner: Scanner) -> bytes:
    return zstandard.compress(scanner.dump())


def _own_patterns(guide: Guide) -> Sequence[Pattern]:
    return finding_patterns(guide) if isinstance(guide, Check) else declared_by(guide)


def _names(guide: Guide) -> Iterator[frozenset[str]]:
    if isinstance(guide, Playbook):
        names = guide.header.names
        yield from map(name_words, (guide.title, *names.en, *names.zh))


def _passages(guide: Guide) -> Iterator[str]:
    """How a person asks for it."""
    yield guide.title
    if isinstance(guide, Check):
        yield guide.header.question
    else:
        yield from guide.header.names.en
        yield from guide.header.names.zh


def _words(guide: Guide) -> Iterator[str]:
    for passage in _passages(guide):
        yield passage
        if has_chinese(passage):
            yield translate(passage)
    if isinstance(guide, Check):
        yield " ".join(guide.header.systems)
        yield from (command.run for command in guide.body.commands)
        yield from (finding.means for finding in guide.body.findings)
    else:
        yield from (line.pattern for line in guide.header.lines if not line.regex)
        yield from (cause.cause for cause in guide.body.causes)
        yield from (cause.tell for cause in guide.body.causes)


def _examples(guide: Guide) -> Iterator[str]:
    if isinstance(guide, Check):
        yield guide.body.normal
        yield from (finding.example for finding in guide.body.findings if finding.example)
