"""Takes what lies in files and folders into an import: only what changed, in batches that last."""

from __future__ import annotations

import glob
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from index.encoder import Encoder
from index.private import FILE, make_directory
from index.progress import Notify
from index.progress import Report as Progress
from kb.backlog.gist import gist_of
from kb.backlog.model import Thread
from kb.backlog.report import to_report, with_safe_address
from kb.backlog.sources import Skipped, Source, Why, read_source, sources_below
from kb.backlog.store import BacklogStore, Filed
from kb.containment import contained
from kb.errors import KbError

MAX_ENCODED = 200_000
"""Reports of an import whose meaning is encoded, the newest ones; the others are found by their
words. Encoding takes a second for some hundred reports, see docs/performance.md."""

LOCK = ".lock"
"""Of the file that a writer holds."""

_FORMAT_VERSION = 5
"""Increase this number when other reports are made of the same threads."""
_REPORTS_PER_BATCH = 400
"""Taken in by one transaction: a second's work, which is lost if the process is killed."""
_TEXTS_PER_BATCH = 256
"""Encoded and kept together."""


class Summary(msgspec.Struct):
    """What an import did."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    empty: int = 0
    """Threads in which nothing can be searched."""
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    """Of each reason, how many were left out."""
    unread: int = 0
    """Sources and parts of them that could not be read."""
    unchanged_sources: int = 0

    @property
    def read(self) -> int:
        """Threads so far."""
        return self.added + self.changed + self.unchanged + self.empty

    @property
    def is_in_vain(self) -> bool:
        """Something could not be read, and there was nothing else."""
        return self.unread > 0 and not self.read and not self.unchanged_sources


class Importer:
    """Fills one import. `notify` is told of what cannot be read; `progress` of what lasts."""

    def __init__(
        self,
        store: BacklogStore,
        notify: Notify,
        progress: Progress,
        mapping: Mapping[str, str] | None = None,
    ) -> None:
        self._store = store
        self._notify = notify
        self._progress = progress
        self._mapping = mapping
        self._batch: dict[str, Filed] = {}
        self.summary = Summary()

    def take(self, paths: Sequence[Path]) -> None:
        """Take in all sources below some paths.

        Raises:
            KbError: a path does not exist, or the import cannot be written.
        """
        for path in paths:
            for item in sources_below(path):
                if isinstance(item, Skipped):
                    self._leave_out(item)
                else:
                    with contained(f"{item.name} is left out", self._fail):
                        self._take_source(item)
        self._tell()

    def _tell(self) -> None:
        """What is on the disk by now; nobody knows how many threads are still to come."""
        self._progress(self.summary.read, self.summary.read)

    def _take_source(self, source: Source) -> None:
        stamp = _stamp(source, self._mapping)
        if self._store.stamp(source.name) == stamp:
            self.summary.unchanged_sources += 1
            return
        identities = set()
        unread = self.summary.unread
        for item in read_source(source, self._mapping):
            if isinstance(item, Skipped):
                self._leave_out(item)
            else:
                thread = with_safe_address(item)
                identities.add(identity_of(thread))
                self._take_thread(thread, source)
        self._commit()
        if self.summary.unread > unread:
            return  # it is read again the next time; until then nobody knows what left it
        self.summary.removed += self._store.keep_only(source.name, frozenset(identities))
        self._store.finish(source.name, stamp)

    def _take_thread(self, thread: Thread, source: Source) -> None:
        identity, digest = identity_of(thread), _digest(thread)
        known = self._store.digest(identity)
        if known == digest or self._is_waiting(identity, digest):
            self.summary.unchanged += 1
            return
        report = to_report(thread, self._store.name)
        if report is None:
            self.summary.empty += 1
            return
        self.summary.changed += known is not None
        self.summary.added += known is None
        filed = Filed(
            report, identity, source.name, _ticket(identity), _ticket(report.duplicate_of), digest
        )
        self._batch[identity] = filed
        if len(self._batch) >= _REPORTS_PER_BATCH:
            self._commit()

    def _is_waiting(self, identity: str, digest: str) -> bool:
        return identity in self._batch and self._batch[identity].digest == digest

    def _commit(self) -> None:
        if self._batch:
            self._store.add(list(self._batch.values()))
            self._batch = {}
            self._tell()

    def _leave_out(self, skipped: Skipped) -> None:
        self.summary.skipped[skipped.why] += 1
        self.summary.unread += skipped.is_unread
        if skipped.detail:
            self._notify(str(skipped))

    def _fail(self, loss: str) -> None:
        self.summary.skipped[Why.BROKEN] += 1
        self.summary.unread += 1
        self._notify(loss)


def encode_missing(store: BacklogStore, encoder: Encoder, progress: Progress) -> int:
    """Encode the newest reports that were not encoded yet; give their number."""
    store.use_encoder(encoder.name)
    missing = min(store.size(), MAX_ENCODED) - store.encoded()
    done = 0
    while rows := store.without_vector(_TEXTS_PER_BATCH, MAX_ENCODED):
        vectors = encoder.encode([gist_of(report) for _number, report in rows])
        store.add_vectors([number for number, _report in rows], vectors)
        done += len(rows)
        progress(done, max(missing, done))
    return done


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from writing to the same import meanwhile.

    Raises:
        KbError: one does.
    """
    make_directory(path.parent)
    try:
        with FileLock(path.with_suffix(LOCK), 0, FILE):
            yield
    except Timeout as error:
        raise KbError(
            f"another kb import writes to `{path.stem}`; wait for its end, or choose another name"
        ) from error


@contextmanager
def filling(path: Path) -> Iterator[BacklogStore]:
    """An import to write to; a new one stays only if something came into it.

    Raises:
        KbError: another process writes to it, or it cannot be written.
    """
    with locked(path):
        is_new = not path.exists()
        try:
            with BacklogStore.create(path) as store:
                yield store
        except KbError:
            if is_new and _is_empty(path):
                forget(path)
            raise


def _is_empty(path: Path) -> bool:
    with suppress(KbError), BacklogStore.open(path) as store:
        return not store.size()
    return True


def forget(path: Path) -> None:
    """Remove an import, be it damaged.

    Raises:
        KbError: a file cannot be removed.
    """
    for file in path.parent.glob(f"{glob.escape(path.stem)}.*"):
        if file.name.startswith(path.name) or file.suffix == LOCK:
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise KbError(f"cannot remove {file}: {error.strerror}") from error


def identity_of(thread: Thread) -> str:
    """What tells a thread from all others of an import: its address, else where it was read."""
    return thread.url or thread.source


def _stamp(source: Source, mapping: Mapping[str, str] | None) -> str:
    columns = "".join(f"\0{field}={column}" for field, column in sorted((mapping or {}).items()))
    return f"{_FORMAT_VERSION}\0{source.stamp}{columns}"


def _digest(thread: Thread) -> str:
    told = msgspec.structs.replace(thread, source="")  # lists overlap, and files are renamed
    data = b"%d\0" % _FORMAT_VERSION + msgspec.msgpack.encode(told)
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _ticket(name: str | None) -> str:
    """The number or key in an address, a source or a mention: 12 of `issues.json#12`."""
    return re.split(r"[/#]", name.rstrip("/"))[-1] if name else ""
