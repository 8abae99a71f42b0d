"""Files are written whole or not at all, under names that nothing has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kb.errors import OutputError
from kb.files import check_new, create, write_new, write_whole


def test_a_link_to_nowhere_is_a_name_that_something_has(tmp_path: Path) -> None:
    link = tmp_path / "note.md"
    link.symlink_to("victim")
    assert write_new(link, b"text") == tmp_path / "note-2.md"
    with pytest.raises(FileExistsError):
        create(link, b"text")
    with pytest.raises(OutputError, match="exists"):
        check_new(link)
    assert not (tmp_path / "victim").exists()


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"\0" * size)  # a name that was guessed
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".kb-{'00' * 8}.part").symlink_to(victim)
    for write in (write_whole, create):
        with pytest.raises(OutputError, match="cannot write"):
            write(tmp_path / "o.csv", b"results")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "o.csv").exists()


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "note.md"
    assert [write_new(path, text).name for text in (b"one", b"two")] == ["note.md", "note-2.md"]
    assert (path.read_bytes(), (tmp_path / "note-2.md").read_bytes()) == (b"one", b"two")
    assert len(list(tmp_path.iterdir())) == 2


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "record.md"
    path.write_text("old")
    path.chmod(0o640)
    write_whole(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
