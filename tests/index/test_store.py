"""The store holds whole generations, encodes only what changed, and survives damage."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from index.documents import Document, Pattern, Query
from index.encoder import Encoder, load_encoder, model_name
from index.errors import StoreDamaged, StoreError, StoreMissing
from index.store import DATABASE, Store

ENCODER = load_encoder()


def document(name: str, text: str, *patterns: str) -> Document:
    return Document(
        id=name,
        digest=text,
        words=text,
        passages=(text,),
        patterns=tuple(Pattern(pattern) for pattern in patterns),
        example=text,
        tags=frozenset(text.split()[:1]),
        payload=name.encode(),
    )


DOCUMENTS = [
    document("shm", "NCCL cannot create its shared memory segment, /dev/shm is full", "/dev/shm/"),
    document("bread", "How to bake bread with sourdough and rye flour", "sourdough"),
    document("xid", "GPU has fallen off the bus, Xid 79", "fallen off the bus", "/dev/shm/"),
]


def fill(store: Store, documents: list[Document], fingerprint: str = "f") -> int:
    return store.update(documents, lambda: ENCODER, model_name(), fingerprint).encoded


def ids_found(store: Store, text: str, encoder: Encoder = ENCODER) -> list[str]:
    with store.open() as snapshot:
        found = snapshot.search(Query(lines=(text,), passages=(text,)), encoder)
        return [c.id for c in sorted(found, key=lambda c: -(c.coverage + c.cosine))]


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(tmp_path / "store" if request.param == "disk" else None)


def test_the_right_document_comes_first(store: Store) -> None:
    fill(store, DOCUMENTS)
    assert ids_found(store, "shared memory segment too small")[0] == "shm"
    assert ids_found(store, "a recipe for a loaf with yeast")[0] == "bread"


def test_only_what_changed_is_encoded(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert fill(store, DOCUMENTS) == 3
    assert fill(store, DOCUMENTS) == 0
    changed = [DOCUMENTS[0], DOCUMENTS[1], document("xid", "link is down", "down")]
    changes = store.update(changed, lambda: ENCODER, model_name(), "g")
    assert (changes.changed, changes.unchanged, changes.encoded) == (1, 2, 1)
    assert ids_found(store, "link is down")[0] == "xid"


def test_encoder_is_not_loaded_when_nothing_is_to_be_encoded(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, DOCUMENTS)

    def forbidden() -> Encoder:
        pytest.fail("the encoder was loaded for nothing")

    store.update(DOCUMENTS, forbidden, model_name(), "h")


def test_removed_document_is_not_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, DOCUMENTS)
    assert store.update(DOCUMENTS[:1], lambda: ENCODER, model_name(), "g").removed == 2
    assert ids_found(store, "How to bake bread") == ["shm"]


def test_pattern_of_two_documents_is_half_as_telling(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, DOCUMENTS)
    with store.open() as snapshot:
        scanner = snapshot.scanner()
        hits = scanner.scan(b"/dev/shm/ fallen off the bus")
        seen = frozenset(scanner.patterns[number] for number, _end in hits)
        found = {c.id: c for c in snapshot.search(Query((), (), patterns=seen), ENCODER)}
    assert list(found["shm"].pattern_shares.values()) == [0.5]
    assert sorted(found["xid"].pattern_shares.values()) == [0.5, 1.0]


def test_reader_sees_its_generation_while_a_newer_one_is_built(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, DOCUMENTS)
    with store.open() as old:
        for text in ("one", "two", "three"):
            fill(store, [document("only", text)], text)
        assert len(old) == 3
        assert len(old.search(Query(("bread",), ("bread",)), ENCODER)) == 3
    assert ids_found(store, "anything") == ["only"]


def test_what_is_read_here_is_not_removed_by_the_last_writer_elsewhere(tmp_path: Path) -> None:
    """A process that closes the database as its last user removes the log that others still read,
    unless it sees their locks."""
    fill(Store(tmp_path), DOCUMENTS)
    elsewhere = f"""
import sqlite3
connection = sqlite3.connect({str(tmp_path / DATABASE)!r})
connection.execute("UPDATE meta SET value = value")
connection.commit()
connection.close()
"""
    with Store(tmp_path).open() as reader:
        fill(Store(tmp_path), DOCUMENTS[:1], "changed")
        subprocess.run([sys.executable, "-c", elsewhere], check=True)
        assert (tmp_path / f"{DATABASE}-wal").exists()
        assert len(reader) == len(DOCUMENTS)


def test_old_vectors_are_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for text in ("one", "two", "three", "four"):
        fill(store, [document("only", text)], text)
    assert len(list(tmp_path.glob("vectors-*.faiss"))) == 2


def test_other_model_means_other_vectors(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, DOCUMENTS)
    changes = store.update(DOCUMENTS, lambda: ENCODER, "another model", "f")
    assert (changes.unchanged, changes.encoded) == (3, 3)


def test_missing_store_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="kb index"):
        Store(tmp_path).open()


def test_empty_corpus_finds_nothing(store: Store) -> None:
    fill(store, [])
    assert ids_found(store, "anything") == []


@pytest.mark.parametrize("victim", [DATABASE, "vectors-1.faiss"])
@pytest.mark.parametrize("damage", ["rubbish", "cut", "empty"])
def test_damage_is_noticed_and_a_rebuild_helps(tmp_path: Path, victim: str, damage: str) -> None:
    store = Store(tmp_path)
    fill(store, DOCUMENTS)
    path = tmp_path / victim
    whole = path.read_bytes()
    path.write_bytes({"rubbish": b"x" * len(whole), "cut": whole[:3000], "empty": b""}[damage])
    with pytest.raises(StoreError):
        store.open()
    store.clear()
    fill(store, DOCUMENTS)
    assert ids_found(store, "fallen off the bus")[0] == "xid"


def test_an_index_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    fill(Store(tmp_path / "records"), [document("a", "shared memory")])
    (tmp_path / "records").rename(tmp_path / "checks")
    with pytest.raises(StoreDamaged, match="of another directory"):
        Store(tmp_path / "checks").open()


def test_lost_vectors_are_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, DOCUMENTS)
    (tmp_path / "vectors-1.faiss").unlink()
    with pytest.raises(StoreDamaged):
        store.open()


def test_other_schema_version_means_rebuild(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, DOCUMENTS)
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        connection.execute("UPDATE meta SET value = 999 WHERE key = 'schema'")
    with pytest.raises(StoreDamaged):
        store.open()
    with pytest.raises(StoreDamaged):
        fill(store, DOCUMENTS)
