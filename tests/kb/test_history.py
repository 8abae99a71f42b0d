"""The last searches survive what happens to files, and hold no secrets."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.history import MAX_SEARCHES_KEPT, MAX_TEXT_CHARACTERS, History, Search
from kb.log import Log
from kb.settings import Settings
from kb.verdict import Verdict

TOKEN = "hf_" + "a1B2c3" * 6


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state"
    monkeypatch.setenv("KB_STATE", str(path))
    return path


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def history(told: list[str]) -> History:
    return History(Settings(), told.append)


def search(text: str) -> Search:
    return Search(datetime.now(UTC), text, (), text[:50], Verdict.UNKNOWN, None, None)


def test_newest_comes_first_and_comes_back_as_it_was(history: History, told: list[str]) -> None:
    searches = [search("one\n[red]two[/red]"), search("three")]
    for item in searches:
        history.add(item)
    assert history.load() == tuple(reversed(searches))
    assert told == []


def test_search_of_a_diagnosis_says_what_it_was(knowledge: KnowledgeBase, history: History) -> None:
    text = Path("benchmarks/samples/nccl-shm.log").read_text()
    diagnosis = diagnose(Log.from_text(text), knowledge)
    history.add(Search.of(diagnosis, text))
    kept = history.load()[0]
    assert kept.text == text
    assert kept.verdict is diagnosis.verdict
    assert kept.incident == diagnosis.matches[0].incident.id
    assert kept.title in text


def test_the_same_again_moves_to_the_front(history: History) -> None:
    for text in ("a", "b", "a"):
        history.add(search(text))
    assert [item.text for item in history.load()] == ["a", "b"]


def test_secrets_are_not_written(history: History, state: Path) -> None:
    item = Search(
        datetime.now(UTC), f"x\nlogin {TOKEN}", (f"s3://me:{TOKEN}@b/c",), TOKEN, Verdict.UNKNOWN,
        None, None,
    )  # fmt: skip
    history.add(item)
    assert TOKEN not in (state / "history.json").read_text()
    assert history.load()[0].text.startswith("x\nlogin <secret: ")


def test_only_the_owner_can_read_it(history: History, state: Path) -> None:
    history.add(search("a"))
    assert stat.S_IMODE((state / "history.json").stat().st_mode) == 0o600
    history.add(search("b"))
    assert stat.S_IMODE((state / "history.json").stat().st_mode) == 0o600


def test_it_is_bounded(history: History) -> None:
    for number in range(MAX_SEARCHES_KEPT + 3):
        history.add(search(f"search {number}"))
    history.add(search("word\n" * MAX_TEXT_CHARACTERS))
    kept = history.load()
    assert len(kept) == MAX_SEARCHES_KEPT
    assert MAX_TEXT_CHARACTERS - 10 < len(kept[0].text) <= MAX_TEXT_CHARACTERS


def test_secret_at_the_cut_is_not_kept_in_part(history: History) -> None:
    history.add(search("x " * (MAX_TEXT_CHARACTERS // 2 - 10) + f"{TOKEN} end"))
    assert TOKEN[:10] not in history.load()[0].text


KEPT = msgspec.json.encode([search("odd")])


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[{",
        b"\xff\xfe",
        b'[{"time": 1}]',
        b"{}",
        b"[" * 100_000,
        KEPT.replace(b"odd", b"o\xffd"),
        KEPT.replace(b"odd", b"o\\ud800d"),
        KEPT.replace(b'"paths":[]', b'"paths":["\xc3"]'),
        re.sub(rb'"time":"[^"]+"', b'"time":"9999-12-31T23:59:59-23:00"', KEPT),
        re.sub(rb'"time":"[^"]+"', b'"time":"0001-01-01T00:00:00+23:00"', KEPT),
    ],
    # Each process says them alike, though each has its own time in them.
    ids=[
        "empty",
        "cut",
        "bytes",
        "text",
        "object",
        "deep",
        "byte",
        "half",
        "path",
        "late",
        "early",
    ],
)
def test_damaged_file_is_set_aside(
    history: History, told: list[str], state: Path, damage: bytes
) -> None:
    for number in (1, 2):
        state.mkdir(exist_ok=True)
        (state / "history.json").write_bytes(damage)
        assert history.load() == ()
        assert len(told) == number
        assert "damaged" in told[-1]
    assert (state / "history.damaged.json").read_bytes() == damage
    assert (state / "history.damaged-2.json").read_bytes() == damage
    history.add(search("a"))
    assert len(history.load()) == 1


def test_directory_that_cannot_be_written_is_told_not_raised(
    told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KB_STATE", str(tmp_path / "file" / "state"))
    history = History(Settings(), told.append)
    history.add(search("a"))
    assert "cannot save" in told[0]
    history.clear()


def test_turned_off_keeps_and_shows_nothing(history: History, state: Path) -> None:
    history.add(search("before"))
    off = History(Settings(history=False), pytest.fail)
    off.add(search("after"))
    assert off.load() == ()
    assert [item.text for item in history.load()] == ["before"]
    off.clear()
    assert not (state / "history.json").exists()


def test_two_processes_lose_nothing(history: History, state: Path) -> None:
    program = (
        "import sys; from tests.kb.test_history import *; "
        "h = History(Settings(), sys.exit); "
        "[h.add(search(sys.argv[1] + str(n))) for n in range(20)]"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, name], env={**os.environ})
        for name in ("a", "b")
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert len(history.load()) == 40
