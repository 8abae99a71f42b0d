"""The store: one SQLite file with documents, lexical index and signatures, FAISS vectors beside it.

A *generation* is one consistent state. A reader works on a SQLite snapshot, so it always sees a
whole one; the FAISS file carries the generation in its name and is complete on disk before the
transaction that names it commits. A build that is killed leaves the last good generation.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from filelock import FileLock

from index.dense import DenseIndex, Vectors
from index.documents import Changes, Document, Pattern
from index.encoder import Encoder
from index.errors import StoreDamaged, StoreError, StoreMissing
from index.signatures import Scanner
from index.snapshot import DeclaredPattern, Snapshot, distinct_patterns
from index.tokens import tokenize

SCHEMA_VERSION = 1
DATABASE = "index.sqlite"
LOCK = "lock"
_WAIT_FOR_WRITER_SECONDS = 600
_OPEN_ATTEMPTS = 20
_ENCODE_AT_ONCE = 64

Progress = Callable[[int, int], None]
"""Called with the number of passages encoded and their total."""

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, digest TEXT NOT NULL,
    example TEXT NOT NULL, payload BLOB NOT NULL
);
CREATE TABLE occurrences (text TEXT NOT NULL, regex INTEGER NOT NULL, documents INTEGER NOT NULL,
    PRIMARY KEY (text, regex)) WITHOUT ROWID;
CREATE TABLE passages (document INTEGER NOT NULL, place INTEGER NOT NULL, hash TEXT NOT NULL,
    text TEXT NOT NULL, PRIMARY KEY (document, place)) WITHOUT ROWID;
CREATE TABLE tags (tag TEXT NOT NULL, document INTEGER NOT NULL, PRIMARY KEY (tag, document))
    WITHOUT ROWID;
CREATE TABLE vectors (hash TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE patterns (document INTEGER NOT NULL, place INTEGER NOT NULL,
    text TEXT NOT NULL, regex INTEGER NOT NULL, PRIMARY KEY (document, place)) WITHOUT ROWID;
CREATE VIRTUAL TABLE lexical USING fts5(
    tokens, tokenize="unicode61 remove_diacritics 0 tokenchars '_.-:/+'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(lexical, row);
"""


class Store:
    """The index of one corpus in one directory; `directory=None` keeps it in memory."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._lock = directory and FileLock(directory / LOCK, timeout=_WAIT_FOR_WRITER_SECONDS)
        self._memory: sqlite3.Connection | None = None
        self._memory_dense: DenseIndex | None = None

    def update(
        self,
        documents: Sequence[Document],
        encoder: Callable[[], Encoder],
        model: str,
        fingerprint: str,
        progress: Progress = lambda _done, _total: None,
        extra_patterns: Sequence[Pattern] = (),
        *,
        unchanged: Collection[str] = (),
        rebuild: bool = False,
    ) -> Changes:
        """Bring the store to hold exactly `documents` and the stored ones with an id in
        `unchanged`, in one transaction; readers see what was there before until it commits.

        Only passages that no stored vector covers are encoded; `encoder` is called only then.
        With `rebuild` nothing stored is used. `fingerprint` names the state of the sources, see
        `Snapshot.fingerprint`; `extra_patterns` are compiled for `Snapshot.extra_scanner`.

        Raises:
            StoreDamaged: the store is corrupt; `clear` it and update again.
            StoreError: the directory cannot be written.
        """
        with self._writing() as connection:
            _prepare(connection, model)
            if rebuild:
                _forget(connection)
            changes = _replace_documents(connection, documents, unchanged)
            encoded = _encode_missing(connection, encoder, progress)
            changed = changes.added or changes.changed or changes.removed or encoded
            if changed or not self._is_published(connection):
                self._publish(connection)
            _set(connection, "fingerprint", fingerprint)
            extra = Scanner.cached(extra_patterns, _get(connection, "extra"), first_only=False)
            _set(connection, "extra", extra.dump())
        self._remove_old_vectors()
        return msgspec.structs.replace(changes, encoded=encoded)

    def digests(self) -> dict[str, str]:
        """The digest of every stored document by its id; empty where nothing is stored.

        Raises:
            StoreDamaged: the store is corrupt or of another version.
        """
        try:
            with self.open() as snapshot:
                return snapshot.digests()
        except StoreMissing:
            return {}

    def open(self) -> Snapshot:
        """Open the current generation for reading.

        Raises:
            StoreMissing: nothing has been built yet.
            StoreDamaged: the store is corrupt or of another version.
        """
        if self._memory is not None and self._memory_dense is not None:
            copy = _connect(":memory:")
            self._memory.backup(copy)
            return Snapshot(copy, self._memory_dense)
        if self.directory is None or not (self.directory / DATABASE).exists():
            raise StoreMissing("no index has been built yet; run: kb index")
        for _attempt in range(_OPEN_ATTEMPTS):
            # A newer build may remove the vectors between the two reads; the next try sees it.
            with suppress(FileNotFoundError):
                return self._open_once(self.directory)
        raise StoreDamaged(f"the vectors of the index in {self.directory} are missing")

    def _open_once(self, directory: Path) -> Snapshot:
        connection = _connect_reader(directory)
        try:
            with _sqlite_errors(directory):
                connection.execute("BEGIN")
                generation = _current_generation(connection)
            return Snapshot(connection, DenseIndex.load(directory / _vectors_name(generation)))
        except BaseException:
            connection.close()
            raise

    def clear(self) -> None:
        """Remove everything that was built. Incidents are not touched: they are elsewhere."""
        if self.directory is None:
            return
        with self.locked():
            for path in [*self.directory.glob("vectors-*"), *self.directory.glob(f"{DATABASE}*")]:
                path.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out, so that what is opened within is what was just built."""
        if self.directory is None or self._lock is None:
            yield
            return
        _make_writable(self.directory)
        with self._lock:
            yield

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if self.directory is None:
            self._memory = self._memory or _connect(":memory:")
            yield self._memory
            return
        with (
            self.locked(),
            _sqlite_errors(self.directory),
            closing(_connect(str(self.directory / DATABASE))) as connection,
        ):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _is_published(self, connection: sqlite3.Connection) -> bool:
        generation = _get(connection, "generation")
        if generation is None or self.directory is None:
            return generation is not None
        return (self.directory / _vectors_name(generation)).exists()

    def _publish(self, connection: sqlite3.Connection) -> None:
        """Write the vectors and signatures of the new generation and name it."""
        dense = DenseIndex.build(_all_vectors(connection))
        generation = (_get(connection, "generation") or 0) + 1
        if self.directory is None:
            self._memory_dense = dense
        else:
            _write_durably(dense, self.directory / _vectors_name(generation))
        declared = distinct_patterns(connection)
        blob = _get(connection, "signatures")
        scanner = Scanner.cached([one.pattern for one in declared], blob)
        _count_occurrences(connection, declared, scanner)
        _set(connection, "signatures", scanner.dump())
        _set(connection, "generation", generation)

    def _remove_old_vectors(self) -> None:
        """Keep the current generation and the one before it, which a reader may be opening."""
        if self.directory is None:
            return
        with (
            suppress(StoreError, sqlite3.Error),
            closing(_connect_reader(self.directory)) as connection,
        ):
            current = _get(connection, "generation") or 0
            keep = {_vectors_name(current), _vectors_name(current - 1)}
            for path in self.directory.glob("vectors-*.faiss"):
                if path.name not in keep and _generation_of(path) < current:
                    path.unlink(missing_ok=True)


def _make_writable(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot create {directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK):
        raise StoreError(f"cannot write to {directory}")


def _vectors_name(generation: int) -> str:
    return f"vectors-{generation}.faiss"


def _generation_of(path: Path) -> int:
    number = path.stem.removeprefix("vectors-")
    return int(number) if number.isdigit() else -1


def _connect(target: str) -> sqlite3.Connection:
    return sqlite3.connect(
        target,
        timeout=_WAIT_FOR_WRITER_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _connect_reader(directory: Path) -> sqlite3.Connection:
    """Open for reading; in a directory that cannot be written, as an immutable file."""
    path = directory / DATABASE
    if os.access(directory, os.W_OK) and os.access(path, os.W_OK):
        return _connect(str(path))
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro&immutable=1",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )


@contextmanager
def _sqlite_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "no such table: meta" in str(error):
            raise StoreMissing("no index has been built yet; run: kb index") from error
        if "no such table" in str(error) or "malformed" in str(error):
            raise StoreDamaged(f"the index in {directory} is damaged: {error}") from error
        raise StoreError(f"cannot use the index in {directory}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(f"the index in {directory} is damaged: {error}") from error


def _get(connection: sqlite3.Connection, key: str) -> Any:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def _current_generation(connection: sqlite3.Connection) -> int:
    if _get(connection, "schema") != SCHEMA_VERSION:
        raise StoreDamaged("the index is of another version")
    return int(_get(connection, "generation"))


def _set(connection: sqlite3.Connection, key: str, value: str | int | bytes) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def _prepare(connection: sqlite3.Connection, model: str) -> None:
    """Create the tables in a new file; drop the vectors of another model."""
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
    if not exists:
        for statement in _SCHEMA.split(";\n"):
            connection.execute(statement)
        _set(connection, "schema", SCHEMA_VERSION)
    elif _get(connection, "schema") != SCHEMA_VERSION:
        raise StoreDamaged("the index is of another version")
    if _get(connection, "model") != model:
        connection.execute("DELETE FROM vectors")
        _set(connection, "model", model)


def _forget(connection: sqlite3.Connection) -> None:
    """Delete all but the number of the generation, which goes on."""
    for table in ("documents", "lexical", "passages", "patterns", "tags", "vectors"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608
    connection.execute("DELETE FROM meta WHERE key IN ('signatures', 'extra')")


def _replace_documents(
    connection: sqlite3.Connection, documents: Iterable[Document], keep: Collection[str]
) -> Changes:
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
        "INSERT INTO documents (id, digest, example, payload) VALUES (?, ?, ?, ?)",
        (document.id, document.digest, document.example, document.payload),
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
        [
            (number, place, hashlib.sha256(text.encode()).hexdigest(), text)
            for place, text in enumerate(document.passages)
        ],
    )


def _encode_missing(
    connection: sqlite3.Connection, encoder: Callable[[], Encoder], progress: Progress
) -> int:
    """Encode the passages without a vector; return how many there were."""
    connection.execute("DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM passages)")
    missing = connection.execute(
        "SELECT DISTINCT hash, text FROM passages WHERE hash NOT IN (SELECT hash FROM vectors)"
        " ORDER BY length(text)"
    ).fetchall()
    for start in range(0, len(missing), _ENCODE_AT_ONCE):
        progress(start, len(missing))
        part = missing[start : start + _ENCODE_AT_ONCE]
        vectors = encoder().encode([text for _hash, text in part])
        connection.executemany(
            "INSERT INTO vectors VALUES (?, ?)",
            [(row[0], vector.tobytes()) for row, vector in zip(part, vectors, strict=True)],
        )
    progress(len(missing), len(missing))
    return len(missing)


def _all_vectors(connection: sqlite3.Connection) -> Vectors:
    """All vectors in the order of the passages, (n, dim)."""
    rows = connection.execute(
        "SELECT vector FROM passages JOIN vectors USING (hash) ORDER BY document, place"
    ).fetchall()
    if not rows:
        return np.zeros((0, 1), np.float32)
    return np.frombuffer(b"".join(row[0] for row in rows), np.float32).reshape(len(rows), -1)


def _count_occurrences(
    connection: sqlite3.Connection, declared: Sequence[DeclaredPattern], scanner: Scanner
) -> None:
    """Count for each pattern the documents that declare it or whose example has it."""
    seen = [{document for document, _place in one.owners} for one in declared]
    for number, example in connection.execute("SELECT number, example FROM documents"):
        for pattern, _end in scanner.scan(example.encode()):
            seen[pattern].add(number)
    connection.execute("DELETE FROM occurrences")
    connection.executemany(
        "INSERT INTO occurrences VALUES (?, ?, ?)",
        [
            (one.pattern.text, one.pattern.regex, len(documents))
            for one, documents in zip(declared, seen, strict=True)
        ],
    )


def _write_durably(dense: DenseIndex, path: Path) -> None:
    """Write under another name, flush to disk, then rename."""
    temporary = path.with_suffix(".partial")
    dense.save(temporary)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
