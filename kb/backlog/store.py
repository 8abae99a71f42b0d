"""One import: its reports, their words and vectors, in one SQLite file.

It is the only copy of what was read, so it lies with the user's data. Every batch is one
transaction: what was reported done is there after any end of the process.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from index import postings
from index.codes import Codes, Small, to_codes, to_small
from index.dense import Vectors
from index.private import make_directory, make_file
from kb.backlog.gist import case_key, words_of
from kb.backlog.model import Report
from kb.errors import KbError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sources (name TEXT PRIMARY KEY, stamp TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE reports (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL UNIQUE, file TEXT NOT NULL, ticket TEXT NOT NULL,
    duplicate_of TEXT NOT NULL, "case" TEXT NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX of_file ON reports (file);
CREATE INDEX of_ticket ON reports (ticket);
CREATE INDEX of_case ON reports ("case");
CREATE TABLE gone (number INTEGER PRIMARY KEY);
CREATE TABLE vectors (number INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE codes (first INTEGER PRIMARY KEY, numbers BLOB NOT NULL, codes BLOB NOT NULL);
{postings.SCHEMA}
"""
SCHEMA_VERSION = zlib.crc32(_SCHEMA.encode())
"""Version of the tables."""

_FILED = 'body, identity, file, ticket, duplicate_of, digest, "case"'
"""The columns that make a `Filed`."""

_OF_CASE = """
SELECT other.number FROM reports AS one JOIN reports AS other
    ON other."case" = one."case" AND one."case" != ''
    OR other.ticket = one.duplicate_of AND one.duplicate_of != ''
WHERE one.number = ?
"""
"""The numbers of the reports of one case, and of the one that it is said to repeat."""

_NUMBER_WITHOUT_VECTOR = """
SELECT number FROM reports WHERE identity = ? AND number NOT IN (SELECT number FROM vectors)
"""

_MAX_SAME = 200
"""Reports of one case that are looked at."""

_BUSY_SECONDS = 10
"""How long to wait for a writer that is at its commit."""


class Filed(msgspec.Struct, frozen=True):
    """A report, and what finds it again."""

    report: Report
    identity: str
    """Its address, else its source: an older one of the same identity gives way to it."""
    file: str
    ticket: str
    """The number or key by which others of the same tracker name it; empty where it has none."""
    duplicate_of: str
    digest: str
    """Of the thread that it was made of."""
    case: str = ""
    """Equal for reports of one case, see `case_key`."""


class BacklogStore:
    """The file of one import. Safe to use from one thread."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open it to write; make it where it is missing.

        Raises:
            KbError: it cannot be written, or is none.
        """
        with _errors(path):
            make_directory(path.parent)
            make_file(path)
            connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION & 0x7FFFFFFF}")
        return cls._checked(path, connection)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open it to read.

        Raises:
            KbError: it cannot be read.
        """
        with _errors(path):
            return cls._checked(path, _connect(f"{path.absolute().as_uri()}?mode=ro"))

    @classmethod
    def _checked(cls, path: Path, connection: sqlite3.Connection) -> Self:
        with _errors(path):
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION & 0x7FFFFFFF:
            connection.close()
            raise KbError(f"{_named(path)} is of another version of kb; {_again(path)}")
        return cls(path, connection)

    @property
    def name(self) -> str:
        """The name of the import."""
        return self.path.stem

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The tables, for one question.

        Raises:
            KbError: they cannot be read.
        """
        with _errors(self.path):
            yield self._connection

    def size(self) -> int:
        """Number of reports."""
        return int(self._one("SELECT count(*) FROM reports")[0])

    def highest(self) -> int:
        """The highest number that a report has or had."""
        return int(self._one("SELECT coalesce(max(seq), 0) FROM sqlite_sequence")[0])

    def stamp(self, source: str) -> str | None:
        """What the source was like when all of it was taken in."""
        row = self._one("SELECT stamp FROM sources WHERE name = ?", source)
        return str(row[0]) if row else None

    def digest(self, identity: str) -> str | None:
        """That of the thread of this identity, if its report is here."""
        row = self._one("SELECT digest FROM reports WHERE identity = ?", identity)
        return str(row[0]) if row else None

    def report(self, identifier: str) -> Report | None:
        """The report of this id."""
        row = self._one("SELECT body FROM reports WHERE id = ?", identifier)
        with _errors(self.path):
            return _unpacked(row[0]) if row else None

    def filed(self, number: int) -> Filed | None:
        """The report of this number, if it is still here."""
        row = self._one(f"SELECT {_FILED} FROM reports WHERE number = ?", number)  # noqa: S608
        with _errors(self.path):
            return _filed(row) if row else None

    def all_reports(self) -> Iterator[Filed]:
        """Every report, in the order in which they came."""
        return (filed for filed, _vector in self.everything())

    def everything(self) -> Iterator[tuple[Filed, bytes | None]]:
        """Every report and its vector, in the order in which they came."""
        with _errors(self.path):
            for row in self._connection.execute(
                f"SELECT {_FILED}, vector FROM reports LEFT JOIN vectors USING (number)"  # noqa: S608
                " ORDER BY number"
            ):
                yield _filed(row[:-1]), row[-1]

    def check(self) -> None:
        """Read all of it.

        Raises:
            KbError: it is damaged.
        """
        (found,) = self._one("PRAGMA quick_check(1)")
        with _errors(self.path):
            if found != "ok":
                raise sqlite3.DatabaseError(found.splitlines()[-1])
        for _ in self.everything():
            pass

    def case_of(self, number: int) -> list[Filed]:
        """The reports of the same case, with itself, and the one that it is said to repeat."""
        rows = self._all(
            f"SELECT {_FILED} FROM reports WHERE number IN ({_OF_CASE}) ORDER BY number LIMIT ?",  # noqa: S608
            number,
            _MAX_SAME,
        )
        with _errors(self.path):
            return list(map(_filed, rows))

    def largest_cases(self, count: int) -> Iterator[list[Filed]]:
        """The reports of each case that was reported more than once, most frequent first."""
        cases = self._all(
            'SELECT max(number) FROM reports WHERE "case" != \'\' GROUP BY "case"'
            " HAVING count(*) > 1 ORDER BY count(*) DESC, 1 LIMIT ?",
            count,
        )
        return (self.case_of(number) for (number,) in cases)

    def gone(self) -> NDArray[np.int64]:
        """The numbers of reports that gave way to others."""
        return np.array([number for (number,) in self._all("SELECT number FROM gone")], np.int64)

    def add(self, filed: Sequence[Filed]) -> None:
        """Take in some reports, all or none."""
        with _errors(self.path), self._connection as connection:
            words = {}
            for one in filed:
                self._let_go("identity = ? OR id = ?", one.identity, one.report.id)
                cursor = connection.execute(
                    "INSERT INTO reports VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        one.report.id,
                        one.identity,
                        one.file,
                        one.ticket,
                        one.duplicate_of,
                        case_key(one.report),
                        one.digest,
                        zlib.compress(msgspec.msgpack.encode(one.report)),
                    ),
                )
                words[cursor.lastrowid or 0] = words_of(one.report)
            postings.add(connection, words)

    def finish(self, source: str, stamp: str) -> None:
        """Remember that all of a source was taken in."""
        with _errors(self.path), self._connection as connection:
            connection.execute("REPLACE INTO sources VALUES (?, ?)", (source, stamp))

    def keep_only(self, file: str, identities: frozenset[str]) -> int:
        """Let the reports of a file go that it holds no longer. Those with an address stay: an
        export of a tracker holds its newest threads only. Give the number of them."""
        rows = self._all(
            "SELECT identity FROM reports WHERE file = ? AND instr(identity, '://') = 0", file
        )
        lost = [identity for (identity,) in rows if identity not in identities]
        with _errors(self.path), self._connection:
            for identity in lost:
                self._let_go("identity = ?", identity)
        return len(lost)

    def without_vector(self, count: int, most: int) -> list[tuple[int, Report]]:
        """The newest reports that have no vector yet; none where `most` reports have one."""
        room = most - int(self._one("SELECT count(*) FROM vectors")[0])
        rows = self._all(
            "SELECT number, body FROM reports WHERE number NOT IN (SELECT number FROM vectors)"
            " ORDER BY number DESC LIMIT ?",
            max(0, min(count, room)),
        )
        with _errors(self.path):
            return [(number, _unpacked(body)) for number, body in rows]

    def add_vectors(self, numbers: Sequence[int], vectors: Vectors) -> None:
        """Take in the meaning of some reports."""
        self._add_vectors(numbers, to_small(vectors), to_codes(vectors))

    def add_small(self, encoder: str, rows: Iterable[tuple[str, bytes | None]]) -> None:
        """Take in vectors that this encoder made elsewhere, by the identity of their reports. One
        of another length than the others is refused."""
        self.use_encoder(encoder)
        known = [
            (int(number[0]), vector)
            for identity, vector in rows
            if vector and (number := self._one(_NUMBER_WITHOUT_VECTOR, identity))
        ]
        if known:
            with _errors(self.path):
                joined = np.frombuffer(b"".join(vector for _number, vector in known), np.int8)
                small = joined.reshape(len(known), -1)
            self._add_vectors([number for number, _vector in known], small, to_codes(small))

    def _add_vectors(self, numbers: Sequence[int], small: Small, codes: Codes) -> None:
        with _errors(self.path), self._connection as connection:
            connection.executemany(
                "INSERT INTO vectors VALUES (?, ?)",
                ((number, row.tobytes()) for number, row in zip(numbers, small, strict=True)),
            )
            connection.execute(
                "INSERT INTO codes VALUES (NULL, ?, ?)",
                (np.array(numbers, "<u4").tobytes(), codes.tobytes()),
            )

    def blocks(self) -> int:
        """Grows with each block of codes."""
        return int(self._one("SELECT coalesce(max(first), 0) FROM codes")[0])

    def codes(self, dimension: int) -> tuple[NDArray[np.uint32], Codes]:
        """The numbers of all reports that have a vector, and their codes."""
        rows = self._all("SELECT numbers, codes FROM codes ORDER BY first")
        with _errors(self.path):
            numbers = np.frombuffer(b"".join(row[0] for row in rows), "<u4")
            codes = np.frombuffer(b"".join(row[1] for row in rows), np.uint8)
            return numbers, codes.reshape(len(numbers), dimension // 8)

    def vectors(self, numbers: Iterable[int], dimension: int) -> tuple[list[int], Small]:
        """Those of some reports that have one, with their numbers."""
        rows = self._all(
            "SELECT number, vector FROM vectors WHERE number IN (SELECT value FROM json_each(?))",
            json.dumps([int(number) for number in numbers]),
        )
        with _errors(self.path):
            data = np.frombuffer(b"".join(vector for _number, vector in rows), np.int8)
            return [number for number, _vector in rows], data.reshape(len(rows), dimension)

    def encoder(self) -> str | None:
        """What made the vectors."""
        row = self._one("SELECT value FROM meta WHERE key = 'encoder'")
        return str(row[0]) if row else None

    def encoded(self) -> int:
        """Number of reports that have a vector."""
        return int(self._one("SELECT count(*) FROM vectors")[0])

    def use_encoder(self, name: str) -> None:
        """Forget the vectors of another encoder."""
        if self.encoder() == name:
            return
        with _errors(self.path), self._connection as connection:
            connection.execute("DELETE FROM vectors")
            connection.execute("DELETE FROM codes")
            connection.execute("REPLACE INTO meta VALUES ('encoder', ?)", (name,))

    def bytes_on_disk(self) -> int:
        """With what SQLite keeps beside the file."""
        return sum(path.stat().st_size for path in self.path.parent.glob(f"{self.path.name}*"))

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _let_go(self, which: str, *values: str) -> None:
        for (number,) in self._connection.execute(
            f"SELECT number FROM reports WHERE {which}",  # noqa: S608  no text of others
            values,
        ).fetchall():
            self._connection.execute("DELETE FROM reports WHERE number = ?", (number,))
            self._connection.execute("DELETE FROM vectors WHERE number = ?", (number,))
            self._connection.execute("INSERT INTO gone VALUES (?)", (number,))

    def _one(self, statement: str, *values: object) -> Any:
        with _errors(self.path):
            return self._connection.execute(statement, values).fetchone()

    def _all(self, statement: str, *values: object) -> list[Any]:
        with _errors(self.path):
            return self._connection.execute(statement, values).fetchall()


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, timeout=_BUSY_SECONDS, uri=True, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


def _filed(row: tuple[bytes, str, str, str, str, str, str]) -> Filed:
    return Filed(_unpacked(row[0]), *row[1:])


def _unpacked(body: bytes) -> Report:
    return msgspec.msgpack.decode(zlib.decompress(body), type=Report)


def _named(path: Path) -> str:
    return f"the import `{path.stem}`"


def _again(path: Path) -> str:
    return f"import it again after: kb import --forget {path.stem}"


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Raise what a damaged file or a full disk causes as one sentence."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise KbError(f"cannot use {_named(path)} in {path}: {error}") from error
    except (sqlite3.DatabaseError, msgspec.MsgspecError, zlib.error, ValueError) as error:
        raise KbError(f"{_named(path)} is damaged ({error}); {_again(path)}") from error
    except OSError as error:
        raise KbError(f"cannot use {_named(path)} in {path}: {error.strerror}") from error
