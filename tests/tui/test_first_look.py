"""What stands on the screen before a key is pressed, and how one reads on."""

from __future__ import annotations

import pytest

from tests.tui.conftest import (
    SHM,
    UNKNOWN,
    WATCHDOG,
    Start,
    app_of,
    paste,
    press,
    shown,
    until_shown,
)
from tui.titles import UNCUT, name_cut, told_apart
from tui.widgets.detail import Detail
from tui.widgets.log_pane import LogPane
from tui.widgets.match_list import OVERVIEW, MatchList

pytestmark = pytest.mark.slow

SIZES = [(80, 24), (120, 40), (200, 60)]
"""Common terminals, from a small one on."""


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
async def test_the_first_step_and_the_reason_are_seen_without_a_key(
    start: Start, size: tuple[int, int]
) -> None:
    async with start(size=size) as pilot:
        await paste(pilot, SHM)
        rows = shown(pilot)
        places = [
            rows.index(text)
            for text in (
                "NCCL cannot extend its shared memory segment because",
                "▸ [ ] 1. Look at the size of the mount inside the container.",
                "df -h /dev/shm",
                "[1] line 2  by signature",
            )
        ]
        assert places == sorted(places)
        for key in ("c copy", "space done", "s step", "e evidence", "t talk", "? help"):
            assert key in rows


async def test_the_rest_of_a_match_stands_below_its_steps(start: Start) -> None:
    async with start(size=(120, 90)) as pilot:
        await paste(pilot, SHM)
        rows = shown(pilot)
        parts = ("Why", "Then", "Caution: ", "Symptom", "Environment", "Cause", "References")
        places = [rows.index(part) for part in parts]
        assert places == sorted(places)


@pytest.mark.parametrize("key", ["down", "pagedown", "end", "G", "j"])
async def test_a_key_scrolls_what_one_reads_and_another_one_back(start: Start, key: str) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, SHM)
        before = shown(pilot)
        detail = pilot.app.query_one(Detail)
        await press(pilot, key)
        assert detail.scroll_offset.y > 0
        await press(pilot, "g")
        assert detail.scroll_offset.y == 0
        assert shown(pilot) == before


async def test_a_key_does_not_act_on_a_step_that_is_out_of_sight(start: Start) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "end", "space")
        await until_shown(pilot, "▸ [ ] 1.")
        await press(pilot, "space")
        await until_shown(pilot, "▸ [ ] 2.")
        case = app_of(pilot).main.case
        assert case is not None
        assert case.done == {("shm-too-small", 0)}


async def test_a_short_log_leaves_its_room_to_the_conversation(start: Start) -> None:
    async with start(size=(200, 60)) as pilot:
        await paste(pilot, SHM)
        assert pilot.app.query_one(LogPane).size.height < 10
        assert pilot.app.query_one("#talk").size.height > 30


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
async def test_where_nothing_is_sure_candidates_are_told_apart(
    start: Start, size: tuple[int, int]
) -> None:
    async with start(size=size) as pilot:
        await paste(pilot, WATCHDOG)
        assert pilot.app.query_one(MatchList).selected == OVERVIEW
        rows = " ".join(shown(pilot).split())
        assert "What to do" in rows
        assert "watchdog-uneven-batches" in rows
        assert "watchdog-slow-checkpoint" in rows
        assert rows.count("because") >= 2


async def test_the_candidates_are_read_one_after_the_other(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "]")
        await until_shown(pilot, "Fix  0 of")
        first = pilot.app.query_one(MatchList).selected
        await press(pilot, "]", "]")
        await until_shown(pilot, "What to do")
        await press(pilot, "]")
        assert pilot.app.query_one(MatchList).selected == first


async def test_in_the_list_enter_reads_and_a_page_is_that_of_what_is_read(start: Start) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, SHM)
        listed, detail = pilot.app.query_one(MatchList), pilot.app.query_one(Detail)
        listed.focus()
        await until_shown(pilot, "enter read")
        await press(pilot, "pagedown")
        assert detail.scroll_offset.y > 0
        await press(pilot, "pageup")
        assert detail.scroll_offset.y == 0
        await press(pilot, "enter")
        assert detail.has_focus


async def test_the_footer_names_no_key_that_would_do_nothing(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, UNKNOWN)
        footer = shown(pilot).splitlines()[-1]
        for hint in ("copy", "done", "step", "candidate", "evidence", "ranks"):
            assert hint not in footer
        assert "t talk" in footer


async def test_the_box_shows_the_line_that_tells_most(start: Start) -> None:
    async with start(size=(80, 24)) as pilot:
        await paste(pilot, SHM)
        assert "failed to extend" in shown(pilot).splitlines()[1]


HANG = "One rank hangs outside of the collective"


def test_titles_that_begin_alike_are_told_apart_by_their_causes() -> None:
    titles = [f"{HANG}, because {why}" for why in ("it loads data", "it waits for a lock")]
    assert told_apart(titles, 60) == ["because it loads data", "because it waits for a lock"]


def test_of_a_long_title_the_cause_is_kept() -> None:
    title = f"{HANG} while the others wait for ten minutes, because it saves alone"
    assert told_apart([title], UNCUT) == [title]
    assert told_apart([title], 60) == ["One rank hangs outside of the … because it saves alone"]
    assert told_apart([title], 30) == ["because it saves alone"]


def test_a_title_without_a_cause_is_cut_at_its_end() -> None:
    assert told_apart([HANG], 20) == ["One rank hangs …"]


def test_a_name_is_cut_in_its_middle() -> None:
    assert name_cut("nccl-init-blocked-by-firewall", 15) == "nccl-in…irewall"
    assert name_cut("nccl-init", 15) == "nccl-init"
