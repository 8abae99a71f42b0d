"""Keeps the index of some directories in step with their incidents."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path

import msgspec

from index.documents import Changes
from index.encoder import Encoder, load_encoder, model_name
from index.errors import StoreDamaged, StoreError, StoreMissing
from index.remembered import Lookup, RememberingEncoder
from index.snapshot import Snapshot
from index.store import Store
from kb.documents import digest, to_document
from kb.errors import IncidentError
from kb.evidence.markers import MARKER_PATTERNS
from kb.library import Library
from kb.locations import index_directory
from kb.problem import Problem
from kb.settings import Settings

Report = Callable[[int, int], None]
"""Called with the number of passages encoded and their total."""
Notify = Callable[[str], None]
"""Called with one sentence that the user should read."""


def silent_report(_done: int, _total: int) -> None:
    """A `Report` to nobody."""


def silent_notify(_sentence: str) -> None:
    """A `Notify` to nobody."""


class Builder:
    """Opens the index of these settings, after building or updating it where incidents changed.

    An index that is damaged is built again; where the cache cannot be written, the index is built
    in memory, and `notify` is told.
    """

    def __init__(
        self,
        settings: Settings,
        encoder: Callable[[], Encoder],
        report: Report = silent_report,
        notify: Notify = silent_notify,
    ) -> None:
        self._library = Library(settings.incidents)
        self._model = model_name(settings.model)
        self._store = Store(index_directory(self._library.directories, self._model))
        self._encoder = encoder
        self._report = report
        self._notify = notify

    def open(self) -> Snapshot:
        """Open the index as the incidents are now.

        Raises:
            KbError, SearchIndexError: with one sentence for the user.
        """
        try:
            snapshot = self._store.open()
            if snapshot.fingerprint == self._library.fingerprint():
                return snapshot
            snapshot.close()
        except StoreMissing:
            pass
        except StoreDamaged as error:
            return self.open_again(error)
        except StoreError:
            pass  # said below: it cannot be written either
        return self._open_built()

    def open_again(self, error: StoreDamaged) -> Snapshot:
        """Throw away what is damaged, build it again and open it."""
        self._notify(f"{error}; building it again")
        with suppress(StoreError):
            self._store.clear()
        return self._open_built()

    def update(self, *, rebuild: bool = False) -> tuple[Changes, list[Problem]]:
        """Bring the index on disk up to date; return what changed in it, and what is wrong with
        the records that were left out.

        Raises:
            StoreError: the cache cannot be written.
        """
        try:
            return self._fill(self._store, rebuild)
        except StoreDamaged:
            self._store.clear()
            return self._fill(self._store, rebuild)

    def _open_built(self) -> Snapshot:
        store = self._store
        try:
            _changes, problems = self.update()
        except StoreDamaged:
            raise
        except StoreError as error:
            self._notify(f"{error}; using an index in memory, which takes longer at each start")
            store = Store(None)
            _changes, problems = self._fill(store)
        if problems:
            wrong = sorted({problem.path for problem in problems})
            self._notify(f"left out, because kb lint finds errors in them: {', '.join(wrong)}")
        return store.open()

    def _fill(self, store: Store, rebuild: bool = False) -> tuple[Changes, list[Problem]]:
        """Read only the files that the store does not know yet, and hand them over."""
        with store.locked():
            stored = {} if rebuild else store.digests()
            fingerprint = self._library.fingerprint()
            documents, unchanged = [], []
            problems: list[Problem] = []
            for file in self._library.files():
                try:
                    source = file.source()
                    if stored.get(file.path.stem) == digest(source):
                        unchanged.append(file.path.stem)
                    else:
                        documents.append(to_document(file.read(source), source))
                except IncidentError as error:
                    problems.extend(error.problems)
            with self._remembering(rebuild) as encoder:
                changes = store.update(
                    documents,
                    lambda: encoder,
                    self._model,
                    fingerprint,
                    self._report,
                    MARKER_PATTERNS,
                    unchanged=unchanged,
                    rebuild=rebuild,
                )
        encoded = changes.encoded - encoder.found
        return msgspec.structs.replace(changes, encoded=encoded), problems

    @contextmanager
    def _remembering(self, rebuild: bool) -> Iterator[RememberingEncoder]:
        """The encoder, with what the index of the package alone holds already: most users have
        that one when they add a directory of their own, and encoding takes longest."""
        with ExitStack() as stack:
            lookup: Lookup = _nothing
            with suppress(StoreError):
                if not rebuild:
                    package = Store(index_directory(self._library.directories[:1], self._model))
                    snapshot = stack.enter_context(package.open())
                    lookup = partial(_vectors, snapshot, self._model)
            yield RememberingEncoder(self._encoder, self._model, lookup)


def _nothing(_hashes: Collection[str]) -> dict[str, bytes]:
    return {}


def _vectors(snapshot: Snapshot, model: str, hashes: Collection[str]) -> dict[str, bytes]:
    try:
        return snapshot.vectors(model, hashes)
    except StoreDamaged:
        return {}


def prepare(
    settings: Settings, report: Report = silent_report, notify: Notify = silent_notify
) -> None:
    """Build or update the index where the incidents changed, for others to open.

    Raises:
        KbError, SearchIndexError: with one sentence for the user.
    """
    encoder = lru_cache(1)(lambda: load_encoder(settings.model))
    Builder(settings, encoder, report, notify).open().close()


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


def index_path(settings: Settings) -> Path:
    """Where the index of these settings lies, built or not."""
    library = Library(settings.incidents)
    return index_directory(library.directories, model_name(settings.model))
