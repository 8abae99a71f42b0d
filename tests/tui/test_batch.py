"""A directory is classified: progress, a table to sort, a log to open.

The processes that classify know nothing of the four records, so these are the shipped ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input

from tests.tui.conftest import (
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
    until,
    until_shown,
)
from tui.screens.batch import BatchScreen
from tui.widgets.paste_box import PasteBox

pytestmark = pytest.mark.slow


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    directory = tmp_path / "logs"
    directory.mkdir()
    for name, text in (("c", SHM), ("a", UNKNOWN), ("b", HEALTHY), ("d", WATCHDOG)):
        (directory / f"{name}.log").write_text(text)
    return directory


async def classified(pilot: Pilot[int], directory: Path) -> None:
    await press(pilot, "escape", "b")
    pilot.app.screen.query_one("#path", Input).value = str(directory)
    await press(pilot, "enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, BatchScreen))


def column(pilot: Pilot[int], name: str) -> list[str]:
    return [cell.plain for cell in pilot.app.screen.query_one(DataTable).get_column(name)]


async def test_a_directory_is_classified_sorted_and_one_log_opened(
    start_shipped: Start, logs: Path
) -> None:
    async with start_shipped() as pilot:
        await classified(pilot, logs)
        for text in ("4 of 4 logs", "100%", "1 healthy", "nccl-shm-too-small-container"):
            await until_shown(pilot, text)
        await until_shown(pilot, "flux capacitor")
        assert column(pilot, "log") == ["c.log", "d.log", "a.log", "b.log"]
        await until_shown(pilot, "1 match    0 possible  nccl-shm-too-small-container")
        await press(pilot, "s")
        assert "sorted by verdict" in shown(pilot)
        verdicts = column(pilot, "verdict")
        assert verdicts == sorted(verdicts)
        await press(pilot, "s")
        assert "sorted by sure" in shown(pilot)
        assert column(pilot, "log")[0] == "c.log"
        await press(pilot, "enter")
        await answered(pilot)
        assert str(logs / "c.log") in str(pilot.app.query_one(PasteBox).placeholder)
        assert "nccl-shm-too-small-container" in shown(pilot)


async def test_jobs_are_rows_where_ranks_write_into_a_directory(
    start_shipped: Start, tmp_path: Path
) -> None:
    jobs = tmp_path / "jobs-with-a-name-that-is-long"
    for name in ("first", "second"):
        (jobs / name).mkdir(parents=True)
        for rank in range(2):
            (jobs / name / f"rank_{rank}.log").write_text(SHM if name == "first" else HEALTHY)
    (jobs / "README.md").write_text("notes")
    async with start_shipped(size=(80, 24)) as pilot:
        await classified(pilot, jobs)
        await until_shown(pilot, "2 of 2 jobs")
        assert column(pilot, "log")[0] == "first"
        await press(pilot, "u")
        await until_shown(pilot, "4 of 4 logs")
        await until_shown(pilot, "nccl-shm-too-small-container")
        assert sorted(column(pilot, "log"))[0] == "first/rank_0.log"


async def test_a_long_path_leaves_room_for_the_incident(
    start_shipped: Start, tmp_path: Path
) -> None:
    deep = tmp_path / "logs" / "a-directory-of-a-job" / "attempt-0-of-three" / "and-more"
    deep.mkdir(parents=True)
    (deep / "the-end.log").write_text(SHM)
    async with start_shipped(size=(100, 24)) as pilot:
        await classified(pilot, tmp_path / "logs")
        await until_shown(pilot, "1 of 1 logs")
        (name,) = column(pilot, "log")
        assert name.startswith("a-direc")
        assert name.endswith("the-end.log")
        assert f"{name}  nccl-shm-too-small-container" in shown(pilot)


async def test_a_directory_without_logs_says_so(start_shipped: Start, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    async with start_shipped() as pilot:
        await classified(pilot, tmp_path / "empty")
        await until_shown(pilot, f"No logs found below {tmp_path / 'empty'}")
        await press(pilot, "enter", "s", "escape")
        assert pilot.app.screen is app_of(pilot).main


async def test_leaving_a_batch_stops_it(start_shipped: Start, logs: Path) -> None:
    async with start_shipped() as pilot:
        await classified(pilot, logs)
        await press(pilot, "escape")
        assert pilot.app.screen is app_of(pilot).main
        await paste(pilot, SHM)
        assert "nccl-shm-too-small-container" in shown(pilot)


async def test_a_directory_that_is_opened_is_one_question(start: Start, logs: Path) -> None:
    async with start() as pilot:
        await press(pilot, "escape", "o")
        pilot.app.screen.query_one("#path", Input).value = str(logs)
        await press(pilot, "enter")
        await answered(pilot)
        assert pilot.app.query_one(PasteBox).placeholder == str(logs)
        assert "First to fail" in shown(pilot)
