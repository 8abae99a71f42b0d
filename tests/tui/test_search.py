"""A text goes in, an answer comes out: the box, the keys that search, what replaces what."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.service.input import UserInput
from tests.tui.conftest import (
    FOLLOW_ON,
    HEALTHY,
    SHM,
    UNKNOWN,
    WATCHDOG,
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
from tui.screens.pick import PickScreen
from tui.widgets.detail import Detail
from tui.widgets.paste_box import PasteBox

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("1", "nccl-shm-too-small-container"),
        ("2", "Which of these does the job use?"),
        ("3", "gpt-fast-intra-node-comm-hang"),
    ],
)
async def test_the_samples_of_the_tour(start_shipped: Start, key: str, answer: str) -> None:
    async with start_shipped() as pilot:
        assert "Try it" in shown(pilot)
        await press(pilot, key)
        await answered(pilot)
        await until_shown(pilot, answer)


async def test_a_number_is_a_number_once_something_is_typed(start: Start) -> None:
    async with start() as pilot:
        await press(pilot, "x", "1")
        assert pilot.app.query_one(PasteBox).text == "x1"
        assert app_of(pilot).main.case is None


async def test_a_paste_is_searched_for_by_itself(start: Start) -> None:
    async with start() as pilot:
        assert isinstance(pilot.app.focused, PasteBox)
        await paste(pilot, SHM)
        assert "● Match" in shown(pilot)
        assert "shm-too-small" in shown(pilot)
        assert "4 records, offline" in shown(pilot)
        assert isinstance(pilot.app.focused, Detail)


async def test_a_paste_in_parts_is_one_text(start: Start) -> None:
    async with start() as pilot:
        box = pilot.app.query_one(PasteBox)
        for line in SHM.splitlines(keepends=True):
            box.take(line)
        await answered(pilot)
        assert box.text == SHM
        assert "shm-too-small" in shown(pilot)


async def test_a_paste_with_the_list_focused_is_a_new_search(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        assert isinstance(pilot.app.focused, Detail)
        await paste(pilot, WATCHDOG)
        assert "watchdog-uneven-batches" in shown(pilot)
        assert pilot.app.query_one(PasteBox).text == WATCHDOG


@pytest.mark.parametrize("key", ["ctrl+j", "alt+enter", "shift+enter"])
async def test_what_is_typed_is_searched_for_with_enter(start: Start, key: str) -> None:
    async with start() as pilot:
        await press(pilot, *"Watchdog caught", key, *"timeout")
        assert app_of(pilot).main.case is None
        await press(pilot, "enter")
        await answered(pilot)
        case = app_of(pilot).main.case
        assert case is not None
        assert case.user_input.text == "Watchdog caught\ntimeout"


async def test_nothing_typed_is_not_searched_for(start: Start) -> None:
    async with start() as pilot:
        await press(pilot, "space", "ctrl+j", "enter")
        await pilot.pause(0.2)
        assert app_of(pilot).main.case is None
        assert "Try it" in shown(pilot)


async def test_a_newer_search_replaces_an_older_one(start: Start, tmp_path: Path) -> None:
    long = tmp_path / "long.log"
    long.write_text(f"{WATCHDOG}\n" * 400_000)
    async with start() as pilot:
        main = app_of(pilot).main
        main.ask(UserInput(paths=(long,), name=str(long)))
        await pilot.pause()
        main.ask(UserInput(text=SHM))
        await answered(pilot)
        assert main.case is not None
        assert main.case.user_input.text == SHM
        await pilot.app.workers.wait_for_complete()
        assert main.case.user_input.text == SHM
        assert "shm-too-small" in shown(pilot)
        assert not told(pilot)


async def test_typing_while_the_index_loads_loses_nothing(start: Start) -> None:
    async with start(loaded=False) as pilot:
        await press(pilot, *"Watchdog caught", "enter")
        assert pilot.app.query_one(PasteBox).text == "Watchdog caught"
        await answered(pilot)
        assert "The NCCL watchdog fires" in shown(pilot)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("".join(f"step {n}\n" for n in range(6_000)) + SHM, "6,004 lines"),
        ("step " + "x" * 1_000_100 + "\n" + SHM, "5 lines"),
        ("x" * 30_000 + "\n" + SHM, "5 lines"),
    ],
    ids=["many lines", "many characters", "a long line"],
)
async def test_a_large_paste_is_shown_as_a_log(start: Start, text: str, lines: str) -> None:
    async with start() as pilot:
        await paste(pilot, text)
        assert pilot.app.query_one(PasteBox).text == ""
        await until_shown(pilot, lines)
        assert "pasted log" in shown(pilot)
        assert "shm-too-small" in shown(pilot)


async def test_a_file_is_diagnosed_from_the_start(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(SHM)
    async with start(user_input=UserInput(paths=(log,), name="train.log")) as pilot:
        await until_shown(pilot, "shm-too-small")
        assert "4 lines" in shown(pilot)


async def test_a_log_is_opened_by_its_path(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(SHM)
    async with start() as pilot:
        await press(pilot, "escape", "o")
        assert isinstance(pilot.app.screen, PickScreen)
        await press(pilot, *"nowhere", "enter")
        assert "No such file or directory." in shown(pilot)
        await press(pilot, *["backspace"] * 7, *"train.log", "enter")
        await answered(pilot)
        assert "shm-too-small" in shown(pilot)


async def test_a_log_is_opened_from_the_tree(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(SHM)
    async with start() as pilot:
        await press(pilot, "escape", "o", "tab")
        await until_shown(pilot, "train.log")
        await press(pilot, "down", "enter")
        await answered(pilot)
        assert "shm-too-small" in shown(pilot)


async def test_a_log_that_cannot_be_read_is_told_and_the_answer_stays(
    start: Start, tmp_path: Path
) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        app_of(pilot).main.ask(UserInput(paths=(tmp_path / "gone.log",), name="gone.log"))
        await until(pilot, lambda: "gone.log" in told(pilot))
        assert "no such file" in told(pilot).lower()
        assert "shm-too-small" in shown(pilot)
        assert "reading" not in shown(pilot)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (UNKNOWN, ["○ Unknown", "Nothing known matches", "press n to", "Closest records"]),
        (HEALTHY, ["✓ Healthy", "The log shows no failure"]),
        (FOLLOW_ON, ["◐ Possible", "Only follow-on errors", "peer-gone (follow-on error, line 1)"]),
    ],
    ids=["unknown", "healthy", "follow-on"],
)
async def test_states_are_told(start: Start, text: str, sentences: list[str]) -> None:
    async with start() as pilot:
        await paste(pilot, text)
        for sentence in sentences:
            assert sentence in shown(pilot)
        await press(pilot, "e")
        assert "No line of the log supports this incident." in told(pilot)
        await press(pilot, "space", "c", "s")


async def test_an_empty_log_is_told(start: Start, tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    async with start(
        user_input=UserInput(paths=(tmp_path / "empty.log",), name="empty.log")
    ) as pilot:
        await until_shown(pilot, "The input is empty")


async def test_one_line_is_one_line(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await until_shown(pilot, " 1 line ─")


async def test_after_a_wrong_path_the_screen_says_again_what_it_shows(
    start: Start, tmp_path: Path
) -> None:
    wrong = UserInput(paths=(tmp_path / "gone.log",), name="gone.log")
    async with start() as pilot:
        main, box = app_of(pilot).main, pilot.app.query_one(PasteBox)
        main.ask(wrong)
        await until(pilot, lambda: "gone.log" in told(pilot))
        assert box.placeholder == ""
        await paste(pilot, SHM)
        main.ask(wrong)
        await until(pilot, lambda: told(pilot).count("gone.log") == 2)
        assert box.text == SHM
        assert "4 records, offline" in shown(pilot)
