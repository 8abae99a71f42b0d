"""A log is searched, filtered, wrapped and followed as it lies on the screen."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kb.service.input import UserInput
from tests.tui.conftest import (
    SHM,
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
from tui.screens.browse import BrowseScreen
from tui.widgets.log_view import LogView

pytestmark = pytest.mark.slow

ERROR = SHM.splitlines()[1]
STEPS = "".join(
    f"2026-11-21 02:{n // 60:02}:{n % 60:02} [rank{n % 4}] INFO step {n} loss 2.{n % 97:02}\n"
    for n in range(1, 3001)
)


def of_file(path: Path, *, followed: bool = False) -> UserInput:
    return UserInput(paths=(path,), name=path.name, followed=followed)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    lines = STEPS.splitlines()
    lines[2000] = f"{lines[2000]} {'.' * 300} gradient spike"
    lines[2500] = ERROR
    path.write_text("\n".join(lines) + "\n")
    return path


async def reading(pilot: Pilot[int]) -> LogView:
    """Wait for the answer, and give the log the whole screen."""
    await answered(pilot)
    await press(pilot, "l")
    view = pilot.app.query_one(LogView)
    await until(pilot, lambda: view.has_focus)
    return view


def at(view: LogView, line: int) -> bool:
    return view.current == line


async def typed(pilot: Pilot[int], key: str, text: str) -> None:
    await press(pilot, key)
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    app_of(pilot).main.query_one(f"#{pilot.app.focused.id}", Input).value = text  # type: ignore[union-attr]
    await press(pilot, "enter")
    await settle(pilot)


async def test_a_search_goes_to_the_words_however_far_to_the_right(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        view = await reading(pilot)
        await typed(pilot, "slash", "Spike")
        await until(pilot, lambda: 'No line has "Spike"' in told(pilot))
        await typed(pilot, "slash", "spike")
        await until(pilot, lambda: view.current == 2001)
        await until_shown(pilot, "gradient spike")
        await until_shown(pilot, '1 with "spike"')
        assert "/ search" in shown(pilot)


async def test_next_and_previous_line_with_the_words(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        view = await reading(pilot)
        await press(pilot, "g")
        await typed(pilot, "slash", "loss 2.42")
        for key, line in (("n", 139), ("n", 236), ("N", 139), ("N", 42), ("N", 2952), ("n", 42)):
            await press(pilot, key)
            await until(pilot, partial(at, view, line))


async def test_the_records_are_opened_outside_of_the_log(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        await answered(pilot)
        await press(pilot, "slash")
        await until(pilot, lambda: isinstance(pilot.app.screen, BrowseScreen))


async def test_a_search_that_is_given_up(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        view = await reading(pilot)
        await press(pilot, "slash", "q", "escape")
        assert view.has_focus
        assert pilot.app.return_code is None


async def test_errors_are_gone_through(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        view = await reading(pilot)
        await press(pilot, "g", "right_square_bracket")
        await until(pilot, lambda: view.current == 2501)
        await press(pilot, "left_square_bracket")
        await settle(pilot)
        assert view.current == 2501


async def test_only_lines_of_a_rank(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        view = await reading(pilot)
        await typed(pilot, "f", "rank 2, step 20")
        await until_shown(pilot, "lines: rank 2, step 20")
        await until_shown(pilot, "step 2002 ")
        rows = [row for row in shown(pilot).splitlines() if " INFO " in row]
        assert rows
        assert all("[rank2]" in row and "step 20" in row for row in rows)
        await typed(pilot, "f", "")
        await until_shown(pilot, "[rank1]")
        assert view.current is None


async def test_what_was_searched_and_filtered_stays_with_its_case(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        await answered(pilot)
        await press(pilot, "space")
        view = await reading(pilot)
        await typed(pilot, "f", "rank 2, step 2")
        await typed(pilot, "slash", "loss 2.4")
        seen = '278 of 3,000 lines: rank 2, step 2, 29 with "loss 2.4"'
        await until_shown(pilot, seen)
        current, first = view.current, view.first_seen
        await paste(pilot, WATCHDOG)
        await until(pilot, lambda: "rank 2, step" not in shown(pilot))
        assert not view.words
        await press(pilot, "f8")
        await until_shown(pilot, seen)
        assert (view.current, view.first_seen) == (current, first)
        view.focus()
        await press(pilot, "n")
        await until(pilot, lambda: view.current not in (None, current))


async def test_only_errors_and_nothing(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        await reading(pilot)
        await typed(pilot, "f", "errors")
        await until_shown(pilot, "1 of 3,000 lines: error")
        await until_shown(pilot, "2501 node-a")
        await typed(pilot, "f", "rank 9")
        await until_shown(pilot, "[no line is like this]")
        await press(pilot, "escape", "e")
        await until_shown(pilot, "3,000 lines")
        await until_shown(pilot, "2501 node-a")


async def test_of_a_job_the_file_of_a_rank_is_shown(start: Start, tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    for rank in range(4):
        (job / f"rank{rank}.log").write_text(f"hello from {rank}\n{ERROR if rank == 3 else 'ok'}\n")
    async with start(user_input=of_file(job)) as pilot:
        await reading(pilot)
        await typed(pilot, "f", "rank 2")
        await until_shown(pilot, "hello from 2")
        await press(pilot, "right_curly_bracket")
        assert "There is no other file." in told(pilot)
        await typed(pilot, "f", "")
        await press(pilot, "right_curly_bracket")
        await until_shown(pilot, "hello from 3")
        await press(pilot, "left_curly_bracket", "left_curly_bracket")
        await until_shown(pilot, "hello from 1")


async def test_long_lines_are_wrapped(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        view = await reading(pilot)
        await press(pilot, "w")
        view.jump(2001)
        await until_shown(pilot, "gradient spike")
        rows = shown(pilot).splitlines()
        first = next(n for n, row in enumerate(rows) if "2001" in row)
        assert "2002" in rows[first + 4]
        await press(pilot, "G")
        await until_shown(pilot, " 3000 ")
        await press(pilot, "g")
        await until_shown(pilot, " 1 2026")


async def test_what_is_appended_is_seen_at_the_end(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        await reading(pilot)
        await press(pilot, "G")
        with log.open("a") as file:
            file.write("one more\n")
        await until_shown(pilot, "3001 one more")
        await until_shown(pilot, "3,001 lines")


async def test_a_log_that_begins_anew_is_read_anew(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log)) as pilot:
        await reading(pilot)
        other = log.with_suffix(".new")
        other.write_text("after the rotation\n")
        os.replace(other, log)  # noqa: PTH105
        await until_shown(pilot, "1 after the rotation")


async def test_a_followed_job_is_diagnosed_again_when_a_rank_fails(
    start: Start, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    job.mkdir()
    (job / "rank0.log").write_text(STEPS)
    async with start(user_input=of_file(job, followed=True)) as pilot:
        await answered(pilot)
        assert "shm-too-small" not in shown(pilot)
        await until_shown(pilot, "following")
        (job / "rank1.log").write_text(f"{SHM}\n")
        await until_shown(pilot, "shm-too-small")


async def test_a_case_that_is_talked_about_is_not_taken_away(start: Start, log: Path) -> None:
    async with start(user_input=of_file(log, followed=True)) as pilot:
        await answered(pilot)
        await press(pilot, "space")
        case = app_of(pilot).main.case
        with log.open("a") as file:
            file.write(f"{ERROR}\n")
        await until(pilot, lambda: "F5: diagnose again" in told(pilot))
        assert app_of(pilot).main.case is case
        await press(pilot, "f5")
        await until(pilot, lambda: app_of(pilot).main.case is not case)
        assert app_of(pilot).main.case.done == case.done  # type: ignore[union-attr]
