"""Themes, no colour, and the index: missing, being built, damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from kb.errors import SettingsError
from kb.service.input import UserInput
from kb.settings import Settings
from tests.conftest import copy_cache
from tests.tui.conftest import (
    SHM,
    Start,
    answered,
    app_of,
    paste,
    press,
    shown,
    strips,
    told,
    until,
    until_shown,
)
from tui.app import KbApp

pytestmark = pytest.mark.slow


@pytest.fixture
def own_cache(
    start: Start, small_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A cache that a test may damage."""
    cache = tmp_path / "cache"
    copy_cache(small_cache, cache)
    monkeypatch.setenv("KB_CACHE", str(cache))
    return cache


def colours(pilot: Pilot[int]) -> set[str]:
    """The colours on the screen."""
    segments = [one for row in strips(pilot.app.screen) for one in row]
    styles = [one.style for one in segments if one.style]
    return {str(c.name) for style in styles for c in (style.color, style.bgcolor) if c}


@pytest.mark.parametrize("theme", ["dark", "light", "terminal", "nord"])
async def test_a_theme_is_chosen_by_name(start: Start, theme: str) -> None:
    async with start(theme=theme) as pilot:
        await paste(pilot, SHM)
        assert pilot.app.theme == theme
        assert "● Match" in shown(pilot)


async def test_the_terminal_keeps_its_own_colours(start: Start) -> None:
    async with start(theme="terminal") as pilot:
        await paste(pilot, SHM)
        assert not [name for name in colours(pilot) if name.startswith("#")]


async def test_the_theme_can_be_changed_on_the_way(start: Start) -> None:
    async with start() as pilot:
        await press(pilot, "f4")
        await until(pilot, lambda: "light" in shown(pilot))
        await press(pilot, *"light", "down", "enter")
        await until(pilot, lambda: pilot.app.theme.endswith("light"))


def test_a_theme_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"unknown theme 'pink'.*; choose one of: "):
        KbApp(Settings(theme="pink"), UserInput())


async def test_without_colour_nothing_is_lost(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with start(size=(120, 60)) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "e", "space")
        for text in ("● Match", "━━━━", ">[1] 2 ", "[x] 1.", "▸ [ ] 2.", "Caution: "):
            await until_shown(pilot, text)
        greys = {c for c in colours(pilot) if c.startswith("#")}
        assert all(c[1:3] == c[3:5] == c[5:7] for c in greys)


async def test_the_first_start_builds_the_index_and_says_so(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_CACHE", str(tmp_path / "new"))
    async with start(loaded=False) as pilot:
        said: list[str] = []
        main = app_of(pilot).main
        say = main.say
        monkeypatch.setattr(main, "say", lambda status: (said.append(status), say(status)))
        main.ask(UserInput(text=SHM))
        await answered(pilot)
        assert "shm-too-small" in shown(pilot)
        assert any(status.startswith("building the index: ") for status in said)
        assert "4 records, offline" in shown(pilot)


@pytest.mark.parametrize("damage", ["truncated", "overwritten"])
async def test_a_damaged_index_is_built_again_and_that_is_said(
    start: Start, own_cache: Path, damage: str
) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
    (store,) = own_cache.glob("index-*/index.sqlite")
    for journal in store.parent.glob("index.sqlite-*"):
        journal.unlink()
    whole = store.read_bytes()
    store.write_bytes(whole[: len(whole) // 2] if damage == "truncated" else b"x" * len(whole))
    async with start() as pilot:
        await until(pilot, lambda: "rebuilding it" in told(pilot))
        await paste(pilot, SHM)
        assert "shm-too-small" in shown(pilot)


async def test_records_that_are_not_there_are_told(start: Start, tmp_path: Path) -> None:
    async with start(incidents=(str(tmp_path / "gone"),)) as pilot:
        assert "is not a directory" in told(pilot)
        assert "no index" in shown(pilot)
        await press(pilot, *"error", "enter")
        await until(pilot, lambda: told(pilot).count("is not a directory") == 2)
        assert app_of(pilot).main.is_draft is False
