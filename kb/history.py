"""The last searches, on this machine only, so that one can be opened again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from filelock import FileLock

from index.private import FILE, make_directory
from index.progress import Notify
from kb.containment import contained, surviving
from kb.diagnosis import Diagnosis
from kb.errors import OutputError
from kb.evidence.secrets import without_secrets
from kb.files import read_regular, write_new, write_whole
from kb.paths import state_directory
from kb.settings import Settings
from kb.verdict import Verdict

MAX_SEARCHES_KEPT = 200
"""Number of searches; older ones are forgotten, so that the file stays quick to read and write."""

MAX_TEXT_CHARACTERS = 65_536
"""Characters that are kept of a text: whole words from its beginning."""

_MAX_LOSSES_NAMED = 3
"""Damaged searches that are named in one notice."""

_LOCK_TIMEOUT_SECONDS = 2
"""How long to wait for another process that writes; then the search is not kept."""


class Search(msgspec.Struct, frozen=True):
    """What was asked, and what the answer was."""

    time: datetime
    """With its time zone."""
    text: str
    """What was typed or pasted; empty where only files were asked about. Secrets are masked."""
    paths: tuple[str, ...]
    """The files and directories that were asked about."""
    title: str
    """A one-line title: the most informative line of the query."""
    verdict: Verdict
    incident: str | None
    """The id of the best match."""
    confidence: float | None

    def __post_init__(self) -> None:
        """A time of no clock is damage, and cannot be shown in every zone."""
        self.time.astimezone()

    @classmethod
    def of(cls, diagnosis: Diagnosis, text: str = "", paths: tuple[str, ...] = ()) -> Search:
        """What is kept of a diagnosis that was just made."""
        best = diagnosis.matches[0] if diagnosis.matches else None
        lines = diagnosis.evidence.lines
        return cls(
            time=datetime.now(UTC),
            text=text,
            paths=paths,
            title=lines[0].text.strip() if lines else ", ".join(paths),
            verdict=diagnosis.verdict,
            incident=best.incident.id if best else None,
            confidence=best.confidence if best else None,
        )


class History:
    """The file of the last searches. Errors are reported with `notify` and never raised, because
    the history must not interrupt a search.

    With `history = false` in the settings it is empty and stays so.
    """

    def __init__(self, settings: Settings, notify: Notify) -> None:
        self._kept = settings.history
        self._notify = notify
        self._path = state_directory() / "history.json"

    def load(self) -> tuple[Search, ...]:
        """The last searches, newest first. A damaged file is set aside."""
        found: tuple[Search, ...] = ()
        if self._kept:
            with self._reporting_errors():
                found = self._read()
        return found

    def add(self, search: Search) -> None:
        """Keep a search, with secrets masked. One that was asked before moves to the front."""
        if self._kept:
            new = without_secrets(_shorten(search))
            with self._reporting_errors(), self._locked():
                others = [old for old in self._read() if _subject(old) != _subject(new)]
                kept = [new, *others][:MAX_SEARCHES_KEPT]
                write_whole(self._path, msgspec.json.encode(kept))

    def clear(self) -> None:
        """Forget all searches."""
        if self._path.exists():
            with self._reporting_errors(), self._locked():
                self._path.unlink(missing_ok=True)

    def _read(self) -> tuple[Search, ...]:
        try:
            data = read_regular(self._path)
        except FileNotFoundError:
            return ()
        losses: list[str] = []
        found = tuple(_searches(data, losses.append))
        if losses:
            aside = self._set_aside()
            write_whole(self._path, msgspec.json.encode(found))
            said = "; ".join(losses[:_MAX_LOSSES_NAMED])
            self._notify(
                f"the history file was damaged; kept it as {aside}, started a new one with the"
                f" {len(found)} searches that can be read: {said}"
            )
        return found

    def _set_aside(self) -> Path:
        aside = write_new(self._path.with_stem("history.damaged"), b"")
        return self._path.replace(aside)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        make_directory(self._path.parent)
        with FileLock(self._path.with_suffix(".lock"), _LOCK_TIMEOUT_SECONDS, FILE):
            yield

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except (OutputError, OSError, NotImplementedError) as error:
            # The last one: a file system without locks. A lock that others hold is an OSError.
            self._notify(f"cannot save the search history: {error}")


def _searches(data: bytes, notify: Notify) -> Iterator[Search]:
    """The searches that can be read."""
    entries: list[msgspec.Raw] = []
    with contained("it is no list of searches", notify):
        entries = msgspec.json.decode(data, type=list[msgspec.Raw])
    yield from surviving(
        enumerate(entries, 1),
        lambda entry: msgspec.json.decode(entry[1], type=Search),
        lambda entry: f"search {entry[0]} is left out",
        notify,
    )


def _subject(search: Search) -> tuple[str, tuple[str, ...]]:
    return search.text, search.paths


def _shorten(search: Search) -> Search:
    """Whole words of the text, so that no secret is cut in two and kept in part."""
    if len(search.text) <= MAX_TEXT_CHARACTERS:
        return search
    head = search.text[:MAX_TEXT_CHARACTERS]
    end = max(head.rfind("\n"), head.rfind(" ")) + 1
    return msgspec.structs.replace(search, text=head[:end])
