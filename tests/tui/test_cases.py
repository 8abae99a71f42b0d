"""Several cases at once: each keeps what is its own, and one of them is on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from kb.service.input import UserInput
from kb.sessions import Session, Sessions
from kb.settings import Settings
from tests.tui.conftest import (
    SHM,
    UNKNOWN,
    WATCHDOG,
    Start,
    answered,
    app_of,
    paste,
    press,
    settle,
    shown,
    told,
    until,
    until_shown,
)
from tests.tui.test_hostile import HOSTILE, assert_harmless
from tui.case import Case
from tui.screens.confirm import ConfirmScreen
from tui.widgets.case_bar import CaseBar
from tui.widgets.detail import Detail
from tui.widgets.log_view import LogView
from tui.widgets.match_list import MatchList
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import TalkInput

pytestmark = pytest.mark.slow

STEPS = "".join(f"step {number} loss 2.31\n" for number in range(1, 3001))
ERROR = "node-a:1:2 [3] NCCL WARN Error: failed to extend /dev/shm/nccl-c7XQ2w to 4096 bytes\n"


def current(pilot: Pilot[int]) -> Case:
    """The case on the screen."""
    case = app_of(pilot).main.case
    assert case
    return case


def texts(pilot: Pilot[int]) -> list[str]:
    """What each open case is about, by number."""
    return [case.user_input.text for case in app_of(pilot).main.cases]


def bar(pilot: Pilot[int]) -> str:
    """The line of the cases; nothing where there is none."""
    found = pilot.app.screen.query_one(CaseBar)
    return shown(pilot).splitlines()[found.region.y] if found.display else ""


def said(case: Case) -> list[str]:
    return [turn.text for turn in case.conversation.turns if turn.speaker == "user"]


def kept() -> list[Session]:
    return Sessions(Settings(), pytest.fail).all()


async def turn(pilot: Pilot[int], key: str = "greater_than_sign") -> None:
    """Go to another case, and wait for it."""
    before = current(pilot).key
    await press(pilot, key)
    await until(pilot, lambda: current(pilot).key != before and not app_of(pilot).main.is_drawing)
    await settle(pilot)


async def two(pilot: Pilot[int]) -> None:
    """One with a step that is ticked, and another on the screen."""
    await paste(pilot, SHM)
    await press(pilot, "space")
    await paste(pilot, WATCHDOG)


async def test_who_only_looks_around_has_one_case(start: Start) -> None:
    async with start() as pilot:
        for text in (SHM, UNKNOWN, WATCHDOG):
            await paste(pilot, text)
        assert texts(pilot) == [WATCHDOG]
        assert not bar(pilot)
        await press(pilot, "greater_than_sign")
        await until(pilot, lambda: "There is no other case." in told(pilot))
        await press(pilot, "D")
        await until(pilot, lambda: told(pilot).count("There is no other case.") == 2)


async def test_a_question_after_something_was_ticked_opens_a_further_case(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        assert texts(pilot) == [SHM, WATCHDOG]
        assert " 1 step 12 loss 2.31" in bar(pilot)
        assert "▸2 [rank1]:[E ProcessGroupNCCL" in bar(pilot)
        assert "> F9 next case" in bar(pilot)
        assert "watchdog-uneven-batches" in shown(pilot)


async def test_a_click_on_a_case_brings_it(start: Start) -> None:
    async with start(keys={"next_case": "f6"}) as pilot:
        await two(pilot)
        assert "f6 next case" in bar(pilot)
        await pilot.click(CaseBar, offset=(bar(pilot).index("step 12"), 0))
        await until(pilot, lambda: "▸1 step 12" in bar(pilot))
        await pilot.click(CaseBar, offset=(bar(pilot).index("next case"), 0))
        await settle(pilot)
        assert current(pilot).user_input.text == SHM


@pytest.mark.parametrize("key", ["greater_than_sign", "less_than_sign", "f8", "f9"])
async def test_each_case_is_as_it_was_left(start: Start, key: str) -> None:
    async with start(size=(120, 60)) as pilot:
        await two(pilot)
        await press(pilot, "2")
        await until_shown(pilot, "› transformers")
        await press(pilot, "]")
        await settle(pilot)
        selected = pilot.app.query_one(MatchList).selected
        await turn(pilot, key)
        await until_shown(pilot, "Fix  1 of 3 done")
        assert "▸1 step 12" in bar(pilot)
        assert "› transformers" not in shown(pilot)
        assert pilot.app.query_one(PasteBox).text == SHM
        assert "4 node-a:121:1530" in shown(pilot)
        await turn(pilot, key)
        await until_shown(pilot, "› transformers")
        assert pilot.app.query_one(MatchList).selected == selected
        assert "Fix  1 of 3 done" not in shown(pilot)
        assert pilot.app.query_one(PasteBox).text == WATCHDOG


async def test_what_comes_after_switching_belongs_to_its_case(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        main, asked = app_of(pilot).main, current(pilot).key
        main.action_answer("2")
        main.action_next_case()
        await until(pilot, lambda: said(main.cases.find(asked) or current(pilot)) != [])
        await settle(pilot)
        assert current(pilot).user_input.text == SHM
        assert not said(current(pilot))
        assert "› transformers" not in shown(pilot)
        await turn(pilot)
        assert said(current(pilot)) == ["transformers"]
        await until_shown(pilot, "› transformers")


async def test_what_was_sent_just_before_switching_is_said_where_it_was_typed(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        main, asked = app_of(pilot).main, current(pilot).key
        await press(pilot, "t", *"at a checkpoint", "enter", "f9")
        await until(pilot, lambda: said(main.cases.find(asked) or current(pilot)) != [])
        await settle(pilot)
        assert current(pilot).key != asked
        assert not said(current(pilot))
        assert not pilot.app.query_one(TalkInput).text


async def test_what_is_typed_and_not_sent_stays_in_its_case(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        await press(pilot, "t", *"half a sent")
        await turn(pilot, "f8")
        box = pilot.app.query_one(TalkInput)
        assert box.has_focus
        assert not box.text
        await press(pilot, *"other")
        await turn(pilot, "f9")
        assert box.text == "half a sent"
        await press(pilot, *"ence", "enter")
        await until(pilot, lambda: said(current(pilot)) == ["half a sentence"])
        assert app_of(pilot).main.is_draft
        await turn(pilot, "f9")
        assert box.text == "other"


async def test_a_diagnosis_that_comes_after_switching_takes_no_screen_away(
    start: Start, tmp_path: Path
) -> None:
    long = tmp_path / "long.log"
    long.write_text("step of many words, none of which tells of anything\n" * 300_000 + ERROR)
    async with start() as pilot:
        await two(pilot)
        await press(pilot, "2")
        await until_shown(pilot, "› transformers")
        main = app_of(pilot).main
        main.ask(UserInput(paths=(long,), name=str(long)))
        main.action_previous_case()
        await until(pilot, lambda: len(main.cases) == 3)
        assert current(pilot).user_input.text == SHM
        await until(pilot, lambda: "Case 3 is ready: " in told(pilot))
        assert "▸1 step 12" in bar(pilot)
        assert pilot.app.query_one(PasteBox).text == SHM
        await turn(pilot, "less_than_sign")
        await until_shown(pilot, "300,001 lines")
        assert "shm-too-small" in shown(pilot)


async def test_the_log_is_where_one_was_reading(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(STEPS + ERROR)
    async with start(user_input=UserInput(paths=(log,), name=str(log))) as pilot:
        await answered(pilot)
        await press(pilot, "space")
        view = pilot.app.query_one(LogView)
        await until(pilot, lambda: view.first_seen > 2900)  # the decisive line
        view.jump(1500)
        await until_shown(pilot, ">    1500 step 1500")
        lines = view.lines
        await paste(pilot, WATCHDOG)
        await turn(pilot)
        log.unlink()
        await until_shown(pilot, ">    1500 step 1500")
        first = view.first_seen
        assert view.lines is lines
        assert "3,001 lines" in shown(pilot)
        await turn(pilot)
        await turn(pilot)
        assert view.first_seen == first


async def test_a_log_that_is_gone_before_it_is_shown_is_told(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(STEPS + ERROR)
    async with start() as pilot:
        await two(pilot)
        await press(pilot, "t", *"typing")
        main = app_of(pilot).main
        main.ask(UserInput(paths=(log,), name=str(log)))
        await until(pilot, lambda: len(main.cases) == 3 and "is ready" in told(pilot))
        assert pilot.app.query_one(TalkInput).text == "typing"
        log.unlink()
        await turn(pilot, "f9")
        await until(pilot, lambda: "train.log" in told(pilot).splitlines()[-1])


async def test_a_case_is_closed_and_can_be_brought_back(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        await turn(pilot)
        await press(pilot, "D")
        await until(pilot, lambda: "kb --resume " in told(pilot))
        assert texts(pilot) == [WATCHDOG]
        assert not bar(pilot)
        await until_shown(pilot, "watchdog-uneven-batches")
        identifier = told(pilot).partition("kb --resume ")[2].split()[0]
        app_of(pilot).keeper.close()
    closed = Sessions(Settings(), pytest.fail).find(identifier)
    assert closed.text == SHM
    assert closed.done == (("shm-too-small", 0),)


async def test_closing_a_case_with_nothing_in_it_says_nothing(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        await press(pilot, "D")
        await until(pilot, lambda: texts(pilot) == [SHM])
        await until_shown(pilot, "Fix  1 of 3 done")
        assert not told(pilot)


@pytest.mark.parametrize("agreed", [False, True])
async def test_closing_asks_where_the_case_is_not_kept(start: Start, agreed: bool) -> None:
    async with start(history=False) as pilot:
        await two(pilot)
        await turn(pilot)
        await press(pilot, "D")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await press(pilot, "y" if agreed else "n")
        await until(pilot, lambda: pilot.app.screen is app_of(pilot).main)
        await settle(pilot)
        assert texts(pilot) == ([WATCHDOG] if agreed else [SHM, WATCHDOG])


async def test_the_tenth_case_takes_the_place_of_the_one_not_used_for_longest(start: Start) -> None:
    async with start(size=(80, 24)) as pilot:
        for number in range(9):
            await paste(pilot, f"{SHM}\nnumber {number}")
            await press(pilot, "space")
        assert len(texts(pilot)) == 9
        assert "▸9 " in bar(pilot)
        await turn(pilot)  # from the ninth to the first, so that the second is the oldest
        await paste(pilot, WATCHDOG)
        assert len(texts(pilot)) == 9
        assert texts(pilot)[1] == WATCHDOG
        assert "number 0" in texts(pilot)[0]
        await until(pilot, lambda: "9 cases are open: " in told(pilot))
        identifier = told(pilot).partition("kb --resume ")[2].split()[0]
        app_of(pilot).keeper.close()
    assert "number 1" in Sessions(Settings(), pytest.fail).find(identifier).text


async def test_each_case_is_kept_by_itself(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        await press(pilot, "t", *"at a checkpoint", "enter")
        await until(pilot, lambda: said(current(pilot)) == ["at a checkpoint"])
        await turn(pilot, "f9")
        await press(pilot, "escape", "t", *"also with gloo", "enter")
        await until(pilot, lambda: said(current(pilot)) == ["also with gloo"])
        app_of(pilot).keeper.close()
    newest, other = kept()
    assert (newest.text, newest.messages) == (SHM, ("also with gloo",))
    assert newest.done == (("shm-too-small", 0),)
    assert (other.text, other.messages, other.done) == (WATCHDOG, ("at a checkpoint",), ())


async def test_what_was_ticked_last_is_brought_back_first(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        await turn(pilot)
        await until_shown(pilot, "Fix  1 of 3 done")
        await press(pilot, "s", "s", "space")
        await until(pilot, lambda: len(current(pilot).done) == 2)
        app_of(pilot).keeper.close()
    newest = Sessions(Settings(), pytest.fail).last()
    assert newest is not None
    assert newest.text == SHM


async def test_a_log_that_is_followed_goes_on_in_its_own_case(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(STEPS)
    followed = UserInput(paths=(log,), name=str(log), followed=True)
    async with start(user_input=followed) as pilot:
        await answered(pilot)
        await paste(pilot, WATCHDOG)
        assert len(texts(pilot)) == 2
        assert "following" not in shown(pilot)
        with log.open("a") as file:
            file.write(ERROR)
        await until(pilot, lambda: "New errors in case 1: " in told(pilot))
        assert "watchdog-uneven-batches" in shown(pilot)
        assert len(texts(pilot)) == 2
        await turn(pilot)
        await until_shown(pilot, "following")
        await press(pilot, "f5")
        await until_shown(pilot, "shm-too-small")
        await until_shown(pilot, "following")
        with log.open("a") as file:
            file.write(ERROR)
        await until_shown(pilot, "3,002 lines")


async def test_titles_are_shown_as_text(start: Start, tmp_path: Path) -> None:
    name = "[@click=app.quit]\x1b[31m\u202e[b]显存不足.log"
    (tmp_path / name).write_text(SHM)
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, HOSTILE)
        await press(pilot, "space")
        app_of(pilot).main.ask(UserInput(paths=(Path(name),), name=name))
        await until(pilot, lambda: len(texts(pilot)) == 2)
        await settle(pilot)
        assert_harmless(bar(pilot))
        assert " 1 [bold red]" in bar(pilot)
        assert "▸2 [@click=app" in bar(pilot)
        assert "显存不足.log" in bar(pilot)
        assert cell_len(bar(pilot)) <= 80
        assert pilot.app.return_code is None


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (60, 20)])
async def test_the_bar_is_one_line_in_a_terminal_of_any_size(
    start: Start, size: tuple[int, int]
) -> None:
    async with start(size=size) as pilot:
        for number in range(9):
            await paste(pilot, f"{number} 显存不足 {SHM}")
            await press(pilot, "space")
        for number in range(1, 10):
            assert f"{number} " in bar(pilot)
        assert "▸9" in bar(pilot)
        assert cell_len(bar(pilot)) <= size[0]
        assert pilot.app.query_one(CaseBar).size.height == 1
        assert len(shown(pilot).splitlines()) == size[1]
        assert "● Match" in shown(pilot)
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert "▸9" in bar(pilot)
        assert cell_len(bar(pilot)) <= 60


async def test_a_key_after_switching_is_meant_for_the_other_case(start: Start) -> None:
    async with start() as pilot:
        await two(pilot)
        first, second = app_of(pilot).main.cases
        await press(pilot, "greater_than_sign", "space")
        await until(pilot, lambda: len(current(pilot).done) == 2)
        assert current(pilot).key == first.key
        other = app_of(pilot).main.cases.find(second.key)
        assert other is not None
        assert not other.done
        await press(pilot, "f9")
        assert isinstance(pilot.app.focused, Detail)
