"""Small lists that are kept on this machine only, in the state directory, with secrets masked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from index.private import FILE, make_directory
from index.progress import Notify
from kb.containment import surviving
from kb.errors import OutputError
from kb.evidence.secrets import without_secrets
from kb.files import read_regular, write_new, write_whole
from kb.paths import state_directory

Entry = TypeVar("Entry", bound=msgspec.Struct)

_MAX_LOSSES_NAMED = 3
"""Damaged entries that are named in one notice."""

_LOCK_TIMEOUT_SECONDS = 2
"""How long to wait for another process that writes; then the entry is not kept."""


class Named(msgspec.Struct, frozen=True):
    """How notices call the list and its entries."""

    file: str
    """Without its ending: "history"."""
    list: str
    entry: str
    entries: str


class KeptList(Generic[Entry]):
    """The newest entries, in one file. Errors are reported with `notify` and never raised, because
    what is kept must not interrupt the work."""

    def __init__(self, named: Named, kind: type[Entry], notify: Notify) -> None:
        self._named = named
        self._kind = kind
        self._notify = notify
        self._path = state_directory() / f"{named.file}.json"

    def load(self) -> tuple[Entry, ...]:
        """The entries, newest first. A damaged file is set aside."""
        with self._reporting_errors():
            return self._read()
        return ()

    def add(self, entry: Entry, subject: Callable[[Entry], object], most: int) -> None:
        """Keep an entry, with secrets masked, in front of at most `most` - 1 others. One with the
        same subject gives way to it."""
        new = without_secrets(entry)
        with self._reporting_errors(), self._locked():
            others = [old for old in self._read() if subject(old) != subject(new)]
            write_whole(self._path, msgspec.json.encode([new, *others][:most]))

    def clear(self) -> None:
        """Forget all entries."""
        if self._path.exists():
            with self._reporting_errors(), self._locked():
                self._path.unlink(missing_ok=True)

    def _read(self) -> tuple[Entry, ...]:
        try:
            data = read_regular(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return ()  # nothing was ever kept there
        losses: list[str] = []
        found = tuple(self._entries(data, losses.append))
        if losses:
            aside = self._set_aside()
            write_whole(self._path, msgspec.json.encode(found))
            said = "; ".join(losses[:_MAX_LOSSES_NAMED])
            self._notify(
                f"the {self._named.file} file was damaged; kept it as {aside}, started a new one"
                f" with the {len(found)} {self._named.entries} that can be read: {said}"
            )
        return found

    def _entries(self, data: bytes, notify: Notify) -> Iterator[Entry]:
        """Those that can be read."""
        entries: list[msgspec.Raw] = []
        try:
            entries = msgspec.json.decode(data, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError):
            notify(f"it is no list of {self._named.entries}")
        yield from surviving(
            enumerate(entries, 1),
            lambda entry: msgspec.json.decode(entry[1], type=self._kind),
            lambda entry: f"{self._named.entry} {entry[0]} is left out",
            notify,
        )

    def _set_aside(self) -> Path:
        aside = write_new(self._path.with_stem(f"{self._named.file}.damaged"), b"")
        return self._path.replace(aside)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock  # takes a while, and most lists are only read

        make_directory(self._path.parent)
        with FileLock(self._path.with_suffix(".lock"), _LOCK_TIMEOUT_SECONDS, FILE):
            yield

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except (OutputError, OSError, NotImplementedError) as error:
            # The last one: a file system without locks. A lock that others hold is an OSError.
            self._notify(f"cannot save the {self._named.list}: {error}")
