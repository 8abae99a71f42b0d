"""The tables of the store and what is written to them, inside a transaction of the caller."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np

from index.dense import Vectors
from index.documents import Changes, Document, Pattern
from index.encoder import Encoder
from index.errors import StoreDamaged
from index.progress import Report
from index.signatures import Scanner
from index.snapshot import DeclaredPattern, distinct_patterns
from index.tokens import tokenize
from index.vector_cache import MAX_LENGTH_ERROR, text_hash

_TEXTS_PER_BATCH = 64
"""Texts encoded between two reports of progress; small, so that progress is seen to move."""

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, digest TEXT NOT NULL,
    example TEXT NOT NULL, payload BLOB NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE occurrences (text TEXT NOT NULL, regex INTEGER NOT NULL, documents INTEGER NOT NULL,
    PRIMARY KEY (text, regex)) WITHOUT ROWID;
CREATE TABLE passages (document INTEGER NOT NULL, place INTEGER NOT NULL, hash TEXT NOT NULL,
    text TEXT NOT NULL, PRIMARY KEY (document, place)) WITHOUT ROWID;
CREATE TABLE tags (tag TEXT NOT NULL, document INTEGER NOT NULL, PRIMARY KEY (tag, document))
    WITHOUT ROWID;
CREATE TABLE vectors (hash TEXT PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE patterns (document INTEGER NOT NULL, place INTEGER NOT NULL,
    text TEXT NOT NULL, regex INTEGER NOT NULL, PRIMARY KEY (document, place)) WITHOUT ROWID;
CREATE VIRTUAL TABLE lexical USING fts5(
    tokens, tokenize="unicode61 remove_diacritics 0 tokenchars '_.-:/+'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(lexical, row);
"""
SCHEMA_VERSION = zlib.crc32(_SCHEMA.encode())
"""Version of the tables; a store with another version is rebuilt."""


def get_meta(connection: sqlite3.Connection, key: str) -> Any:
    """The value of a key; None where there is none."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def is_current_schema(connection: sqlite3.Connection) -> bool:
    """Whether the store has the tables of this version."""
    return bool(get_meta(connection, "schema") == SCHEMA_VERSION)


def current_generation(connection: sqlite3.Connection) -> int:
    """The number of the generation.

    Raises:
        StoreDamaged: the store is of another version.
    """
    if not is_current_schema(connection):
        raise StoreDamaged("the index is of another version")
    return int(get_meta(connection, "generation"))


def set_meta(connection: sqlite3.Connection, key: str, value: str | int | bytes) -> None:
    """Store the value of a key."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def prepare(connection: sqlite3.Connection, model: str) -> None:
    """Create the tables in a new file; drop the vectors of another model."""
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
    if not exists:
        for statement in _SCHEMA.split(";\n"):
            connection.execute(statement)
        set_meta(connection, "schema", SCHEMA_VERSION)
    elif not is_current_schema(connection):
        raise StoreDamaged("the index is of another version")
    if get_meta(connection, "model") != model:
        connection.execute("DELETE FROM vectors")
        set_meta(connection, "model", model)


def take_vectors(connection: sqlite3.Connection, database: bytes) -> None:
    """Add the vectors of another store, where they are of the same model and version."""
    with closing(sqlite3.connect(":memory:")) as other:
        if not hasattr(other, "deserialize"):  # an old SQLite
            return
        other.deserialize(database)
        if is_current_schema(other) and get_meta(other, "model") == get_meta(connection, "model"):
            rows = other.execute("SELECT hash, vector FROM vectors")
            connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)


def forget(connection: sqlite3.Connection) -> None:
    """Delete everything except the generation number, which keeps increasing."""
    for table in ("documents", "lexical", "passages", "patterns", "tags", "vectors"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608
    connection.execute("DELETE FROM meta WHERE key IN ('signatures', 'extra')")


def replace_documents(
    connection: sqlite3.Connection, documents: Iterable[Document], keep: Collection[str]
) -> Changes:
    """Insert what is new, replace what changed, delete what is neither given nor in `keep`."""
    stored = {
        row[0]: (row[1], row[2])
        for row in connection.execute("SELECT id, number, digest FROM documents")
    }
    unchanged = sum(stored.pop(identifier, None) is not None for identifier in keep)
    added = changed = 0
    for document in documents:
        number, digest = stored.pop(document.id, (None, None))
        if digest == document.digest:
            unchanged += 1
            continue
        added, changed = added + (number is None), changed + (number is not None)
        if number is not None:
            _delete(connection, number)
        _insert(connection, document)
    for number, _digest in stored.values():
        _delete(connection, number)
    return Changes(added, changed, len(stored), unchanged, 0)


def _delete(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("DELETE FROM documents WHERE number = ?", (number,))
    connection.execute("DELETE FROM lexical WHERE rowid = ?", (number,))
    connection.execute("DELETE FROM passages WHERE document = ?", (number,))
    connection.execute("DELETE FROM patterns WHERE document = ?", (number,))
    connection.execute("DELETE FROM tags WHERE document = ?", (number,))


def _insert(connection: sqlite3.Connection, document: Document) -> None:
    number = connection.execute(
        "INSERT INTO documents (id, digest, example, payload, checksum) VALUES (?, ?, ?, ?, ?)",
        (
            document.id,
            document.digest,
            document.example,
            document.payload,
            zlib.crc32(document.payload),
        ),
    ).lastrowid
    connection.execute(
        "INSERT INTO lexical (rowid, tokens) VALUES (?, ?)",
        (number, " ".join(tokenize(document.words))),
    )
    connection.executemany(
        "INSERT INTO patterns VALUES (?, ?, ?, ?)",
        [(number, n, p.text, p.regex) for n, p in enumerate(document.patterns)],
    )
    connection.executemany(
        "INSERT INTO tags VALUES (?, ?)", [(tag, number) for tag in sorted(document.tags)]
    )
    connection.executemany(
        "INSERT INTO passages VALUES (?, ?, ?, ?)",
        [(number, place, text_hash(text), text) for place, text in enumerate(document.passages)],
    )


def encode_missing(
    connection: sqlite3.Connection, encoder: Callable[[], Encoder], report: Report
) -> int:
    """Encode the passages without a vector; return how many there were."""
    connection.execute("DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM passages)")
    missing = connection.execute(
        "SELECT DISTINCT hash, text FROM passages WHERE hash NOT IN (SELECT hash FROM vectors)"
        " ORDER BY length(text)"
    ).fetchall()
    for start in range(0, len(missing), _TEXTS_PER_BATCH):
        report(start, len(missing))
        part = missing[start : start + _TEXTS_PER_BATCH]
        vectors = encoder().encode([text for _hash, text in part])
        connection.executemany(
            "INSERT INTO vectors VALUES (?, ?)",
            [(row[0], vector.tobytes()) for row, vector in zip(part, vectors, strict=True)],
        )
    report(len(missing), len(missing))
    return len(missing)


def all_vectors(connection: sqlite3.Connection) -> Vectors:
    """All vectors in the order of the passages, (n, dim).

    Raises:
        StoreDamaged: one is not of unit length, as it was when it was stored.
    """
    rows = connection.execute(
        "SELECT vector FROM passages JOIN vectors USING (hash) ORDER BY document, place"
    ).fetchall()
    if not rows:
        return np.zeros((0, 1), np.float32)
    vectors = np.frombuffer(b"".join(row[0] for row in rows), np.float32).reshape(len(rows), -1)
    if not np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=MAX_LENGTH_ERROR):
        raise StoreDamaged("the vectors of the index are damaged")
    return vectors


def compile_patterns(connection: sqlite3.Connection, extra_patterns: Sequence[Pattern]) -> Scanner:
    """Store the compiled form of the declared patterns and of some others, and return the scanner
    of the declared ones. What is stored and fits is not compiled again; else it takes a second, so
    both are compiled at once."""
    declared = [entry.pattern for entry in distinct_patterns(connection)]
    blobs = get_meta(connection, "signatures"), get_meta(connection, "extra")
    with ThreadPoolExecutor(1) as other:
        extra = other.submit(Scanner.cached, extra_patterns, blobs[1], first_only=False)
        scanner = Scanner.cached(declared, blobs[0])
    set_meta(connection, "signatures", scanner.dump())
    set_meta(connection, "extra", extra.result().dump())
    return scanner


def count_occurrences(
    connection: sqlite3.Connection, declared: Sequence[DeclaredPattern], scanner: Scanner
) -> None:
    """Count for each pattern the documents that declare it or whose example has it."""
    seen = {entry.pattern: set(entry.owners) for entry in declared}
    for number, example in connection.execute("SELECT number, example FROM documents"):
        for place, _end in scanner.scan(example.encode()):
            seen[scanner.patterns[place]].add(number)
    connection.execute("DELETE FROM occurrences")
    connection.executemany(
        "INSERT INTO occurrences VALUES (?, ?, ?)",
        [(pattern.text, pattern.regex, len(documents)) for pattern, documents in seen.items()],
    )
