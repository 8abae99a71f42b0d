"""Going back, leaving, and what is asked before something is lost; sizes that do and do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from tests.tui.conftest import (
    SHM,
    UNKNOWN,
    WATCHDOG,
    Start,
    app_of,
    paste,
    press,
    shown,
    until,
    until_shown,
)
from tui.screens.confirm import ConfirmScreen
from tui.screens.draft import DraftScreen
from tui.widgets.detail import Detail
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import TalkInput

pytestmark = pytest.mark.slow


ASKED = "Quit and discard the text you typed?"


async def left(pilot: Pilot[int]) -> bool:
    """Whether the app has ended, with exit code 0."""
    await until(pilot, lambda: pilot.app.return_code is not None)
    return pilot.app.return_code == 0


async def test_q_leaves_from_the_list(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "q")
        assert await left(pilot)


async def test_q_in_a_box_is_a_letter(start: Start) -> None:
    async with start() as pilot:
        await press(pilot, "q")
        assert pilot.app.query_one(PasteBox).text == "q"
        await paste(pilot, SHM)
        await press(pilot, "t", "q")
        assert pilot.app.query_one("#say", TalkInput).value == "q"
        assert pilot.app.return_code is None


async def test_ctrl_c_leaves_from_the_box(start: Start) -> None:
    async with start() as pilot:
        await press(pilot, "ctrl+c")
        assert await left(pilot)


async def test_ctrl_c_leaves_from_a_dialog_with_a_path(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "x", "ctrl+c")
        assert await left(pilot)


@pytest.mark.parametrize("agreed", [False, True])
async def test_leaving_asks_where_something_is_typed(start: Start, agreed: bool) -> None:
    async with start() as pilot:
        await press(pilot, *"a draft", "ctrl+c")
        await until_shown(pilot, ASKED)
        if agreed:
            await press(pilot, "y")
            assert await left(pilot)
        else:
            await press(pilot, "n")
            assert pilot.app.return_code is None
            assert pilot.app.query_one(PasteBox).text == "a draft"


@pytest.mark.parametrize("key", ["ctrl+c", "q"])
async def test_who_says_it_again_leaves(start: Start, key: str) -> None:
    async with start() as pilot:
        await press(pilot, *"a draft", "ctrl+c")
        await until_shown(pilot, ASKED)
        await press(pilot, key)
        assert await left(pilot)


async def test_enter_on_the_question_stays(start: Start) -> None:
    async with start() as pilot:
        await press(pilot, *"a draft", "ctrl+c")
        await until_shown(pilot, ASKED)
        await press(pilot, "enter")
        assert pilot.app.screen is app_of(pilot).main
        await press(pilot, "ctrl+c")
        await until_shown(pilot, ASKED)
        await press(pilot, "right", "enter")
        assert await left(pilot)


async def test_what_was_searched_for_is_no_draft(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "p", "ctrl+c")
        assert not isinstance(pilot.app.screen, ConfirmScreen)


async def test_what_is_typed_into_the_conversation_is_a_draft(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t", *"we run", "escape", "q")
        await until_shown(pilot, ASKED)


async def test_going_back_from_a_draft_of_an_incident_asks(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, UNKNOWN)
        await press(pilot, "n")
        await until(pilot, lambda: isinstance(pilot.app.screen, DraftScreen))
        draft = pilot.app.screen
        draft.query_one("#draft", TextArea).insert("mine")
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await press(pilot, "n")
        assert pilot.app.screen is draft
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await press(pilot, "y")
        await until(pilot, lambda: pilot.app.screen is app_of(pilot).main)


async def test_a_draft_in_which_nothing_was_typed_is_left_without_a_question(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, UNKNOWN)
        await press(pilot, "n")
        await until(pilot, lambda: isinstance(pilot.app.screen, DraftScreen))
        await press(pilot, "escape")
        await until(pilot, lambda: pilot.app.screen is app_of(pilot).main)


async def test_esc_goes_back_one_level(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        for key in ("x", "slash", "h", "o", "b", "question_mark", "f1"):
            await press(pilot, key)
            await until(pilot, lambda: pilot.app.screen is not app_of(pilot).main)
            await press(pilot, "escape")
            assert pilot.app.screen is app_of(pilot).main, key
        await press(pilot, "t", "escape")
        assert pilot.app.query_one(Detail).has_focus
        await press(pilot, "l", "escape")
        assert pilot.app.query_one(Detail).has_focus
        await press(pilot, "escape")
        assert pilot.app.query_one(PasteBox).has_focus


async def test_help_opens_over_a_sheet_and_q_leaves_from_there(start: Start) -> None:
    async with start() as pilot:
        await press(pilot, "escape", "o", "f1")
        assert "Show all keys." in shown(pilot)
        await press(pilot, "q")
        assert await left(pilot)


async def test_an_action_is_found_by_its_name(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "ctrl+p", *"browse")
        await until_shown(pilot, "Search and filter all records.")
        await press(pilot, "enter")
        await until_shown(pilot, "4 of 4 records")


@pytest.mark.parametrize("size", [(59, 30), (100, 19), (20, 5)])
async def test_a_terminal_that_is_too_small_is_told(start: Start, size: tuple[int, int]) -> None:
    async with start(size=size) as pilot:
        said = " ".join(shown(pilot).split())
        assert said == "kb needs 60 columns and 20 lines."
        await pilot.resize_terminal(60, 20)
        await until_shown(pilot, "Paste the error.")


async def test_the_answer_survives_every_size(start: Start) -> None:
    async with start(size=(200, 50)) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "s", "s")
        for size in ((80, 24), (40, 10), (60, 20), (120, 34), (200, 50)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            rows = shown(pilot).splitlines()
            assert len(rows) == size[1]
            if size != (40, 10):
                assert "● Match" in shown(pilot)
                assert "NCCL cannot extend its shared memory" in shown(pilot)
        assert "▸ [ ] 2." in shown(pilot)


async def test_a_log_that_is_typed_over_is_asked_about_again(start: Start, tmp_path: Path) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "p", *"Watchdog", "enter")
        await until(pilot, lambda: "● Match" not in shown(pilot))
        assert pilot.app.query_one(PasteBox).text == "Watchdog"
