"""Everything a diagnosis needs, opened: the index, the encoder, the scanners."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Self, TypeVar

from index.documents import Candidate, Changes, Pattern, Query
from index.encoder import Encoder, load_encoder, model_name
from index.errors import StoreDamaged, StoreError, StoreMissing
from index.signatures import Scanner
from index.snapshot import Snapshot
from index.store import Store
from kb.documents import digest, from_payload, to_document
from kb.errors import IncidentError
from kb.evidence.markers import MARKER_PATTERNS
from kb.incident import Incident
from kb.library import Library
from kb.locations import index_directory
from kb.problem import Problem
from kb.settings import Settings

Report = Callable[[int, int], None]
"""Called with the number of passages encoded and their total."""
Notify = Callable[[str], None]
"""Called with one sentence that the user should read."""
Renew = Callable[[StoreDamaged], Snapshot]
"""Called when the index turns out to be damaged; gives the one that was built in its place."""

Read = TypeVar("Read")

_REMEMBERED = 128
"""Questions whose answers are kept; an answer is some 200 kB."""


def _texts(snapshot: Snapshot) -> list[Pattern]:
    return [declared.pattern for declared in snapshot.patterns]


def _silent_report(_done: int, _total: int) -> None:
    pass


def _silent_notify(_sentence: str) -> None:
    pass


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
        cls, settings: Settings, report: Report = _silent_report, notify: Notify = _silent_notify
    ) -> Knowledge:
        """Open the index, after building or updating it where the incidents changed.

        The encoder loads in a second thread meanwhile. An index that is damaged is built again;
        where the cache cannot be written, the index is built in memory, and `notify` is told.

        Raises:
            KbError, SearchIndexError: with one sentence for the user.
        """
        library = Library(settings.incidents)
        encoder = load_in_background(settings.model)

        def renew(error: StoreDamaged) -> Snapshot:
            return _built_again(error, library, settings, encoder, report, notify)

        return cls(_open_current(library, settings, encoder, report, notify), encoder, renew)


def prepare(
    settings: Settings, report: Report = _silent_report, notify: Notify = _silent_notify
) -> None:
    """Build or update the index where the incidents changed, for others to open.

    Raises:
        KbError, SearchIndexError: with one sentence for the user.
    """
    encoder = lru_cache(1)(lambda: load_encoder(settings.model))
    _open_current(Library(settings.incidents), settings, encoder, report, notify).close()


def load_in_background(model: str | None) -> Callable[[], Encoder]:
    """Start loading the encoder; the returned function waits for it."""
    future: Future[Encoder] = Future()

    def run() -> None:
        try:
            future.set_result(load_encoder(model))
        except Exception as error:  # noqa: BLE001  handed to whoever waits
            future.set_exception(error)

    # Not a daemon: Python must not end while native code is still loading.
    threading.Thread(target=run, name="load encoder").start()
    return future.result


def update(
    library: Library,
    settings: Settings,
    encoder: Callable[[], Encoder],
    report: Report = _silent_report,
    *,
    rebuild: bool = False,
) -> tuple[Store, Changes, list[Problem]]:
    """Bring the store on disk up to date and return it with what changed and what is wrong.

    Raises:
        StoreError: the cache cannot be written.
    """
    model = model_name(settings.model)
    store = Store(index_directory(library.directories, model))
    try:
        changes, problems = _fill(store, library, encoder, model, report, rebuild)
    except StoreDamaged:
        store.clear()
        changes, problems = _fill(store, library, encoder, model, report, rebuild)
    return store, changes, problems


def _fill(
    store: Store,
    library: Library,
    encoder: Callable[[], Encoder],
    model: str,
    report: Report,
    rebuild: bool = False,
) -> tuple[Changes, list[Problem]]:
    """Read only the files that the store does not know yet, and hand them over."""
    with store.locked():
        stored = {} if rebuild else store.digests()
        fingerprint = library.fingerprint()
        documents, unchanged = [], []
        problems: list[Problem] = []
        for file in library.files():
            try:
                source = file.source()
                if stored.get(file.path.stem) == digest(source):
                    unchanged.append(file.path.stem)
                else:
                    documents.append(to_document(file.read(source), source))
            except IncidentError as error:
                problems.extend(error.problems)
        changes = store.update(
            documents,
            encoder,
            model,
            fingerprint,
            report,
            MARKER_PATTERNS,
            unchanged=unchanged,
            rebuild=rebuild,
        )
    return changes, problems


def _open_current(
    library: Library,
    settings: Settings,
    encoder: Callable[[], Encoder],
    report: Report,
    notify: Notify,
) -> Snapshot:
    model = model_name(settings.model)
    store = Store(index_directory(library.directories, model))
    try:
        snapshot = store.open()
        if snapshot.fingerprint == library.fingerprint():
            return snapshot
        snapshot.close()
    except StoreMissing:
        pass
    except StoreDamaged as error:
        return _built_again(error, library, settings, encoder, report, notify)
    except StoreError:
        pass  # said below: it cannot be written either
    return _built(library, settings, encoder, report, notify)


def _built_again(
    error: StoreDamaged,
    library: Library,
    settings: Settings,
    encoder: Callable[[], Encoder],
    report: Report,
    notify: Notify,
) -> Snapshot:
    notify(f"{error}; building it again")
    with suppress(StoreError):
        Store(index_directory(library.directories, model_name(settings.model))).clear()
    return _built(library, settings, encoder, report, notify)


def _built(
    library: Library,
    settings: Settings,
    encoder: Callable[[], Encoder],
    report: Report,
    notify: Notify,
) -> Snapshot:
    """Build what is missing, in memory where it cannot be written, and open it."""
    model = model_name(settings.model)
    try:
        store, _changes, problems = update(library, settings, encoder, report)
    except StoreDamaged:
        raise
    except StoreError as error:
        notify(f"{error}; using an index in memory, which takes longer at each start")
        store = Store(None)
        _changes, problems = _fill(store, library, encoder, model, report)
    if problems:
        wrong = sorted({problem.path for problem in problems})
        notify(f"left out, because kb lint finds errors in them: {', '.join(wrong)}")
    return store.open()


def index_path(settings: Settings) -> Path:
    """Where the index of these settings lies, built or not."""
    library = Library(settings.incidents)
    return index_directory(library.directories, model_name(settings.model))
