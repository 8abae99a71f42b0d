"""Conversations by id. A case is what its user said, in one SQLite file that all processes of a
server share; from that, each process makes the same conversation again."""

from __future__ import annotations

import os
import sqlite3
import time
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
from kb.serve.refusal import wrong

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
    """Make the file before anybody is served. A damaged one is set aside, and that is told.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        try:
            Talks(path)
        except sqlite3.OperationalError as error:
            raise OutputError(f"cannot keep conversations in {path}: {error}") from error
        except sqlite3.DatabaseError:
            aside = path.replace(write_new(path.with_stem(f"{path.stem}.damaged"), b""))
            for rest in ("-wal", "-shm"):
                path.with_name(path.name + rest).unlink(missing_ok=True)
            Talks(path)
            notify(
                f"the file of the conversations was damaged; kept it as {aside}, began a new one"
            )
    except OSError as error:
        raise OutputError(
            f"cannot keep conversations in {path.parent}: {error.strerror or error}; make it"
            " writable, or set KB_STATE to another directory"
        ) from error


class Talks:
    """The messages of all cases."""

    def __init__(self, path: Path) -> None:
        """The file is for the user alone.

        Raises:
            OSError: it cannot be made.
        """
        make_directory(path.parent)
        make_file(path)
        self._path = path
        self._live: OrderedDict[str, tuple[int, Conversation]] = OrderedDict()
        with self._opened() as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(_TABLES)

    def messages(self, case: str) -> list[str]:
        """What was said, in order.

        Raises:
            RefusedError: there is no such case any more.
        """
        with self._opened() as database:
            rows = database.execute(
                "SELECT text FROM message WHERE case_id = ? AND (SELECT max(time) FROM message"
                " WHERE case_id = ?) >= ? ORDER BY place",
                (case, case, time.time() - KEPT_SECONDS),
            )
            found = [text for (text,) in rows]
        if not found:
            raise wrong(
                "there is no such case (any more); send the text without `case` to begin one",
                HTTPStatus.NOT_FOUND,
            )
        return found

    def add(self, case: str, said: list[str], text: str) -> None:
        """Keep a message behind what was said.

        Raises:
            RefusedError: another message came first.
        """
        try:
            with self._opened() as database:
                database.execute(
                    "INSERT INTO message VALUES (?, ?, ?, ?)", (case, len(said), text, time.time())
                )
                database.execute(_OLD, (time.time() - KEPT_SECONDS, MAX_CASES))
        except sqlite3.IntegrityError:
            raise wrong(
                "another message to this case was answered meanwhile; send this one again",
                HTTPStatus.CONFLICT,
            ) from None

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

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as database, database:
            yield database


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
