"""The screen in a browser: who looks at it is at another machine, and gets nothing of this one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.geometry import Size
from textual.widgets import Input, TextArea

from tests.tui.conftest import (
    SHM,
    Start,
    app_of,
    paste,
    press,
    settle,
    shown,
    told,
    until,
    until_shown,
)
from tui.clipboard import copy


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the browser got, by name."""
    files: dict[str, str] = {}

    def deliver(_app: App[Any], file: io.StringIO, *, save_filename: str) -> None:
        files[save_filename] = file.getvalue()

    monkeypatch.setattr(App, "deliver_text", deliver)
    return files


async def test_a_paste_is_answered_and_kept_nowhere(start: Start, tmp_path: Path) -> None:
    async with start(in_browser=True) as pilot:
        assert "Nothing leaves this machine" not in shown(pilot)
        await paste(pilot, SHM)
        assert "/dev/shm" in shown(pilot)
        await press(pilot, "q")
    assert not list((tmp_path / "state").rglob("*.json*"))


@pytest.mark.parametrize("key", ["o", "b", "h", "exclamation_mark"])
async def test_files_and_programs_of_the_server_are_not_at_hand(start: Start, key: str) -> None:
    async with start(in_browser=True) as pilot:
        await paste(pilot, SHM)
        await press(pilot, key)
        await settle(pilot)
        assert pilot.app.screen is app_of(pilot).main
        assert "opens no files of its machine" in told(pilot)


@pytest.mark.parametrize(("name", "begin"), [("note.md", "# "), ("a/b/../é x.json", "{")])
async def test_the_note_is_downloaded(
    start: Start, handed_over: dict[str, str], tmp_path: Path, name: str, begin: str
) -> None:
    async with start(in_browser=True) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "x")
        await until_shown(pilot, "Write the hand-off note")
        assert str(tmp_path) not in shown(pilot)
        pilot.app.screen.query_one(Input).value = name
        await press(pilot, "enter")
        await until(pilot, lambda: "Downloaded: " in told(pilot))
    ((given, text),) = handed_over.items()
    assert given in {"note.md", "x.json"}
    assert text.startswith(begin)
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


async def test_a_draft_is_downloaded(
    start: Start, handed_over: dict[str, str], tmp_path: Path
) -> None:
    async with start(in_browser=True) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "n")
        await until_shown(pilot, "Draft of an incident")
        text = pilot.app.screen.query_one(TextArea).text
        await press(pilot, "ctrl+o")
        await until(pilot, lambda: "Downloaded: " in told(pilot))
    assert list(handed_over.values()) == [text]
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


async def test_what_is_copied_goes_to_the_browser_alone(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMUX", "of the server")
    async with start(in_browser=True) as pilot:
        monkeypatch.setattr(App, "is_web", True)
        written: list[str] = []
        assert pilot.app._driver
        monkeypatch.setattr(pilot.app._driver, "write", written.append)
        assert "browser's clipboard" in await copy("df -h", pilot.app)
        assert written == ["\x1b]52;c;ZGYgLWg=\a"]
    assert not (tmp_path / "cache" / "last-copy.txt").exists()


async def test_two_sizes_at_once_come_to_rest(start: Start) -> None:
    async with start() as pilot:
        screen = pilot.app.screen
        sizes: list[object] = []
        screen.screen_layout_refresh_signal.subscribe(screen, sizes.append)
        for size in (Size(90, 30), Size(100, 24)):
            screen.post_message(events.Resize(size, size))
            screen.post_message(events.AppBlur())  # so that neither is taken for the other
        await pilot.pause(1)
        assert len(sizes) < 10
