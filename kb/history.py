"""The last searches, on this machine only, so that one can be opened again."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from index.progress import Notify
from kb.diagnosis import Diagnosis
from kb.kept import KeptList, Named
from kb.settings import Settings
from kb.verdict import Verdict

MAX_SEARCHES_KEPT = 200
"""Number of searches; older ones are forgotten, so that the file stays quick to read and write."""

MAX_TEXT_CHARACTERS = 65_536
"""Characters that are kept of a text: whole words from its beginning."""

_NAMED = Named("history", "search history", "search", "searches")


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
        self._list = KeptList(_NAMED, Search, notify)

    def load(self) -> tuple[Search, ...]:
        """The last searches, newest first. A damaged file is set aside."""
        return self._list.load() if self._kept else ()

    def add(self, search: Search) -> None:
        """Keep a search, with secrets masked. One that was asked before moves to the front."""
        if self._kept:
            self._list.add(_shorten(search), _subject, MAX_SEARCHES_KEPT)

    def clear(self) -> None:
        """Forget all searches."""
        self._list.clear()


def _subject(search: Search) -> tuple[str, tuple[str, ...]]:
    return search.text, search.paths


def _shorten(search: Search) -> Search:
    """Whole words of the text, so that no secret is cut in two and kept in part."""
    if len(search.text) <= MAX_TEXT_CHARACTERS:
        return search
    head = search.text[:MAX_TEXT_CHARACTERS]
    end = max(head.rfind("\n"), head.rfind(" ")) + 1
    return msgspec.structs.replace(search, text=head[:end])
