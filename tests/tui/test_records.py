"""All records to read, the last searches to repeat, a draft to complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Select, TextArea

from tests.tui.conftest import (
    SHM,
    UNKNOWN,
    Start,
    answered,
    app_of,
    paste,
    press,
    shown,
    told,
    until,
    until_shown,
)
from tui.screens.browse import BrowseScreen
from tui.screens.draft import DraftScreen
from tui.screens.history import HistoryScreen
from tui.widgets.detail import Detail
from tui.widgets.paste_box import PasteBox

pytestmark = pytest.mark.slow


def on_main(pilot: Pilot[int]) -> bool:
    return pilot.app.screen is app_of(pilot).main


async def browsing(pilot: Pilot[int]) -> None:
    await press(pilot, "escape", "slash")
    await until(pilot, lambda: isinstance(pilot.app.screen, BrowseScreen))
    await until_shown(pilot, "4 of 4 records")


async def test_records_are_found_by_words(start: Start) -> None:
    async with start() as pilot:
        await browsing(pilot)
        assert pilot.app.screen.query_one("#words").has_focus
        await press(pilot, *"memory SEGMENT")
        await until_shown(pilot, "1 of 4 records")
        await until_shown(pilot, "NCCL cannot extend its shared memory segment")
        await until_shown(pilot, "incident, confirmed")
        await press(pilot, *"zzz")
        await until_shown(pilot, "0 of 4 records")


async def test_a_record_with_the_words_in_its_name_is_first(start: Start) -> None:
    async with start() as pilot:
        await browsing(pilot)
        pilot.app.screen.query_one("#words", Input).value = "watchdog"
        listed = pilot.app.screen.query_one("#list", OptionList)
        await until(pilot, lambda: listed.option_count < 4)
        names = [str(option.id) for option in listed.options]
        assert all("watchdog" in name for name in names[:1])


async def test_a_long_id_is_not_broken(start: Start) -> None:
    async with start(size=(62, 24)) as pilot:
        await browsing(pilot)
        listed = pilot.app.screen.query_one("#list", OptionList)
        width = listed.scrollable_content_region.width
        for option in listed.options:
            assert len(str(option.prompt).split("\n")[0]) <= width


async def test_records_are_found_by_words_in_chinese(start: Start) -> None:
    async with start() as pilot:
        await browsing(pilot)
        pilot.app.screen.query_one("#words", Input).value = "共享内存"
        await until_shown(pilot, "1 of 4 records")


async def test_records_are_filtered_by_system_and_kind(start: Start) -> None:
    async with start() as pilot:
        await browsing(pilot)
        system = pilot.app.screen.query_one("#system", Select)
        await press(pilot, "tab", "enter", "down", "enter")
        await until_shown(pilot, "1 of 4 records")
        assert system.selection == "docker"
        system.clear()
        await until_shown(pilot, "4 of 4 records")
        pilot.app.screen.query_one("#kind", Select).value = "cascade"
        await until_shown(pilot, "1 of 4 records")
        await until_shown(pilot, "peer-gone")


async def test_from_the_list_to_the_record_and_back(start: Start) -> None:
    async with start() as pilot:
        await browsing(pilot)
        await press(pilot, "enter")
        listed = pilot.app.screen.query_one("#list", OptionList)
        assert listed.has_focus
        await press(pilot, "down")
        await until_shown(pilot, "The line says that the mount is full")
        await press(pilot, "enter")
        assert pilot.app.screen.query_one(Detail).has_focus
        await press(pilot, "enter")
        assert listed.has_focus
        await press(pilot, "slash")
        assert pilot.app.screen.query_one("#words").has_focus
        await press(pilot, "escape")
        assert on_main(pilot)


async def test_a_search_is_repeated_after_a_restart(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(UNKNOWN)
    async with start() as pilot:
        await press(pilot, "escape", "h")
        await until_shown(pilot, "No searches yet.")
        await press(pilot, "escape")
        await paste(pilot, SHM)
        await press(pilot, "o", *"train.log", "enter")
        await until_shown(pilot, "Nothing known matches")
    async with start() as pilot:
        await press(pilot, "escape", "h")
        await until(pilot, lambda: isinstance(pilot.app.screen, HistoryScreen))
        assert "flux capacitor" in shown(pilot)
        assert "shm-too-small" in shown(pilot)
        await press(pilot, "down", "enter")
        await answered(pilot)
        assert pilot.app.query_one(PasteBox).text == SHM
        await press(pilot, "h")
        await until(pilot, lambda: isinstance(pilot.app.screen, HistoryScreen))
        assert shown(pilot).count("shm-too-small") == 1
        await press(pilot, "down", "enter")
        await until_shown(pilot, "Nothing known matches")


async def test_history_can_be_turned_off(start: Start, tmp_path: Path) -> None:
    async with start(history=False) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "h")
        await until_shown(pilot, "Searches are not saved")
    assert not list(tmp_path.glob("state/**/*.json"))


async def test_a_draft_is_completed_and_written(start: Start, tmp_path: Path) -> None:
    async with start() as pilot:
        await paste(pilot, UNKNOWN)
        await press(pilot, "n")
        await until(pilot, lambda: isinstance(pilot.app.screen, DraftScreen))
        draft = pilot.app.screen.query_one("#draft", TextArea)
        assert "flux capacitor" in draft.text
        assert draft.has_focus
        draft.insert("# mine\n", (0, 0))
        pilot.app.screen.query_one("#path", Input).value = str(tmp_path / "draft.md")
        await press(pilot, "ctrl+o")
        await until(pilot, lambda: "Written" in told(pilot))
        assert on_main(pilot)
    assert (tmp_path / "draft.md").read_text().startswith("# mine\n")


async def test_a_draft_that_cannot_be_written_stays(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with start() as pilot:
        await paste(pilot, UNKNOWN)
        await press(pilot, "n")
        await until(pilot, lambda: isinstance(pilot.app.screen, DraftScreen))
        pilot.app.screen.query_one("#path", Input).value = str(tmp_path / "file" / "draft.md")
        await press(pilot, "ctrl+o")
        await until_shown(pilot, "cannot write")
        assert isinstance(pilot.app.screen, DraftScreen)


async def test_a_draft_in_the_directory_of_the_team_is_found_by_the_next_search(
    start: Start, tmp_path: Path
) -> None:
    team = tmp_path / "team"
    team.mkdir()
    async with start(incidents=(str(team),)) as pilot:
        await paste(pilot, UNKNOWN)
        await until_shown(pilot, "Nothing known matches")
        await press(pilot, "n")
        await until(pilot, lambda: isinstance(pilot.app.screen, DraftScreen))
        await press(pilot, "ctrl+o")
        await until(pilot, lambda: "Written" in told(pilot))
        (record,) = team.glob("*.md")
        await paste(pilot, f"{UNKNOWN}\n")
        await until_shown(pilot, record.stem[:20])
        assert "Nothing known matches" not in shown(pilot)
