"""An empty store begins with what a packed file holds; a file that does not fit is ignored."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import zstandard

from index.encoder import Encoder, model_name
from index.packing import pack, unpack
from index.store import DATABASE, Store
from tests.index.test_store import DOCUMENTS, document, fill, ids_found

EXTRA = DOCUMENTS[0].patterns


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """Three documents in a file, as a package carries it."""
    store = Store(tmp_path / "origin")
    fill(store, DOCUMENTS)
    path = tmp_path / "packed"
    with store.open() as snapshot:
        path.write_bytes(pack(snapshot))
    return path


@pytest.fixture(params=["disk", "memory"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(tmp_path / "store" if request.param == "disk" else None)


def forbidden() -> Encoder:
    pytest.fail("the encoder was loaded for nothing")


def changed(packed: Path, statement: str) -> None:
    """Change the database in a packed file."""
    plain = packed.with_suffix(".sqlite")
    plain.write_bytes(unpack(packed) or b"")
    with sqlite3.connect(plain) as connection:
        connection.execute(statement)
    packed.write_bytes(zstandard.ZstdCompressor(write_checksum=True).compress(plain.read_bytes()))


def test_seeded_store_answers_and_encodes_nothing(empty: Store, packed: Path) -> None:
    empty.seed(packed, EXTRA)
    assert empty.digests() == {one.id: one.digest for one in DOCUMENTS}
    changes = empty.update([], forbidden, model_name(), "f", unchanged=list(empty.digests()))
    assert (changes.unchanged, changes.encoded) == (3, 0)
    assert ids_found(empty, "shared memory segment too small")[0] == "shm"
    with empty.open() as snapshot:
        assert snapshot.fingerprint == "f"
        assert snapshot.scanner().scan(b"fallen off the bus")
        assert snapshot.extra_scanner(EXTRA).scan(b"no space in /dev/shm/")


def test_of_a_seeded_store_only_what_differs_is_encoded(empty: Store, packed: Path) -> None:
    empty.seed(packed)
    wanted = [DOCUMENTS[0], document("xid", "link is down"), document("team", "the lamp is red")]
    changes = empty.update(wanted, _encoder, model_name(), "f")
    assert (changes.added, changes.changed, changes.removed, changes.unchanged) == (1, 1, 1, 1)
    assert changes.encoded == 2
    assert ids_found(empty, "the lamp is red")[0] == "team"
    assert "bread" not in ids_found(empty, "How to bake bread with sourdough")


def _encoder() -> Encoder:
    from tests.index.test_store import ENCODER

    return ENCODER


def test_vectors_of_another_model_are_not_used(empty: Store, packed: Path) -> None:
    empty.seed(packed)
    assert empty.update(DOCUMENTS, _encoder, "another model", "f").encoded == 3


def test_store_that_was_built_is_not_seeded(tmp_path: Path, packed: Path) -> None:
    store = Store(tmp_path / "store")
    fill(store, [document("mine", "my own words")])
    store.seed(packed)
    assert set(store.digests()) == {"mine"}


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "rubbish", "no database"])
def test_damaged_file_is_ignored(empty: Store, packed: Path, damage: str) -> None:
    whole = packed.read_bytes()
    middle = len(whole) // 2
    packed.unlink()
    broken = {
        "empty": b"",
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "rubbish": b"x" * len(whole),
        "no database": zstandard.ZstdCompressor().compress(b"x" * 9000),
    }.get(damage)
    if broken is not None:
        packed.write_bytes(broken)
    empty.seed(packed)
    assert empty.digests() == {}
    assert fill(empty, DOCUMENTS) == 3
    assert ids_found(empty, "fallen off the bus")[0] == "xid"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = 999 WHERE key = 'schema'",
        "UPDATE vectors SET vector = zeroblob(length(vector))",
        "UPDATE patterns SET text = '(', regex = 1",
        "DROP TABLE passages",
    ],
)
def test_file_that_does_not_fit_is_ignored(empty: Store, packed: Path, statement: str) -> None:
    changed(packed, statement)
    empty.seed(packed)
    assert empty.digests() == {}
    assert empty.directory is None or [path.name for path in empty.directory.iterdir()] == ["lock"]
    assert fill(empty, DOCUMENTS) == 3


def test_patterns_compiled_for_another_processor_are_compiled_again(
    empty: Store, packed: Path
) -> None:
    changed(packed, "UPDATE meta SET value = zeroblob(99) WHERE key IN ('signatures', 'extra')")
    empty.seed(packed, EXTRA)
    with empty.open() as snapshot:
        assert snapshot.scanner().scan(b"fallen off the bus")
        assert snapshot.extra_scanner(EXTRA).scan(b"no space in /dev/shm/")


@pytest.mark.parametrize("name", ["partial", "partial-journal", "wal", "shm"])
def test_what_a_killed_process_left_does_no_harm(tmp_path: Path, packed: Path, name: str) -> None:
    directory = tmp_path / "store"
    directory.mkdir()
    separator = "." if name.startswith("partial") else "-"
    (directory / f"{DATABASE}{separator}{name}").write_bytes(b"x" * 9000)
    store = Store(directory)
    store.seed(packed)
    assert len(store.digests()) == 3
    assert store.update([], forbidden, model_name(), "f", unchanged=["shm"]).removed == 2


def test_after_an_update_of_the_package_nothing_is_encoded(tmp_path: Path, packed: Path) -> None:
    old = Store(tmp_path / "old")
    old.seed(packed, EXTRA)
    old.update(DOCUMENTS, forbidden, model_name(), "release 1")
    newer = [*DOCUMENTS, document("new", "the switch lost its power", "lost its power")]
    with_new = Store(tmp_path / "with-new")
    fill(with_new, newer)
    with with_new.open() as snapshot:
        packed.write_bytes(pack(snapshot))
    old.seed(packed, EXTRA)
    changes = old.update(newer, forbidden, model_name(), "release 2")
    assert (changes.added, changes.encoded) == (1, 0)
    assert ids_found(old, "the switch lost its power")[0] == "new"
