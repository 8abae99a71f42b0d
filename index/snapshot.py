"""One generation of the store, open for reading and searching."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Self

import msgspec
import numpy as np

from index import lexical
from index.dense import DenseIndex
from index.documents import Candidate, Pattern, Query
from index.encoder import Encoder
from index.errors import StoreDamaged
from index.signatures import Scanner
from index.store_errors import only_row, store_errors
from index.tokens import tokenize

_MAX_WORD_CANDIDATES = 24
"""Documents that the search by words brings up. Each one is read and weighed, which takes time."""
_MAX_MEANING_CANDIDATES = 24
"""The same for the search by meaning."""
_MAX_PASSAGES_FOUND = 256
"""Passages found for each passage of a query. A record has about ten, so these are of as many
documents as the search by meaning brings up."""
_MAX_CACHED_DOCUMENTS = 512
"""Documents whose words and payload are kept for the next search; some 50 kB each."""
_MAX_SQL_VARIABLES = 500
"""Per statement; old builds of SQLite allow 999."""


class DeclaredPattern(msgspec.Struct, frozen=True):
    """A distinct pattern with the documents that declare it."""

    pattern: Pattern
    owners: tuple[int, ...]
    """Numbers of the documents, rising."""


class _Stored(msgspec.Struct, frozen=True):
    """What the store holds of a document that may be a candidate."""

    id: str
    payload: bytes
    words: frozenset[str]


class Snapshot:
    """A consistent view; later updates of the store do not change it. Close it after use.

    Whatever it reads, it raises StoreDamaged where the store turns out to be corrupt.
    """

    def __init__(self, connection: sqlite3.Connection, dense: DenseIndex, where: str) -> None:
        """`where` the store lies is said in errors: `in /some/directory`."""
        self._connection = connection
        self._dense = dense
        self._where = where
        self._document = lru_cache(_MAX_CACHED_DOCUMENTS)(self._read_document)
        with store_errors(where):
            self._meta = dict(connection.execute("SELECT key, value FROM meta"))
            self._owners = np.array(
                [
                    row[0]
                    for row in connection.execute(
                        "SELECT document FROM passages ORDER BY document, place"
                    )
                ],
                dtype=np.int64,
            )
            declared = distinct_patterns(connection)
            (self._length,) = only_row(connection, "SELECT count(*) FROM documents")
        if patterns_checksum(declared) != self._meta.get("patterns"):
            raise StoreDamaged(f"the index {where} is damaged: patterns are missing")
        self._declared = {entry.pattern: entry.owners for entry in declared}
        if len(self._owners) != len(dense):
            raise StoreDamaged(f"the index {where} is damaged: passages are missing")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the snapshot."""
        self._connection.close()

    @property
    def fingerprint(self) -> str:
        """State of the sources that the last update was given."""
        return str(self._meta.get("fingerprint") or "")

    @property
    def notice(self) -> str:
        """What whoever opens it is to be told of its sources, as they were at the last update."""
        return str(self._meta.get("notice") or "")

    @property
    def generation(self) -> int:
        """The number of this state of the store; a later one has a higher number."""
        return int(self._meta.get("generation") or 0)

    def __len__(self) -> int:
        return int(self._length)

    def digests(self) -> dict[str, str]:
        """The digest of every document by its id."""
        with store_errors(self._where):
            return dict(self._connection.execute("SELECT id, digest FROM documents"))

    def payloads(self) -> dict[str, bytes]:
        """What every document carries for the caller, by its id and in order of ids."""
        with store_errors(self._where):
            return {
                identifier: _checked(payload, checksum)
                for identifier, payload, checksum in self._connection.execute(
                    "SELECT id, payload, checksum FROM documents ORDER BY id"
                )
            }

    def payload(self, identifier: str) -> bytes | None:
        """What one document carries; None where there is none."""
        with store_errors(self._where):
            row = self._connection.execute(
                "SELECT payload, checksum FROM documents WHERE id = ?", (identifier,)
            ).fetchone()
        return _checked(*row) if row else None

    def copy_to(self, other: sqlite3.Connection) -> None:
        """Copy the whole database into another, empty one."""
        with store_errors(self._where):
            self._connection.backup(other)

    def vectors(self, model: str, hashes: Collection[str]) -> dict[str, bytes]:
        """The stored vectors among these, by the hash of their text; none when they were made by
        another model."""
        if self._meta.get("model") != model:
            return {}
        found: dict[str, bytes] = {}
        ordered = sorted(hashes)
        for start in range(0, len(ordered), _MAX_SQL_VARIABLES):
            part = ordered[start : start + _MAX_SQL_VARIABLES]
            marks = ",".join("?" * len(part))
            query = f"SELECT hash, vector FROM vectors WHERE hash IN ({marks})"  # noqa: S608
            with store_errors(self._where):
                found.update(self._connection.execute(query, part))
        return found

    def scanner(self) -> Scanner:
        """The scanner for all declared patterns; reports the first match of each in a block."""
        return Scanner.cached(list(self._declared), self._blob("signatures"))

    def extra_scanner(self, patterns: Sequence[Pattern]) -> Scanner:
        """The scanner for patterns of the caller; reports every match. Loads in no time when the
        last update was given the same ones."""
        return Scanner.cached(patterns, self._blob("extra"), first_only=False)

    def pattern_owners(self) -> dict[Pattern, tuple[str, ...]]:
        """The ids of the documents that declare each pattern, in order of ids."""
        with store_errors(self._where):
            ids = dict(self._connection.execute("SELECT number, id FROM documents"))
        return {
            pattern: tuple(sorted(ids[number] for number in numbers))
            for pattern, numbers in self._declared.items()
        }

    def search(self, query: Query, encoder: Encoder) -> list[Candidate]:
        """Documents that any channel brings up, unordered; the caller weighs the channels."""
        with store_errors(self._where):
            search = _Search(
                self._connection,
                self._dense,
                self._owners,
                self._declared,
                self._document,
                len(self),
            )
            return search.run(query, encoder)

    def rarities(self, terms: Collection[str]) -> dict[str, float]:
        """How rare each term is among the documents, from 0 to 1."""
        with store_errors(self._where):
            counts = lexical.frequencies(self._connection, terms)
        return {term: lexical.rarity(term, counts.get(term, 0), len(self)) for term in terms}

    def _read_document(self, number: int) -> _Stored:
        identifier, payload, checksum, tokens = only_row(
            self._connection,
            "SELECT id, payload, checksum, tokens FROM documents"
            " JOIN lexical ON lexical.rowid = number WHERE number = ?",
            number,
        )
        return _Stored(identifier, _checked(payload, checksum), frozenset(tokens.split(" ")))

    def check(self) -> None:
        """Read the whole store, which takes time in proportion to its size.

        Raises:
            StoreDamaged: something in it is corrupt.
        """
        self.payloads()
        with store_errors(self._where):
            (found,) = only_row(self._connection, "PRAGMA integrity_check(1)")
        if found != "ok":
            raise StoreDamaged(f"the index {self._where} is damaged: {found}")

    def _blob(self, key: str) -> bytes | None:
        blob = self._meta.get(key)
        return blob if isinstance(blob, bytes) else None


def distinct_patterns(connection: sqlite3.Connection) -> list[DeclaredPattern]:
    """All patterns, each once, in a stable order."""
    owners: dict[Pattern, list[int]] = {}
    for document, text, regex in connection.execute(
        "SELECT DISTINCT document, text, regex FROM patterns ORDER BY text, regex, document"
    ):
        owners.setdefault(Pattern(text, bool(regex)), []).append(document)
    return [DeclaredPattern(pattern, tuple(numbers)) for pattern, numbers in owners.items()]


def patterns_checksum(declared: Sequence[DeclaredPattern]) -> int:
    """Of all patterns and who declares them."""
    return zlib.crc32(repr(declared).encode())


def _checked(payload: bytes, checksum: int) -> bytes:
    if zlib.crc32(payload) != checksum:
        raise StoreDamaged("the index is damaged: the checksum of a document is wrong")
    return payload


class _Search:
    """The channels of one search."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        dense: DenseIndex,
        owners: np.ndarray[tuple[int], np.dtype[np.int64]],
        declared: Mapping[Pattern, tuple[int, ...]],
        document: Callable[[int], _Stored],
        documents: int,
    ) -> None:
        """`documents`: how many there are."""
        self._connection = connection
        self._dense = dense
        self._owners = owners
        self._declared = declared
        self._document = document
        self._documents = documents

    def run(self, query: Query, encoder: Encoder) -> list[Candidate]:
        lines_with: dict[str, list[int]] = {}
        for place, line in enumerate(query.lines):
            for token in set(tokenize(line)):
                lines_with.setdefault(token, []).append(place)
        terms = frozenset(lines_with)
        weights = self._weights(terms)
        shares = self._pattern_shares(query.patterns)
        tags = self._tags(query.tags)
        alike = lexical.search(self._connection, weights, _MAX_WORD_CANDIDATES)
        # The last: the encoder may still be at work in another thread.
        meaning = self._meaning(query.passages, encoder)
        nearest = sorted(meaning, key=lambda number: -meaning[number])[:_MAX_MEANING_CANDIDATES]
        total = sum(weights.values()) or 1.0
        candidates = []
        for number in sorted({*shares, *nearest, *alike}):
            stored = self._document(number)
            shared = terms & stored.words
            shared_idf = sum(weights[token] for token in shared)
            line_idf = [0.0] * len(query.lines)
            for token in shared:
                for place in lines_with[token]:
                    line_idf[place] += weights[token]
            candidates.append(
                Candidate(
                    id=stored.id,
                    payload=stored.payload,
                    pattern_shares=shares.get(number, {}),
                    coverage=shared_idf / total,
                    shared_idf=shared_idf,
                    line_idf=tuple(line_idf),
                    tag_idf=tags.get(number, 0.0),
                    cosine=meaning.get(number, 0.0),
                )
            )
        return candidates

    def _weights(self, tokens: frozenset[str]) -> dict[str, float]:
        counts = lexical.frequencies(self._connection, tokens)
        return {
            token: lexical.rarity(token, counts.get(token, 0), self._documents) for token in tokens
        }

    def _pattern_shares(self, seen: frozenset[Pattern]) -> dict[int, dict[Pattern, float]]:
        """By number of the document: the seen patterns that it declares, and how rare each is."""
        found: dict[int, dict[Pattern, float]] = {}
        for pattern in sorted(
            seen & self._declared.keys(), key=lambda pattern: (pattern.text, pattern.regex)
        ):
            (documents,) = only_row(
                self._connection,
                "SELECT documents FROM occurrences WHERE text = ? AND regex = ?",
                pattern.text,
                pattern.regex,
            )
            for document in self._declared[pattern]:
                found.setdefault(document, {})[pattern] = 1.0 / documents
        return found

    def _tags(self, wanted: frozenset[str]) -> dict[int, float]:
        """Number of the document to the weight of the tags it shares with the query."""
        found: dict[int, float] = {}
        for tag in sorted(wanted):
            owners = self._connection.execute(
                "SELECT document FROM tags WHERE tag = ?", (tag,)
            ).fetchall()
            for (document,) in owners:
                weight = lexical.rarity(tag, len(owners), self._documents)
                found[document] = found.get(document, 0.0) + weight
        return found

    def _meaning(self, passages: tuple[str, ...], encoder: Encoder) -> dict[int, float]:
        """Number of the document to its best cosine with a passage of the query."""
        if not passages or not len(self._dense):
            return {}
        scores, positions = self._dense.search(encoder.encode(passages), _MAX_PASSAGES_FOUND)
        found = positions >= 0
        order = np.argsort(scores[found], kind="stable")
        documents = self._owners[positions[found][order]]
        # Of equal keys, a dictionary keeps the last value: the best.
        return dict(zip(documents.tolist(), scores[found][order].tolist(), strict=True))
