"""Nothing is lost when the user is faster than the answers."""

from __future__ import annotations

import pytest

from kb.service.input import UserInput
from tests.tui.conftest import SHM, WATCHDOG, Start, app_of, paste, settle, until, until_shown
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import Talk, TalkInput

pytestmark = pytest.mark.slow


async def test_two_things_said_at_once_are_both_heard(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        main = app_of(pilot).main
        assert main.case is not None
        for text in ("only with 2 nodes", "what did I tell you?"):
            main.query_one(Talk).post_message(TalkInput.Said(main.case.key, text))
        await until_shown(pilot, "› what did I tell you?")
        case = app_of(pilot).main.case
        assert case is not None
        assert "only with 2 nodes" in case.conversation.turns[-1].text


async def test_what_is_said_of_one_case_stays_there(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        main = app_of(pilot).main
        first = main.case
        assert first is not None
        main.query_one(Talk).post_message(TalkInput.Said(first.key, "only with 2 nodes"))
        main.query_one(PasteBox).take(SHM)
        await until(pilot, lambda: main.case is not None and main.case.user_input.text == SHM)
        await settle(pilot)
        assert main.case is not None
        assert main.case.user_input.text == SHM
        assert len(main.case.conversation.turns) == 1
        heard = main.cases.find(first.key)
        assert heard is not None
        assert "only with 2 nodes" in [turn.text for turn in heard.conversation.turns]


async def test_an_answer_neither_takes_nor_changes_the_box_of_who_types(start: Start) -> None:
    async with start() as pilot:
        main = app_of(pilot).main
        main.ask(UserInput(text=SHM))
        main.query_one(PasteBox).insert("and another thing")
        await until(pilot, lambda: main.case is not None)
        await settle(pilot)
        assert main.focused is main.query_one(PasteBox)
        assert main.query_one(PasteBox).text == "and another thing"
