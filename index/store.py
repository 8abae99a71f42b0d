"""The store: one SQLite file with documents, lexical index and signatures, FAISS vectors beside it.

A *generation* is one consistent state. A reader works on a SQLite snapshot, so it always sees a
whole one; the FAISS file carries the generation in its name and is complete on disk before the
transaction that names it commits. A build that is killed leaves the last good generation.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from index.dense import DenseIndex
from index.documents import Changes, Document, Pattern
from index.encoder import Encoder
from index.errors import PatternError, StoreDamaged, StoreError, StoreMissing, StoreReplaced
from index.packing import checksum, unpack
from index.private import close_directory, file_mode, make_directory, make_file
from index.progress import Notify, Report, silent_notify, silent_report
from index.signatures import Scanner
from index.snapshot import Snapshot, distinct_patterns, patterns_checksum
from index.store_errors import store_errors
from index.tables import (
    all_vectors,
    compile_patterns,
    count_occurrences,
    current_generation,
    encode_missing,
    forget,
    get_meta,
    is_current_schema,
    prepare,
    replace_documents,
    set_meta,
    take_vectors,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock

DATABASE = "index.sqlite"
LOCK = "lock"
_LOCK_TIMEOUT_SECONDS = 600
"""How long to wait for another process that writes; a first build can take minutes."""
_LOCK_PATIENCE_SECONDS = 1
"""How long to wait without a word."""
_MAX_OPEN_ATTEMPTS = 20
"""How often a reader starts again because a writer replaced files meanwhile."""


class Store:
    """The index of one corpus in one directory; `directory=None` keeps it in memory. Only the user
    can read it, unless it is `shared`."""

    def __init__(self, directory: Path | None, *, shared: bool = False) -> None:
        self.directory = directory
        self._shared = shared
        self._memory: sqlite3.Connection | None = None
        self._memory_dense: DenseIndex | None = None

    def update(
        self,
        documents: Sequence[Document],
        encoder: Callable[[], Encoder],
        model: str,
        fingerprint: str,
        report: Report = silent_report,
        extra_patterns: Sequence[Pattern] = (),
        *,
        unchanged: Collection[str] = (),
        rebuild: bool = False,
        notice: str = "",
    ) -> Changes:
        """Bring the store to hold exactly `documents` and the stored ones with an id in
        `unchanged`, in one transaction; readers see what was there before until it commits.

        Only passages that no stored vector covers are encoded; `encoder` is called only then.
        With `rebuild` nothing stored is used. `fingerprint` names the state of the sources, see
        `Snapshot.fingerprint`; `extra_patterns` are compiled for `Snapshot.extra_scanner`, and
        `notice` is kept for `Snapshot.notice`.

        Raises:
            StoreDamaged: the store is corrupt; `clear` it and update again.
            StoreError: the directory cannot be written.
        """
        with self._writing() as connection:
            prepare(connection, model)
            if rebuild:
                forget(connection)
            changes = replace_documents(connection, documents, unchanged)
            encoded = encode_missing(connection, encoder, report)
            scanner = compile_patterns(connection, extra_patterns)
            changed = changes.added or changes.changed or changes.removed or encoded
            if changed or not self._is_published(connection):
                self._publish(connection, scanner)
            set_meta(connection, "fingerprint", fingerprint)
            set_meta(connection, "notice", notice)
        self._remove_old_vectors()
        return msgspec.structs.replace(changes, encoded=encoded, rejected=scanner.rejected)

    def seed(self, packed: Path, extra_patterns: Sequence[Pattern] = ()) -> None:
        """Fill a store in which nothing has been built yet from a file that `index.packing` made.
        One that began with another file, of another release, takes the vectors of this one.

        The file only saves time: one that is missing, damaged or of another version is ignored.
        `extra_patterns` are those of `update`.

        Raises:
            StoreError: the directory cannot be written.
        """
        unfit = suppress(StoreDamaged, StoreMissing, PatternError)
        with self.locked(), unfit, store_errors(self._where):
            mark = checksum(packed)
            if mark is None or self._seed_mark() == mark or not (database := unpack(packed)):
                return
            if self._exists():
                with self._writing() as connection:
                    take_vectors(connection, database)
            elif self.directory is None:
                self._seed_memory(database, extra_patterns)
            else:
                self._seed_directory(self.directory, database, extra_patterns)
            if self._exists():
                with self._writing() as connection:
                    set_meta(connection, "seed", mark)

    def _seed_mark(self) -> int | None:
        """Of the file whose vectors the store has."""
        if not self._exists():
            return None
        with self._writing() as connection:
            mark: int | None = get_meta(connection, "seed")
        return mark

    def _seed_memory(self, database: bytes, extra_patterns: Sequence[Pattern]) -> None:
        connection = _connect(":memory:")
        if not hasattr(connection, "deserialize"):  # an old SQLite
            return
        connection.deserialize(database)
        if is_current_schema(connection):
            self._publish(connection, _compiled_all(connection, extra_patterns))
            self._memory = connection

    def _seed_directory(
        self, directory: Path, database: bytes, extra_patterns: Sequence[Pattern]
    ) -> None:
        """The database gets its name only when it is whole."""
        for leftover in directory.glob(f"{DATABASE}*"):  # of a process that was killed
            leftover.unlink()
        partial = directory / f"{DATABASE}.partial"
        try:
            make_file(partial, shared=self._shared)
            partial.write_bytes(database)
            with closing(_connect(str(partial))) as connection:
                if not is_current_schema(connection):
                    return
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN")
                self._publish(connection, _compiled_all(connection, extra_patterns))
                connection.execute("COMMIT")
            partial.replace(directory / DATABASE)
        finally:
            partial.unlink(missing_ok=True)

    def _exists(self) -> bool:
        if self.directory is None:
            return self._memory is not None
        with suppress(FileNotFoundError):
            return (self.directory / DATABASE).stat().st_size > 0  # SQLite takes none for a new one
        return False

    @property
    def _where(self) -> str:
        """Said in errors."""
        return f"in {self.directory}" if self.directory else "in memory"

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
            return Snapshot(copy, self._memory_dense, "in memory")
        if self.directory is None or not _is_file(self.directory / DATABASE):
            raise StoreMissing("no index has been built yet; run: kb index")
        for _attempt in range(_MAX_OPEN_ATTEMPTS):
            # A newer build may remove files between the reads; the next try sees what it made.
            with suppress(FileNotFoundError, StoreReplaced):
                return self._open_once(self.directory)
        try:  # what still fails is no writer's doing
            return self._open_once(self.directory)
        except FileNotFoundError as error:
            where = f"the vectors of the index in {self.directory}"
            raise StoreDamaged(f"{where} are missing") from error

    def _open_once(self, directory: Path) -> Snapshot:
        with store_errors(f"in {directory}"):
            connection = _connect_reader(directory)
        try:
            with store_errors(f"in {directory}"):
                connection.execute("BEGIN")
                generation = current_generation(connection)
                checksum = get_meta(connection, "vectors")
            _check_home(connection, directory)
            dense = DenseIndex.load(directory / _vectors_name(generation), checksum)
            return Snapshot(connection, dense, f"in {directory}")
        except BaseException:
            connection.close()
            raise

    def clear(self) -> None:
        """Remove everything that was built. Incidents are not touched: they are elsewhere.

        Raises:
            StoreError: the directory cannot be written.
        """
        if self.directory is None:
            return
        with self.locked(), store_errors(f"in {self.directory}"):
            for path in [*self.directory.glob("vectors-*"), *self.directory.glob(f"{DATABASE}*")]:
                path.unlink(missing_ok=True)

    @cached_property
    def _lock(self) -> BaseFileLock:
        # Most answers find the index as it has to be, and loading this takes as long as opening it.
        from filelock import FileLock

        path = (self.directory or Path()) / LOCK
        return FileLock(path, _LOCK_TIMEOUT_SECONDS, file_mode(shared=self._shared))

    @contextmanager
    def locked(self, notify: Notify = silent_notify) -> Iterator[None]:
        """Hold the write lock, so that the caller opens exactly the generation it just built.
        `notify` is told of a process that does not let it go at once."""
        if self.directory is None:
            yield
            return
        from filelock import Timeout

        with store_errors(f"in {self.directory}"):
            _make_writable(self.directory, shared=self._shared)
            try:
                self._lock.acquire(_LOCK_PATIENCE_SECONDS)
            except Timeout:
                notify(f"waiting for another process that builds the index in {self.directory}")
                self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        if self.directory is None:
            self._memory = self._memory or _connect(":memory:")
            with _transaction(self._memory):
                yield self._memory
            return
        with self.locked(), store_errors(f"in {self.directory}"), ExitStack() as stack:
            make_file(self.directory / DATABASE, shared=self._shared)
            connection = stack.enter_context(closing(_connect(str(self.directory / DATABASE))))
            connection.execute("PRAGMA journal_mode = WAL")
            with _transaction(connection):
                yield connection

    def _is_published(self, connection: sqlite3.Connection) -> bool:
        generation = get_meta(connection, "generation")
        if generation is None or self.directory is None:
            return generation is not None
        return (self.directory / _vectors_name(generation)).exists()

    def _publish(self, connection: sqlite3.Connection, scanner: Scanner) -> None:
        """Write the vectors of the new generation, count where its patterns occur, and name it."""
        dense = DenseIndex.build(all_vectors(connection))
        generation = (get_meta(connection, "generation") or 0) + 1
        if self.directory is None:
            self._memory_dense = dense
        else:
            path = self.directory / _vectors_name(generation)
            checksum = _write_durably(dense, path, shared=self._shared)
            set_meta(connection, "vectors", checksum)
            set_meta(connection, "home", self.directory.name)
        declared = distinct_patterns(connection)
        set_meta(connection, "patterns", patterns_checksum(declared))
        count_occurrences(connection, declared, scanner)
        set_meta(connection, "generation", generation)

    def _remove_old_vectors(self) -> None:
        """Keep the current generation and the one before it, which a reader may be opening."""
        if self.directory is None:
            return
        with (
            suppress(StoreError, sqlite3.Error, OSError),
            closing(_connect_reader(self.directory)) as connection,
        ):
            current = get_meta(connection, "generation") or 0
            keep = {_vectors_name(current), _vectors_name(current - 1)}
            for path in self.directory.glob("vectors-*.faiss"):
                if path.name not in keep and _generation_of(path) < current:
                    path.unlink(missing_ok=True)


def _compiled_all(connection: sqlite3.Connection, extra_patterns: Sequence[Pattern]) -> Scanner:
    """As `compile_patterns`, for a database that somebody else made.

    Raises:
        PatternError: a declared pattern does not compile.
    """
    scanner = compile_patterns(connection, extra_patterns)
    for pattern in scanner.rejected:
        raise PatternError(f"the pattern `{pattern.text}` does not compile")
    return scanner


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. One commit also leaves the full-text index in one piece: in many pieces each
    search takes several times as long."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


def _is_file(path: Path) -> bool:
    with store_errors(f"in {path.parent}"):
        return path.is_file()


def _check_home(connection: sqlite3.Connection, directory: Path) -> None:
    """Raises:
    StoreDamaged: the index was built in another directory, for other documents.
    """
    with store_errors(f"in {directory}"):
        home = get_meta(connection, "home")
    if home and home != directory.name:
        raise StoreDamaged(f"the index in {directory} is that of another directory")


def _make_writable(directory: Path, *, shared: bool) -> None:
    try:
        make_directory(directory, shared=shared)
    except OSError as error:
        raise StoreError(f"cannot create {directory}: {error.strerror}") from error
    if not os.access(directory, os.W_OK):
        raise StoreError(f"cannot write to {directory}")
    if not shared:
        close_directory(directory)


def _vectors_name(generation: int) -> str:
    return f"vectors-{generation}.faiss"


def _generation_of(path: Path) -> int:
    number = path.stem.removeprefix("vectors-")
    return int(number) if number.isdecimal() else -1


def _connect(target: str) -> sqlite3.Connection:
    return sqlite3.connect(
        target,
        timeout=_LOCK_TIMEOUT_SECONDS,
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


def _write_durably(dense: DenseIndex, path: Path, *, shared: bool) -> int:
    """Write under another name, flush to disk, then rename. Return the checksum."""
    temporary = path.with_suffix(".partial")
    try:
        make_file(temporary, shared=shared)
        checksum = dense.save(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return checksum
