"""The ranks of a job: who failed first, who is silent, who said the same, and when."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.widgets import DataTable

from kb.service.input import UserInput
from tests.tui.conftest import (
    HEALTHY,
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
from tui.screens.ranks import RanksScreen
from tui.widgets.log_view import LogView

pytestmark = pytest.mark.slow


JOBS = Path("benchmarks/jobs").resolve()


def job(name: str) -> UserInput:
    return UserInput(paths=(JOBS / name / "logs",), name=name)


async def test_the_first_failure_is_on_top(start: Start) -> None:
    async with start(user_input=job("acc-lora")) as pilot:
        await answered(pilot)
        assert "First to fail  rank 1" in shown(pilot)
        assert "ranks 0-3" in shown(pilot)
        await press(pilot, "r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RanksScreen))
        rows = shown(pilot).splitlines()
        assert "4 ranks, exception" in rows[0]
        first = next(n for n, row in enumerate(rows) if "first " in row and "rank 1" in row)
        others = next(n for n, row in enumerate(rows) if "3 ranks (0, 2-3)" in row)
        assert first < others
        assert "IndexError: index out of range in self" in rows[first]
        assert "RuntimeError: " in rows[others]
        assert "Timeline" in shown(pilot)


async def test_a_row_leads_to_its_line(start: Start) -> None:
    async with start(user_input=job("acc-lora")) as pilot:
        await answered(pilot)
        await press(pilot, "r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RanksScreen))
        await press(pilot, "enter")
        await until(pilot, lambda: pilot.app.screen is app_of(pilot).main)
        view = pilot.app.query_one(LogView)
        await until(pilot, lambda: view.current == 196)
        assert ">" in shown(pilot)
        assert "196 [rank1]: IndexError" in shown(pilot)


async def test_what_the_others_said_leads_to_its_line(start: Start) -> None:
    async with start(user_input=job("acc-lora")) as pilot:
        await answered(pilot)
        await press(pilot, "r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RanksScreen))
        await press(pilot, "down", "enter")
        await until(pilot, lambda: pilot.app.screen is app_of(pilot).main)
        view = pilot.app.query_one(LogView)
        await until(pilot, lambda: view.current not in (None, 196))
        await until_shown(pilot, "RuntimeError: ")


async def test_a_row_without_a_line_says_so(start: Start) -> None:
    async with start(user_input=job("bidx-sort")) as pilot:
        await answered(pilot)
        await press(pilot, "r")
        await until_shown(pilot, "printed no line in the logs")
        table = pilot.app.screen.query_one("#ranks", DataTable)
        signs = [cell.plain for cell in table.get_column_at(0)]
        table.move_cursor(row=signs.index("silent"))
        await press(pilot, "enter")
        await until(pilot, lambda: "There is no log line for this row." in told(pilot))


async def test_times_have_one_form_and_the_timeline_has_the_room(start: Start) -> None:
    async with start(user_input=job("acc-lora")) as pilot:
        await answered(pilot)
        await press(pilot, "r")
        await until_shown(pilot, "Timeline")
        table = pilot.app.screen.query_one("#timeline", DataTable)
        times = [cell.plain for cell in table.get_column_at(0)]
        assert all(re.fullmatch(r"\d\d:\d\d:\d\d(\.\d{1,3})?", time) for time in times)
        assert table.size.height > 12


async def test_a_line_that_is_picked_is_seen_on_a_small_screen(start: Start) -> None:
    async with start(size=(80, 24), user_input=job("acc-lora")) as pilot:
        await answered(pilot)
        await press(pilot, "r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RanksScreen))
        await press(pilot, "enter")
        await until(pilot, lambda: "196 [rank1]: IndexError" in shown(pilot))


async def test_missing_ranks_are_named(start: Start) -> None:
    async with start(user_input=job("bidx-sort")) as pilot:
        await answered(pilot)
        await press(pilot, "r")
        await until(pilot, lambda: "printed no line in the logs" in shown(pilot))
        assert re.search(r"silent +rank 0 ", shown(pilot))


async def test_a_slow_rank_did_not_fail(start: Start) -> None:
    async with start(user_input=job("late-lag")) as pilot:
        await answered(pilot)
        assert "Slow  rank 3" in shown(pilot)
        await press(pilot, "r")
        await until(pilot, lambda: isinstance(pilot.app.screen, RanksScreen))
        assert "slow" in shown(pilot)
        assert pilot.app.screen.query_one("#ranks", DataTable).row_count
        await press(pilot, "escape")
        assert pilot.app.screen is app_of(pilot).main


async def test_a_log_of_one_process_has_no_ranks(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, HEALTHY)
        await press(pilot, "r")
        assert "This log does not show several ranks." in told(pilot)
        assert pilot.app.screen is app_of(pilot).main
