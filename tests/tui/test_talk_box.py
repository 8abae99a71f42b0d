"""The box of the conversation, which is a chat box."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

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
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import TalkInput

pytestmark = pytest.mark.slow

DF = """Filesystem      Size  Used Avail Use% Mounted on
shm              64M   64M     0 100% /dev/shm
tmpfs            26G     0   26G   0% /run
tmpfs            26G     0   26G   0% /tmp
/dev/sda1       900G  120G  780G  14% /"""


def box_of(pilot: Pilot[int]) -> TalkInput:
    """The box."""
    return pilot.app.query_one(TalkInput)


def said(pilot: Pilot[int]) -> list[str]:
    """What the user said so far."""
    case = app_of(pilot).main.case
    assert case is not None
    return [turn.text for turn in case.conversation.turns if turn.speaker == "user"]


def paste_here(pilot: Pilot[int], text: str) -> None:
    """Paste where the user is."""
    app_of(pilot).post_message(events.Paste(text.replace("\n", "\r")))


async def test_a_paste_of_many_lines_is_one_message_shown_folded(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t", *"here: ")
        paste_here(pilot, DF)
        await until_shown(pilot, "here: [pasted 5 lines]")
        await press(pilot, "enter")
        await until(pilot, lambda: said(pilot) == [f"here: {DF}"])
        await until_shown(pilot, "› pasted 5 lines: here: Filesystem")
        assert "/dev/sda1" not in shown(pilot)


async def test_a_paste_of_a_line_stands_in_the_box_as_it_is(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t")
        paste_here(pilot, "at a \x1b[31mcheckpoint\x1b[0m")
        await until(pilot, lambda: box_of(pilot).text == "at a checkpoint")


async def test_two_pastes_stay_two(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t")
        paste_here(pilot, DF)
        paste_here(pilot, DF.replace("64M", "16G"))
        await until(pilot, lambda: box_of(pilot).text == "[pasted 5 lines][pasted 5 lines, 2]")
        assert box_of(pilot).value == DF + DF.replace("64M", "16G")


async def test_lines_of_a_terminal_that_does_not_mark_pastes_are_one_message(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t")
        for key in [*"one", "enter", *"two", "enter"]:
            app_of(pilot).post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: said(pilot) == ["one\ntwo"])


async def test_up_brings_back_what_was_said_and_down_what_came_after(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t")
        for text in ("why?", "help"):
            await press(pilot, *text, "enter")
            await until_shown(pilot, f"› {text}")
        await press(pilot, "up")
        assert box_of(pilot).text == "help"
        await press(pilot, "up", "up")
        assert box_of(pilot).text == "why?"
        await press(pilot, "down")
        assert box_of(pilot).text == "help"
        await press(pilot, "down")
        assert box_of(pilot).text == ""


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_key_begins_a_line(start: Start, key: str) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t", *"a", key, *"b")
        assert box_of(pilot).text == "a\nb"


async def test_a_paste_that_is_a_log_of_its_own_is_refused_and_told(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "t")
        paste_here(pilot, f"{SHM}\n" * 3_000)
        await until(pilot, lambda: "too long for a message" in told(pilot))
        assert box_of(pilot).text == ""


async def test_suggestions_fit_the_case(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        assert "step 1 done" in shown(pilot)
        assert "why not 2?" not in shown(pilot)
        await paste(pilot, WATCHDOG)
        assert "answer 1-" in shown(pilot)
        await paste(pilot, UNKNOWN)
        assert "step 1 done" not in shown(pilot)


async def test_a_question_typed_with_enter_is_asked(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        assert pilot.app.query_one(PasteBox).text == SHM
        await press(pilot, "p", *"watchdog timeout", "enter")
        await until_shown(pilot, "watchdog-uneven-batches")
        case = app_of(pilot).main.case
        assert case is not None
        assert case.user_input.text == "watchdog timeout"
