"""Keeps the index of a tier in step with its source."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import lru_cache, partial
from pathlib import Path

from index.documents import Changes, Pattern
from index.encoder import Encoder, RepeatingEncoder, load_encoder, model_name
from index.errors import StoreDamaged, StoreError, StoreMissing
from index.packing import pack
from index.progress import Notify, Report, silent_notify, silent_report
from index.snapshot import Snapshot
from index.store import Store
from index.vector_cache import CachingEncoder, Lookup
from kb.corpus.answer_document import AnswerTable
from kb.corpus.directories import GuideDirectories, IncidentDirectories
from kb.corpus.sources import DocumentSource
from kb.corpus.tier import TierName
from kb.evidence.markers import MARKER_PATTERNS
from kb.files import write_whole
from kb.log.clean import replace_surrogates
from kb.paths import index_directory, packed_answers, packed_guides, packed_index
from kb.problem import Problem, skipped
from kb.settings import Settings


class IndexSync:
    """Opens the index of a source, after building or updating it where documents changed.

    An index that is damaged is built again; where the cache cannot be written, the index is built
    in memory, and `notify` is told.
    """

    def __init__(
        self,
        source: DocumentSource,
        store: Store,
        encoder: Callable[[], Encoder],
        model: str,
        report: Report = silent_report,
        notify: Notify = silent_notify,
        seed: Path | None = None,
        extra_patterns: Sequence[Pattern] = MARKER_PATTERNS,
    ) -> None:
        """`model` is the name of the encoder, which is loaded only when something is encoded. An
        empty store begins with the packed index `seed`. A scanner of the `extra_patterns` is kept
        beside that of the documents."""
        self._source = source
        self._store = store
        self._encoder = encoder
        self._model = model
        self._report = report
        self._notify = notify
        self._seed = seed
        self._extra_patterns = extra_patterns

    def is_current(self, snapshot: Snapshot, fingerprint: str | None = None) -> bool:
        """Whether a snapshot holds the documents as they are now, or as they were with this
        fingerprint, which saves another look at every file."""
        return snapshot.fingerprint == (fingerprint or self._source.fingerprint())

    def open(self, fingerprint: str | None = None) -> Snapshot:
        """Open the index of the documents; `fingerprint` is that of `is_current`.

        Raises:
            KbError: with one sentence for the user.
        """
        try:
            snapshot = self._store.open()
            if self.is_current(snapshot, fingerprint):
                if snapshot.notice:
                    self._notify(snapshot.notice)
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
        self._notify(f"{error}; rebuilding it")
        with suppress(StoreError):
            self._store.clear()
        return self._open_built()

    def update(self, *, rebuild: bool = False) -> tuple[Changes, list[Problem]]:
        """Bring the index on disk up to date; return what changed in it, and what is wrong with
        the documents that were left out.

        Raises:
            StoreError: the cache cannot be written.
        """
        try:
            return self._fill(self._store, rebuild)
        except StoreDamaged:
            self._store.clear()
            return self._fill(self._store, rebuild=True)

    def _open_built(self) -> Snapshot:
        try:
            # Else a process that finds the old damage clears the index before it is opened here.
            with self._store.locked(self._notify):
                self.update()
                snapshot = self._store.open()
        except StoreDamaged:
            raise
        except StoreError as error:
            self._notify(f"{error}; using an index in memory, so each start takes longer")
            store = Store(None)
            self._fill(store)
            snapshot = store.open()
        if snapshot.notice:
            self._notify(snapshot.notice)
        return snapshot

    def _fill(self, store: Store, rebuild: bool = False) -> tuple[Changes, list[Problem]]:
        """Read only what the store does not know yet, and hand it over."""
        with store.locked(self._notify):
            if self._seed and not rebuild:
                store.seed(self._seed, self._extra_patterns)
            fingerprint = self._source.fingerprint()
            content = self._source.read({} if rebuild else store.digests())
            changes = store.update(
                content.documents,
                self._encoder,
                self._model,
                fingerprint,
                self._report,
                self._extra_patterns,
                unchanged=content.unchanged,
                rebuild=rebuild,
                notice=replace_surrogates(skipped(one.path for one in content.problems))
                if content.problems
                else "",
            )
        for pattern in changes.rejected:
            self._notify(f"the signature `{pattern.text}` does not compile and is left out")
        return changes, content.problems


def curated_sync(
    settings: Settings,
    encoder: Callable[[], Encoder],
    report: Report = silent_report,
    notify: Notify = silent_notify,
) -> IndexSync:
    """The index of the package's incidents and those of the settings.

    Raises:
        CorpusError: a directory of incidents cannot be used.
    """
    source, model = IncidentDirectories(settings.incidents), model_name(settings.model)
    store = Store(index_directory(source.directories, model), shared=settings.shared_cache)
    return IndexSync(source, store, encoder, model, report, notify, packed_index())


def guides_sync(
    settings: Settings,
    encoder: Callable[[], Encoder],
    report: Report = silent_report,
    notify: Notify = silent_notify,
) -> IndexSync:
    """The index of the checks and playbooks, of the package and of the settings.

    Raises:
        CorpusError: a directory of incidents cannot be used.
    """
    source, model = GuideDirectories(settings.incidents), model_name(settings.model)
    store = _store_of(TierName.GUIDES, source.directories, model, settings)
    return IndexSync(source, store, encoder, model, report, notify, packed_guides(), ())


def answers_sync(
    settings: Settings,
    encoder: Callable[[], Encoder],
    report: Report = silent_report,
    notify: Notify = silent_notify,
) -> IndexSync:
    """The index of the table of questions."""
    source, model = AnswerTable(), model_name(settings.model)
    store = _store_of(TierName.ANSWERS, source.directories, model, settings)
    return IndexSync(source, store, encoder, model, report, notify, packed_answers(), ())


def _store_of(tier: TierName, directories: Iterable[Path], model: str, settings: Settings) -> Store:
    return Store(index_directory(directories, model, tier), shared=settings.shared_cache)


def prepare(
    settings: Settings, report: Report = silent_report, notify: Notify = silent_notify
) -> None:
    """Build or update the index where the incidents changed, for others to open.

    Raises:
        KbError: with one sentence for the user.
    """
    encoder = lru_cache(1)(lambda: load_encoder(settings.model))
    curated_sync(settings, encoder, report, notify).open().close()
    guides_sync(settings, encoder, report, notify).open().close()
    answers_sync(settings, encoder, report, notify).open().close()


def pack_indexes(encoder: Callable[[], Encoder]) -> None:
    """Write the indexes of the package's records into the files that are shipped, see `Store.seed`.
    Every record is read again; a passage that an older such file holds is not encoded again.

    Raises:
        OutputError: a file cannot be written.
    """
    _pack(IncidentDirectories(), packed_index(), encoder, MARKER_PATTERNS)
    _pack(GuideDirectories(), packed_guides(), encoder, ())
    _pack(AnswerTable(), packed_answers(), encoder, ())


def _pack(
    source: DocumentSource,
    target: Path,
    encoder: Callable[[], Encoder],
    extra_patterns: Sequence[Pattern],
) -> None:
    model = model_name()
    documents = source.read({}).documents
    older, store = Store(None), Store(None)
    older.seed(target)
    with ExitStack() as stack:
        lookup: Lookup = lambda _hashes: {}  # noqa: E731
        with suppress(StoreError):
            lookup = partial(stack.enter_context(older.open()).vectors, model)
        cached = CachingEncoder(encoder, model, lookup)
        store.update(documents, lambda: cached, model, "", extra_patterns=extra_patterns)
    with store.open() as built:
        write_whole(target, pack(built), shared=True)


def load_in_background(model: str | None) -> Callable[[], Encoder]:
    """Start loading the encoder; the returned function waits for it."""
    future: Future[Encoder] = Future()

    def run() -> None:
        try:
            future.set_result(RepeatingEncoder(load_encoder(model)))
        except BaseException as error:  # noqa: BLE001  handed to whoever waits, a panic too
            future.set_exception(error)

    # Not a daemon: Python must not end while native code is still loading.
    threading.Thread(target=run, name="load encoder").start()
    return future.result


def index_path(settings: Settings) -> Path:
    """Where the index of these settings lies, built or not."""
    library = IncidentDirectories(settings.incidents)
    return index_directory(library.directories, model_name(settings.model))
