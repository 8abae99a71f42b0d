"""The note for the next engineer goes to a file; a secret does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.tui.conftest import SHM, WATCHDOG, Start, app_of, paste, press, shown, told, until
from tui.screens.export import ExportScreen

pytestmark = pytest.mark.slow


TOKEN = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345AB"


async def write(pilot: Pilot[int], path: Path | str) -> None:
    """Ask for the note, and name a file."""
    await press(pilot, "x")
    assert isinstance(pilot.app.screen, ExportScreen)
    pilot.app.screen.query_one("#path", Input).value = str(path)
    await press(pilot, "enter")


async def test_markdown_tells_the_case(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    async with start() as pilot:
        await paste(pilot, f"{WATCHDOG}\nexport HF_TOKEN={TOKEN}\n")
        await press(pilot, "2", "space")
        await write(pilot, path)
        await until(pilot, lambda: f"Written: {path}" in told(pilot))
    note = path.read_text()
    assert "`watchdog-slow-checkpoint`" in note
    assert "Watchdog caught collective operation timeout" in note
    assert "- [x] See whether rank 0 is inside the save when the others wait." in note
    assert "- [ ] Give the process group a longer timeout" in note
    assert "transformers" in note
    assert TOKEN not in note


async def test_json_tells_the_case(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    async with start() as pilot:
        await paste(pilot, f"export HF_TOKEN={TOKEN}\n{SHM}")
        await press(pilot, "t", *f"with {TOKEN}", "enter", "escape", "space")
        await write(pilot, path)
        await until(pilot, path.exists)
    note = json.loads(path.read_text())
    assert note["diagnosis"]["matches"][0]["id"] == "shm-too-small"
    assert [step["done"] for step in note["steps"]] == [True, False, False]
    assert [line["line"] for line in note["evidence"]] == [3, 5]
    assert any(said["speaker"] == "user" for said in note["conversation"])
    assert TOKEN not in path.read_text()


async def test_a_file_that_exists_is_kept(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text("mine")
    async with start() as pilot:
        await paste(pilot, SHM)
        await write(pilot, path)
        await until(pilot, lambda: "Written" in told(pilot))
        assert f"Written: {tmp_path / 'note-2.md'}" in told(pilot)
    assert path.read_text() == "mine"
    assert "shm-too-small" in (tmp_path / "note-2.md").read_text()


async def test_a_place_that_cannot_be_written_is_said_and_another_can_be_named(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    async with start() as pilot:
        await paste(pilot, SHM)
        await write(pilot, tmp_path / "file" / "note.md")
        assert "cannot write" in shown(pilot)
        pilot.app.screen.query_one("#path", Input).value = str(tmp_path / "note.md")
        await press(pilot, "enter")
        await until(pilot, (tmp_path / "note.md").exists)


async def test_the_name_that_is_offered_is_in_the_directory_one_is_in(
    start: Start, tmp_path: Path
) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "x", "enter")
        await until(pilot, lambda: "Written" in told(pilot))
    (written,) = tmp_path.glob("incident-*.md")
    assert "shm-too-small" in written.read_text()


async def test_esc_writes_nothing(start: Start, tmp_path: Path) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "x", "escape")
        assert pilot.app.screen is app_of(pilot).main
    assert not list(tmp_path.glob("*.md"))
