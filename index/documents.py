"""What goes into the index and what comes out of it."""

from __future__ import annotations

import msgspec


class Pattern(msgspec.Struct, frozen=True):
    """A signature: literal text, or a regular expression without look-around or back-references."""

    text: str
    regex: bool = False


class Document(msgspec.Struct, frozen=True):
    """One document to be found."""

    id: str
    digest: str
    """Changes whenever anything about the document changes; only then is it indexed again."""
    words: str
    """What the lexical channel indexes."""
    passages: tuple[str, ...]
    """Texts for the encoder, each about one idea and at most some 200 words long."""
    patterns: tuple[Pattern, ...]
    example: str
    """Text of the kind that is searched for patterns; shows how common a pattern is."""
    tags: frozenset[str]
    """What the document is about, by name."""
    payload: bytes
    """Opaque to the index; handed back with every candidate."""


class Query(msgspec.Struct, frozen=True):
    """What is looked for."""

    lines: tuple[str, ...]
    """For the lexical channel, most telling first."""
    passages: tuple[str, ...]
    """For the encoder."""
    tags: frozenset[str] = frozenset()
    patterns: frozenset[Pattern] = frozenset()
    """The patterns that were seen."""


class Candidate(msgspec.Struct, frozen=True):
    """A document with what each channel says about it."""

    id: str
    payload: bytes
    pattern_shares: dict[Pattern, float]
    """Those of the query's patterns that the document declares, each with one over the number of
    documents that declare it or whose example has it."""
    coverage: float
    """Share of the query's words, weighted by how rare they are, that the document has. 0 to 1."""
    shared_idf: float
    """Weight of all the query's words that the document has (1 = one rare word)."""
    line_idf: tuple[float, ...]
    """For each line of the query: weight of its words that the document has (1 = one rare word)."""
    tag_idf: float
    """Weight of the tags that query and document share (1 = a tag of this document alone)."""
    cosine: float
    """Highest cosine between a passage of the query and one of the document."""


class Changes(msgspec.Struct, frozen=True):
    """What an update of the store did."""

    added: int
    changed: int
    removed: int
    unchanged: int
    encoded: int
    """Passages that had to be encoded."""
    rejected: tuple[Pattern, ...] = ()
    """Declared patterns that do not compile and are not searched for."""
