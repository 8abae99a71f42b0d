"""Everything a diagnosis needs, opened: the index, the encoder, the scanners."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Self, TypeVar

from index.documents import Candidate, Pattern, Query
from index.encoder import Encoder
from index.errors import StoreDamaged
from index.signatures import Scanner
from index.snapshot import Snapshot
from kb.builder import Builder, Notify, Report, load_in_background, silent_notify, silent_report
from kb.documents import from_payload
from kb.evidence.markers import MARKER_PATTERNS
from kb.incident import Incident
from kb.settings import Settings

Renew = Callable[[StoreDamaged], Snapshot]
"""Called when the index turns out to be damaged; gives the one that was built in its place."""

Read = TypeVar("Read")

_REMEMBERED = 128
"""Questions whose answers are kept; an answer is some 200 kB."""


def _texts(snapshot: Snapshot) -> list[Pattern]:
    return [declared.pattern for declared in snapshot.patterns]


class Knowledge:
    """The incidents of one list of directories, ready to be asked. Safe to use from one thread."""

    def __init__(
        self, snapshot: Snapshot, encoder: Callable[[], Encoder], renew: Renew | None = None
    ) -> None:
        self.snapshot = snapshot
        self.signatures: Scanner = snapshot.scanner()
        self.markers: Scanner = snapshot.extra_scanner(MARKER_PATTERNS)
        self._encoder = encoder
        self._renew = renew
        # Held weakly: a circle would keep the encoder until the garbage collector comes by.
        search = partial(Knowledge._search, weakref.proxy(self))
        self._remembered = lru_cache(_REMEMBERED)(search)

    @property
    def encoder(self) -> Encoder:
        """The encoder; waits until it is loaded."""
        return self._encoder()

    def search(self, query: Query) -> list[Candidate]:
        """Ask the index. Most of many logs say the same once masked; that is asked once."""
        return self._remembered(query)

    def incidents(self) -> list[Incident]:
        """All records, in order of their ids."""
        payloads = self._intact(Snapshot.payloads)
        return [from_payload(payload).incident for payload in payloads.values()]

    def _search(self, query: Query) -> list[Candidate]:
        return self._intact(lambda snapshot: snapshot.search(query, self.encoder))

    def _intact(self, read: Callable[[Snapshot], Read]) -> Read:
        """Read from the index; one that turns out to be damaged is built again, once."""
        try:
            return read(self.snapshot)
        except StoreDamaged as error:
            if self._renew is None:
                raise
            renewed = self._renew(error)
        if _texts(renewed) != _texts(self.snapshot):  # who asks has numbers of its patterns
            renewed.close()
            raise StoreDamaged("the index was damaged and is built again; ask once more")
        self.snapshot.close()
        self.snapshot = renewed
        return read(renewed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.snapshot.close()

    @classmethod
    def open(
        cls, settings: Settings, report: Report = silent_report, notify: Notify = silent_notify
    ) -> Knowledge:
        """Open the index as `Builder` does; the encoder loads in a second thread meanwhile.

        Raises:
            KbError, SearchIndexError: with one sentence for the user.
        """
        encoder = load_in_background(settings.model)
        builder = Builder(settings, encoder, report, notify)
        return cls(builder.open(), encoder, builder.open_again)
