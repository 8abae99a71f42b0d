"""Conversations in a PostgreSQL, which several servers share. Needs the extra `postgres`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg

from index.progress import Notify
from kb.errors import OutputError, SettingsError
from kb.log.clean import strip_controls
from kb.serve.talks import KEPT_SECONDS, MAX_CASES, Talks, not_kept

_CONNECT_SECONDS = 5
_STATEMENT_MS = 5_000
"""How long the database may take; a request is answered within half a minute."""
_AWAY_SECONDS = 1
"""After a failure, nobody waits for another one for so long: many messages may come meanwhile."""
_LOCK = 0x6B625F73
"""Of PostgreSQL, for what one server does at a time."""

_TABLES = """
CREATE TABLE kb_message (
    case_id text, place integer, text bytea NOT NULL, time double precision NOT NULL,
    PRIMARY KEY (case_id, place)
);
CREATE INDEX kb_message_time ON kb_message (time);
"""
"""Texts are bytes: PostgreSQL keeps no NUL in a text."""
_OLD = """
DELETE FROM kb_message WHERE case_id IN (
    SELECT case_id FROM kb_message GROUP BY case_id HAVING max(time) < %s
    UNION SELECT case_id FROM (
        SELECT case_id FROM kb_message GROUP BY case_id ORDER BY max(time) DESC OFFSET %s
    ) AS others
)
"""


def prepare(url: str) -> None:
    """Make the table before anybody is served.

    Raises:
        SettingsError: the URL cannot be read.
        OutputError: the database cannot be used.
    """
    try:
        with _connected(url) as database:
            _make_table(database)
    except psycopg.Error as error:
        raise OutputError(
            f"cannot keep conversations in {_place(url)}: {_reason(error)}; name another with"
            " KB_CASES_AT"
        ) from error


class PostgresTalks(Talks):
    """In one table. Each message has a connection of its own, so a database that went away is used
    again as soon as it is back."""

    def __init__(self, url: str, notify: Notify) -> None:
        super().__init__(notify)
        self._url = url
        self._away_until = 0.0

    def _read(self, case: str, since: float) -> list[str]:
        with self._opened() as database:
            rows = database.execute(
                "SELECT text FROM kb_message WHERE case_id = %s AND (SELECT max(time) FROM"
                " kb_message WHERE case_id = %s) >= %s ORDER BY place",
                (case, case, since),
            )
            return [bytes(text).decode() for (text,) in rows]

    def _write(self, case: str, place: int, text: str, now: float) -> bool:
        with self._opened() as database:
            made = database.execute(
                "INSERT INTO kb_message VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (case, place, text.encode(), now),
            )
            if made.rowcount and _is_alone(database):
                database.execute(_OLD, (now - KEPT_SECONDS, MAX_CASES))
            return bool(made.rowcount)

    @contextmanager
    def _opened(self) -> Iterator[psycopg.Connection]:
        if time.monotonic() < self._away_until:
            raise not_kept()
        try:
            with _connected(self._url) as database:
                yield database
        except psycopg.Error as error:
            self._away_until = time.monotonic() + _AWAY_SECONDS
            raise self._refusal(_place(self._url), _reason(error)) from error


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection]:
    """A transaction."""
    _check(url)
    with psycopg.connect(
        url,
        connect_timeout=_CONNECT_SECONDS,
        tcp_user_timeout=2 * _STATEMENT_MS,
        application_name="incident-kb",
        prepare_threshold=None,  # a pooler between may hand on each transaction to another one
    ) as database:
        database.execute(f"SET LOCAL statement_timeout = {_STATEMENT_MS:d}")
        yield database


def _make_table(database: psycopg.Connection) -> None:
    database.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    found = database.execute("SELECT to_regclass('kb_message')").fetchone()
    if found == (None,):
        database.execute(_TABLES)


def _is_alone(database: psycopg.Connection) -> bool:
    """Whether no other server forgets cases at the moment: two would wait for each other."""
    return database.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone() == (True,)


def _check(url: str) -> None:
    """Messages of the client tell what it takes for a host, which may be a part of the password."""
    parts = urlsplit(url)
    if url.count("@") > 1 or ("@" in url and "@" not in parts.netloc):
        raise SettingsError(
            "the URL in KB_CASES_AT or `cases_at` cannot be read; write signs of the password as"
            " %40 (@), %2F (/) and the like"
        )


def _place(url: str) -> str:
    """The host and the database, without user and password."""
    parts = urlsplit(url)
    return f"PostgreSQL at {parts.netloc.rpartition('@')[2]}{parts.path}"


def _reason(error: psycopg.Error) -> str:
    lines = strip_controls(str(error)).splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".")
