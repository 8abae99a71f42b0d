"""All files of one check, and an index of them that is built when a rule needs it.

The linter has a separate store as a cache: if it is unusable, it is rebuilt or kept in memory.
Vectors of the main index and of earlier runs are reused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Self

import msgspec

import kb
from index.documents import Pattern
from index.encoder import load_encoder, model_name
from index.errors import StoreError
from index.snapshot import Snapshot
from index.store import Store
from index.vector_cache import CachingEncoder, text_hash
from kb.contribute.lint.checked import CheckedFile
from kb.corpus.base import KnowledgeBase
from kb.corpus.document import digest, from_payload, to_document
from kb.corpus.guide_document import from_guide_payload
from kb.corpus.sources import SourceContent
from kb.corpus.sync import IndexSync
from kb.corpus.tier import Tier, TierName
from kb.diagnosis import Diagnosis, diagnose
from kb.diagnosis.query import to_query
from kb.diagnosis.scan import scan_log
from kb.errors import IncidentError, OutputError
from kb.files import write_whole
from kb.guides import Guide
from kb.incident import Incident
from kb.log import Log
from kb.markdown import unforeseen
from kb.paths import cache_directory, index_directory, packed_index
from kb.problem import Problem

_MAX_QUESTIONS_KEPT = 20_000
"""Number of vectors kept between runs, about 1.5 kB each."""


class LintContext:
    """The files of one check. Close it after use.

    Vectors of the `directories` come from the main index. With `kept` false, the files are indexed
    in memory, and the linter's store does not change.
    """

    def __init__(
        self,
        files: Sequence[CheckedFile],
        directories: Sequence[Path],
        playbooks: Collection[str] = (),
        *,
        kept: bool = True,
    ) -> None:
        """`playbooks`: the ids that an incident can name as its symptoms."""
        self.files, self.playbooks, self._kept = files, playbooks, kept
        self.chosen = [file for file in files if file.chosen]
        self.problems: list[Problem] = []
        """Of files whose evidence cannot be searched with."""
        self._model = model_name()
        self._built = Store(index_directory(directories, self._model))
        self._snapshots: list[Snapshot] = []
        self._fired = cache(self._scan)
        self._encoder = CachingEncoder(lru_cache(1)(load_encoder), self._model, self._known)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for snapshot in self._snapshots:
            snapshot.close()
        new = self._encoder.vectors.keys() - self._questions.keys()
        if new and self._snapshots:
            _write_questions(self._model, self._questions | self._encoder.vectors)

    @cached_property
    def knowledge(self) -> KnowledgeBase:
        """The files, ready to be asked."""
        for store in (self._built, _store()):
            with suppress(StoreError):
                self._snapshots.append(store.open())
        store = _store() if self._kept else Store(None)
        source = _CheckedFiles(self.files)
        snapshot = IndexSync(
            source, store, self._load_encoder, self._model, seed=packed_index()
        ).open()
        self._snapshots.append(snapshot)
        self._encoder.vectors.clear()  # what was encoded until now is in the store
        curated = Tier(TierName.CURATED, lambda: snapshot, self._load_encoder)
        return KnowledgeBase(curated, self._load_encoder)

    def _load_encoder(self) -> CachingEncoder:
        return self._encoder

    def diagnose(self, file: CheckedFile, text: str) -> Diagnosis | None:
        """Search with a text of a file. None where that fails, which is one of the `problems`."""
        knowledge = self.knowledge
        try:
            return unforeseen(
                file.name,
                "search with this record",
                lambda: diagnose(Log.from_text(text), knowledge),
            )
        except IncidentError as error:
            self.problems.extend(error.problems)
            return None

    def fired(self, text: str) -> frozenset[Pattern]:
        """The patterns of any record that a text has."""
        return self._fired(text)

    def _scan(self, text: str) -> frozenset[Pattern]:
        scanner = self.knowledge.signatures
        return frozenset(scanner.patterns[number] for number, _end in scanner.scan(text.encode()))

    def encode_ahead(self, blocks: Sequence[str]) -> None:
        """Encode the queries of these evidence blocks in one batch, so that the encoder uses all
        cores. Blocks from the cache are skipped."""
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


def _passages(block: str, knowledge: KnowledgeBase) -> tuple[str, ...]:
    scanned = scan_log(Log.from_text(block), knowledge.signatures, knowledge.markers)
    return to_query(scanned.collector.evidence()).passages


def accepted_before() -> dict[str, Incident]:
    """The records of the last run by the digest of their file: reading one takes milliseconds,
    and there are hundreds. None where other code read them."""
    try:
        with _store().open() as snapshot:
            read_alike = snapshot.fingerprint.startswith(_reader())
            payloads = snapshot.payloads() if read_alike else {}
            return {
                digest: from_payload(payloads[name]).incident
                for name, digest in snapshot.digests().items()
                if name in payloads
            }
    except (StoreError, msgspec.MsgspecError):
        return {}


def indexed_guides(directories: Sequence[Path]) -> dict[str, Guide]:
    """The checks and playbooks of the index by the digest of their file: compiling all their
    patterns takes seconds. None where there is no index."""
    try:
        with Store(index_directory(directories, model_name(), TierName.GUIDES)).open() as snapshot:
            digests, payloads = snapshot.digests(), snapshot.payloads()
            return {
                digests[name]: from_guide_payload(payload).guide
                for name, payload in payloads.items()
            }
    except (StoreError, msgspec.MsgspecError):
        return {}


@cache
def _reader() -> str:
    """Names the code that says which files are of the right shape, and in which form they are
    kept."""
    modules = (
        "corpus/document.py",
        "incident.py",
        "markdown/blocks.py",
        "markdown/frontmatter.py",
        "markdown/incident.py",
        "markdown/parse.py",
        "markdown/reader.py",
    )
    sources = ((Path(kb.__file__).parent / module).read_bytes() for module in modules)
    return hashlib.sha256(b"".join(sources)).hexdigest()


def _directory() -> Path:
    return cache_directory() / "lint"


def _store() -> Store:
    return Store(_directory())


class _CheckedFiles:
    """The files of one check as the source of an index."""

    def __init__(self, checked: Sequence[CheckedFile]) -> None:
        self._latest = {file.incident.id: file for file in checked}
        self._digests = {name: digest(file.source) for name, file in self._latest.items()}

    def fingerprint(self) -> str:
        files = msgspec.json.encode(sorted(self._digests.items()))
        return f"{_reader()} {hashlib.sha256(files).hexdigest()}"

    def read(self, stored: Mapping[str, str]) -> SourceContent:
        same = [name for name, known in self._digests.items() if stored.get(name) == known]
        changed = [
            to_document(file.incident, file.source)
            for name, file in self._latest.items()
            if name not in set(same)
        ]
        return SourceContent(changed, same, [])


def _questions_file(model: str) -> Path:
    return _directory() / f"questions-{model}.msgpack"


def _read_questions(model: str) -> dict[str, bytes]:
    try:
        data = _questions_file(model).read_bytes()
        return msgspec.msgpack.decode(data, type=dict[str, bytes])
    except (OSError, msgspec.DecodeError):
        return {}


def _write_questions(model: str, vectors: dict[str, bytes]) -> None:
    latest = dict(list(vectors.items())[-_MAX_QUESTIONS_KEPT:])
    with suppress(OutputError):
        write_whole(_questions_file(model), msgspec.msgpack.encode(latest))
