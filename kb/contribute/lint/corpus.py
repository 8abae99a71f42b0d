"""All files of one check, and an index of them that is there when a rule asks for it.

The linter has a store of its own, which only saves time: one that cannot be used is made again, or
kept in memory. What the index of the commands has encoded is not encoded again, nor are the
questions of earlier runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Self

import msgspec

from index.documents import Pattern
from index.encoder import load_encoder, model_name
from index.errors import StoreDamaged, StoreError
from index.remembered import RememberingEncoder, text_hash
from index.snapshot import Snapshot
from index.store import Store
from kb.contribute.lint.checked import CheckedFile
from kb.documents import digest, from_payload, to_document
from kb.errors import OutputError
from kb.evidence.markers import MARKER_PATTERNS
from kb.files import write_whole
from kb.found import to_query
from kb.incident import Incident
from kb.knowledge import Knowledge
from kb.locations import cache_directory, index_directory
from kb.log import Log
from kb.reading import read

_MOST_QUESTIONS = 20_000


class Corpus:
    """The files of one check. Close it after use.

    Those of the `directories` are looked up in the index of the commands. What is not `kept` is
    indexed in memory, and the linter's store stays as it is.
    """

    def __init__(
        self, files: Sequence[CheckedFile], directories: Sequence[Path], *, kept: bool = True
    ) -> None:
        self.files, self._kept = files, kept
        self.chosen = [file for file in files if file.chosen]
        self._model = model_name()
        self._built = Store(index_directory(directories, self._model))
        self._snapshots: list[Snapshot] = []
        self._fired = cache(self._scan)
        self._encoder = RememberingEncoder(lru_cache(1)(load_encoder), self._model, self._known)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for snapshot in self._snapshots:
            snapshot.close()
        new = self._encoder.vectors.keys() - self._questions.keys()
        if new and self._snapshots:
            _write_questions(self._model, self._questions | self._encoder.vectors)

    @cached_property
    def knowledge(self) -> Knowledge:
        """The files, ready to be asked."""
        for store in (self._built, _store()):
            with suppress(StoreError):
                self._snapshots.append(store.open())
        store = _store() if self._kept else Store(None)
        snapshot = _index(store, self.files, self._encoder)
        self._snapshots.append(snapshot)
        self._encoder.vectors.clear()  # what was encoded until now is in the store
        return Knowledge(snapshot, lambda: self._encoder)

    def fired(self, text: str) -> frozenset[Pattern]:
        """The patterns of any record that a text has."""
        return self._fired(text)

    def _scan(self, text: str) -> frozenset[Pattern]:
        declared, hits = (
            self.knowledge.snapshot.patterns,
            self.knowledge.signatures.scan(text.encode()),
        )
        return frozenset(declared[number].pattern for number, _end in hits)

    def encode_ahead(self, blocks: Sequence[str]) -> None:
        """Encode what these blocks of evidence will be asked by at once: the encoder uses all cores
        then. A block that was asked before is not even read."""
        marks = {f"asked {text_hash(block)}": block for block in blocks}
        new = [block for mark, block in marks.items() if mark not in self._questions]
        passages = [passage for block in new for passage in _passages(block, self.knowledge)]
        if passages:
            self._encoder.encode(passages)
        self._encoder.vectors |= dict.fromkeys(marks, b"")

    @cached_property
    def _questions(self) -> dict[str, bytes]:
        return _read_questions(self._model)

    def _known(self, hashes: Collection[str]) -> dict[str, bytes]:
        known = {key: self._questions[key] for key in hashes if key in self._questions}
        for snapshot in self._snapshots:
            known |= snapshot.vectors(self._model, set(hashes) - known.keys())
        return known


def _passages(block: str, knowledge: Knowledge) -> tuple[str, ...]:
    reading = read(Log.from_text(block), knowledge.signatures, knowledge.markers)
    return to_query(reading.collector.evidence()).passages


def accepted_before() -> dict[str, Incident]:
    """The records of the last run by the digest of their file: reading one takes milliseconds,
    and there are hundreds. None where other code read them."""
    try:
        with _store().open() as snapshot:
            payloads = snapshot.payloads() if snapshot.fingerprint == _reader() else {}
            return {
                digest: from_payload(payloads[name]).incident
                for name, digest in snapshot.digests().items()
                if name in payloads
            }
    except StoreError:
        return {}


@cache
def _reader() -> str:
    """Names the code that says which files are of the right shape."""
    modules = ("incident.py", "markdown/frontmatter.py", "markdown/parse.py")
    sources = (files("kb").joinpath(module).read_bytes() for module in modules)
    return hashlib.sha256(b"".join(sources)).hexdigest()


def _directory() -> Path:
    return cache_directory() / "lint"


def _store() -> Store:
    return Store(_directory())


def _index(store: Store, checked: Sequence[CheckedFile], encoder: RememberingEncoder) -> Snapshot:
    """Index the files; what is stored of those that are the same stays."""
    try:
        return _filled(store, checked, encoder)
    except StoreDamaged:
        store.clear()
        return _filled(store, checked, encoder)
    except StoreError:
        return _filled(Store(None), checked, encoder)


def _filled(store: Store, checked: Sequence[CheckedFile], encoder: RememberingEncoder) -> Snapshot:
    with store.locked():
        stored = store.digests()
        latest = {file.incident.id: file for file in checked}
        same = {name for name, file in latest.items() if stored.get(name) == digest(file.source)}
        changed = [
            to_document(file.incident, file.source)
            for name, file in latest.items()
            if name not in same
        ]
        store.update(
            changed,
            lambda: encoder,
            encoder.name,
            _reader(),
            extra_patterns=MARKER_PATTERNS,
            unchanged=same,
        )
        return store.open()


def _questions_file(model: str) -> Path:
    return _directory() / f"questions-{model}.msgpack"


def _read_questions(model: str) -> dict[str, bytes]:
    try:
        data = _questions_file(model).read_bytes()
        return msgspec.msgpack.decode(data, type=dict[str, bytes])
    except (OSError, msgspec.DecodeError):
        return {}


def _write_questions(model: str, vectors: dict[str, bytes]) -> None:
    latest = dict(list(vectors.items())[-_MOST_QUESTIONS:])
    with suppress(OutputError):
        write_whole(_questions_file(model), msgspec.msgpack.encode(latest))
