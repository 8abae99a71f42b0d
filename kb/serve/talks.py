"""Conversations by id. A case is what its user said, in one SQLite file that all processes of a
server share, or in a PostgreSQL that all servers share; from that, each process makes the same
conversation again."""

from __future__ import annotations

import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path

from index.private import make_directory, make_file
from index.progress import Notify
from kb.conversation import Conversation
from kb.errors import OutputError
from kb.files import write_new
from kb.serve.refusal import RefusedError, busy, wrong

KEPT_SECONDS = 24 * 3600
"""After the last message; a night and the morning after it."""
MAX_CASES = 5_000
"""The one that was quiet for the longest time is forgotten."""
MAX_MESSAGES = 200
"""Of a case: all of them are read again in another process, 50 ms each."""
MAX_CHARACTERS = 1_000_000
"""Of the messages of a case."""

_BUSY_SECONDS = 10
"""How long to wait for another process that writes."""
_ID_BYTES = 16
"""Of a random id: who does not know it cannot guess it."""
_MAX_LIVE = 256
"""Conversations that one process remembers, some 100 kB each."""

_TABLES = """
CREATE TABLE IF NOT EXISTS message (
    case_id TEXT, place INTEGER, text TEXT, time REAL, PRIMARY KEY (case_id, place)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS message_time ON message (time);
"""
_OLD = """
DELETE FROM message WHERE case_id IN (
    SELECT case_id FROM message GROUP BY case_id HAVING max(time) < ?
    UNION SELECT case_id FROM (
        SELECT case_id FROM message GROUP BY case_id ORDER BY max(time) DESC LIMIT -1 OFFSET ?
    )
)
"""


def new_id() -> str:
    """The id of a new case."""
    return os.urandom(_ID_BYTES).hex()


def prepare(path: Path, notify: Notify) -> None:
    """Make the file before anybody is served.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        FileTalks(path, notify)
    except (OSError, sqlite3.Error) as error:
        raise OutputError(
            f"cannot keep conversations in {path.parent}: {_reason(error)}; make it writable, or"
            " set KB_STATE to another directory"
        ) from error


class Talks(ABC):
    """The messages of all cases."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._live: OrderedDict[str, tuple[int, Conversation]] = OrderedDict()

    def messages(self, case: str) -> list[str]:
        """What was said, in order.

        Raises:
            RefusedError: there is no such case any more, or they cannot be read.
        """
        found = self._read(case, time.time() - KEPT_SECONDS)
        if not found:
            raise wrong(
                "there is no such case (any more); send the text without `case` to begin one",
                HTTPStatus.NOT_FOUND,
            )
        return found

    def add(self, case: str, said: list[str], text: str) -> None:
        """Keep a message behind what was said.

        Raises:
            RefusedError: another message came first, or it cannot be kept.
        """
        if not self._write(case, len(said), text, time.time()):
            raise wrong(
                "another message to this case was answered meanwhile; send this one again",
                HTTPStatus.CONFLICT,
            )

    def live(self, case: str, count: int) -> Conversation | None:
        """The conversation after so many messages, if this process remembers it."""
        known, conversation = self._live.get(case, (0, None))
        return conversation if known == count else None

    def remember(self, case: str, count: int, conversation: Conversation) -> None:
        """Have the conversation ready for the next message."""
        self._live[case] = (count, conversation)
        self._live.move_to_end(case)
        if len(self._live) > _MAX_LIVE:
            self._live.popitem(last=False)

    @abstractmethod
    def _read(self, case: str, since: float) -> list[str]:
        """The messages of a case, if the last one is not older.

        Raises:
            RefusedError: they cannot be read.
        """

    @abstractmethod
    def _write(self, case: str, place: int, text: str, now: float) -> bool:
        """Keep a message, unless there is one at its place, and forget cases that are too old, or
        too many.

        Raises:
            RefusedError: it cannot be kept.
        """

    def _refusal(self, place: object, why: str) -> RefusedError:
        """What a client is told; the server's messages have the reason."""
        self._notify(f"cannot keep conversations in {place}: {why}")
        return not_kept()


def not_kept() -> RefusedError:
    """Conversations cannot be kept at the moment."""
    return busy(
        "the conversation cannot be kept at the moment; the server's messages say why, and"
        " /v1/diagnose answers without one"
    )


class FileTalks(Talks):
    """In one SQLite file, for all processes of a server."""

    def __init__(self, path: Path, notify: Notify) -> None:
        """The file is for the user alone. A damaged one is set aside, and `notify` is told.

        Raises:
            OSError: it cannot be made.
            sqlite3.Error: it cannot be used.
        """
        super().__init__(notify)
        self._path = path
        self._connected().close()

    def _read(self, case: str, since: float) -> list[str]:
        with self._opened() as database:
            rows = database.execute(
                "SELECT text FROM message WHERE case_id = ? AND (SELECT max(time) FROM message"
                " WHERE case_id = ?) >= ? ORDER BY place",
                (case, case, since),
            )
            return [text for (text,) in rows]

    def _write(self, case: str, place: int, text: str, now: float) -> bool:
        try:
            with self._opened() as database:
                database.execute(
                    "INSERT INTO message VALUES (?, ?, ?, ?)", (case, place, text, now)
                )
                database.execute(_OLD, (now - KEPT_SECONDS, MAX_CASES))
        except sqlite3.IntegrityError:
            return False
        return True

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connected()) as database, database:
                yield database
        except sqlite3.IntegrityError:
            raise
        except (OSError, sqlite3.Error) as error:
            if _is_damage(error):
                self._set_aside()
            raise self._refusal(self._path, _reason(error)) from error

    def _connected(self) -> sqlite3.Connection:
        """The file as it has to be, whatever was done to it since the last time."""
        make_directory(self._path.parent)
        make_file(self._path)
        try:
            return self._with_tables()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self._set_aside()
            return self._with_tables()

    def _with_tables(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(_TABLES)
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _set_aside(self) -> None:
        aside = self._path.replace(
            write_new(self._path.with_stem(f"{self._path.stem}.damaged"), b"")
        )
        for rest in ("-wal", "-shm"):
            self._path.with_name(self._path.name + rest).unlink(missing_ok=True)
        make_file(self._path)
        self._notify(
            f"the file of the conversations was damaged; kept it as {aside}, began a new one"
        )


def _is_damage(error: Exception) -> bool:
    """Whether another try would find the same; what the system refuses, or others hold, passes."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError
    )


def _reason(error: OSError | sqlite3.Error) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def check_fits(said: list[str], text: str) -> None:
    """
    Raises:
        RefusedError: the case would be too long with one more message.
    """
    if len(said) >= MAX_MESSAGES or sum(map(len, said)) + len(text) > MAX_CHARACTERS:
        raise wrong(
            f"a case has at most {MAX_MESSAGES} messages and {MAX_CHARACTERS:,} characters; begin a"
            " new one, and send logs to /v1/diagnose",
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        )
