"""What can be done with an answer: evidence, steps, copies, the log, the conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from tests.tui.conftest import (
    SHM,
    UNKNOWN,
    WATCHDOG,
    Start,
    app_of,
    paste,
    press,
    shown,
    told,
    until,
    until_shown,
)
from tui.widgets.detail import Detail
from tui.widgets.log_view import LogView
from tui.widgets.match_list import MatchList
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import TalkInput


def _first(pilot: Pilot[int]) -> str:
    case = app_of(pilot).main.case
    assert case is not None
    return case.matches[0].incident.id


HIGH = (120, 60)
"""A terminal on which nothing of the detail is out of sight."""


@pytest.fixture
def last_copy(tmp_path: Path, small_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that holds what was copied last; no clipboard of the machine is touched."""
    for name in ("WAYLAND_DISPLAY", "DISPLAY", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    return small_cache / "last-copy.txt"


async def test_the_answer_says_all_there_is_to_know(start: Start) -> None:
    async with start(size=(120, 90)) as pilot:
        await paste(pilot, SHM)
        for text in (
            "shm-too-small",
            "NCCL cannot extend its shared memory segment because /dev/shm of",
            "Caution: The line says that the mount is full",
            "[1] line 2  by signature",
            "[2] line 4  by signature",
            "Symptom",
            "Environment",
            "Cause",
            "Fix  0 of 3 done",
            "Start the container again with more shared memory.",
            "docker run --gpus all --shm-size=16g <image>",
            "64M: make it larger.",
            "Verify",
            "References",
            "https://github.com/NVIDIA/nccl/issues/290",
        ):
            assert text in shown(pilot)


async def test_evidence_is_walked_through_in_the_log(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        view = pilot.app.query_one(LogView)
        assert "[1] 2 node-a" in shown(pilot)
        assert "[2] 4 node-a" in shown(pilot)
        seen = []
        for key in ("e", "e", "e", "E"):
            await press(pilot, key)
            seen.append(view.current)
        assert seen == [2, 4, 2, 4]
        assert ">[2] 4 " in shown(pilot)


async def test_on_a_small_screen_evidence_brings_the_log(start: Start) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, SHM)
        assert "1 step 12" not in shown(pilot)
        await press(pilot, "e")
        assert ">[1] 2 " in shown(pilot)
        await press(pilot, "escape")
        assert ">[1] 2 " not in shown(pilot)
        assert isinstance(pilot.app.focused, Detail)


async def test_the_log_takes_the_screen_and_gives_it_back(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "l")
        assert isinstance(pilot.app.focused, LogView)
        assert "Caution" not in shown(pilot)
        assert "step 12 loss 2.31" in shown(pilot)
        await press(pilot, "l")
        assert "Caution" in shown(pilot)
        assert isinstance(pilot.app.focused, Detail)


async def test_steps_are_walked_through_and_ticked(start: Start) -> None:
    async with start(size=HIGH) as pilot:
        await paste(pilot, SHM)
        assert "▸ [ ] 1." in shown(pilot)
        await press(pilot, "s")
        assert "▸ [ ] 1." in shown(pilot)
        await press(pilot, "s")
        assert "▸ [ ] 2." in shown(pilot)
        await press(pilot, "S", "S")
        assert "▸ [ ] 1." in shown(pilot)
        await press(pilot, "space")
        assert "  [x] 1." in shown(pilot)
        assert "▸ [ ] 2." in shown(pilot)
        assert "Fix  1 of 3 done" in shown(pilot)
        await press(pilot, "S", "space")
        assert "▸ [ ] 1." in shown(pilot)
        assert "Fix  0 of 3 done" in shown(pilot)


async def test_ticks_stay_with_their_incident(start: Start) -> None:
    async with start(size=HIGH) as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "]")
        await until_shown(pilot, "Fix  0 of 2 done")
        await press(pilot, "space")
        await press(pilot, "]")
        await until_shown(pilot, "Fix  0 of 2 done")
        await press(pilot, "[")
        await until_shown(pilot, "Fix  1 of 2 done")


async def test_a_step_out_of_sight_is_brought_into_view(start: Start) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, SHM)
        assert "Ask whoever owns the template" not in shown(pilot)
        await press(pilot, "s", "s", "s")
        await until_shown(pilot, "Ask whoever owns the template")


async def test_the_command_of_the_step_is_copied(start: Start, last_copy: Path) -> None:
    async with start(size=HIGH) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "s", "s", "c")
        await until(pilot, lambda: bool(told(pilot)))
        assert last_copy.read_text() == "docker run --gpus all --shm-size=16g <image>"
        assert "Sent to the terminal's clipboard" in told(pilot)
        assert str(last_copy) in told(pilot)
        await press(pilot, "s", "c")
        await until(pilot, lambda: "Step 3 has no command." in told(pilot))


@pytest.mark.slow
async def test_the_note_is_copied(start: Start, last_copy: Path) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "space", "C")
        await until(pilot, lambda: bool(told(pilot)))
        note = last_copy.read_text()
        assert "`shm-too-small`" in note
        assert "[x] Look at the size of the mount inside the container." in note
        assert "[ ] Start the container again" in note


async def test_a_question_is_answered_by_its_number(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        assert "Which of these does the job use?" in shown(pilot)
        assert "1 accelerate" in shown(pilot)
        assert "2 transformers" in shown(pilot)
        assert _first(pilot) == "watchdog-uneven-batches"
        await press(pilot, "2")
        await until(pilot, lambda: _first(pilot) == "watchdog-slow-checkpoint")
        await until_shown(pilot, "› transformers")
        await press(pilot, "u")
        await until_shown(pilot, "Undone: “transformers”.")
        assert _first(pilot) == "watchdog-uneven-batches"
        await until_shown(pilot, "Which of these does the job use?")


async def test_a_number_without_an_answer_does_nothing(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        before = shown(pilot)
        await press(pilot, "9")
        await pilot.pause()
        assert shown(pilot) == before


async def test_talking_in_words(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t")
        assert isinstance(pilot.app.focused, TalkInput)
        await press(pilot, *"help", "enter")
        await until_shown(pilot, "› help")
        await press(pilot, "enter")
        await press(pilot, *"at a checkpoint", "enter")
        await until_shown(pilot, "› at a checkpoint")
        case = app_of(pilot).main.case
        assert case is not None
        assert [turn.text for turn in case.conversation.turns if turn.speaker == "user"] == [
            "help",
            "at a checkpoint",
        ]
        await press(pilot, "escape")
        assert isinstance(pilot.app.focused, Detail)


async def test_on_a_small_screen_the_conversation_takes_the_place_of_the_detail(
    start: Start,
) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, WATCHDOG)
        assert "The log says" not in shown(pilot)
        await press(pilot, "t")
        assert "The log says" in shown(pilot)
        await press(pilot, "escape")
        assert "The log says" not in shown(pilot)


@pytest.mark.slow
async def test_a_step_that_was_told_of_is_ticked(start: Start) -> None:
    async with start(size=HIGH) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "t", *"I did step 1", "enter")
        await until_shown(pilot, "Fix  1 of 3 done")


@pytest.mark.slow
async def test_talking_goes_on_where_nothing_matches(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, UNKNOWN)
        assert isinstance(pilot.app.focused, Detail)
        await press(pilot, "t", *"failed to extend /dev/shm/nccl-x to 9 bytes", "enter")
        await until_shown(pilot, "shm-too-small")
        await until(pilot, lambda: pilot.app.query_one(MatchList).selected == "shm-too-small")


@pytest.mark.slow
async def test_before_the_first_search_the_keys_of_an_answer_do_no_harm(start: Start) -> None:
    async with start() as pilot:
        await press(pilot, "escape")
        before = shown(pilot)
        await press(pilot, *"eEsScCxtulrn9", "space")
        await pilot.pause()
        assert "Try it" in shown(pilot)
        assert before.splitlines()[3:-3] == shown(pilot).splitlines()[3:-3]
        await press(pilot, "1")
        await until(pilot, lambda: app_of(pilot).main.case is not None)


async def test_a_new_search_begins_anew(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "2")
        await until_shown(pilot, "› transformers")
        await press(pilot, "p")
        box = pilot.app.query_one(PasteBox)
        assert box.has_focus
        assert box.selected_text == WATCHDOG
        await paste(pilot, SHM)
        assert box.text == SHM
        assert "› transformers" not in shown(pilot)
        assert not pilot.app.query_one("#question", Static).display
