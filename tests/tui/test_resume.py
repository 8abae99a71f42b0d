"""The case on the screen is kept as it goes on, and comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from textual.pilot import Pilot

from kb.conversation import Turn
from kb.service.input import UserInput, attach
from kb.sessions import Session, Sessions
from kb.settings import Settings
from tests.tui.conftest import SHM, Start, answered, app_of, paste, press, shown, told, until
from tui.widgets.paste_box import PasteBox

pytestmark = pytest.mark.slow

TOKEN = "hf_" + "a1B2c3" * 6
"""Made here: it is none."""


def kept(state: Path) -> list[dict[str, Any]]:
    """What lies in the directory of the cases."""
    unpack = zstandard.ZstdDecompressor().decompress
    return [json.loads(unpack(path.read_bytes())) for path in state.glob("cases/*.zst")]


def last() -> Session:
    session = Sessions(Settings(), pytest.fail).last()
    assert session
    return session


def turns_of(pilot: Pilot[Any]) -> tuple[Turn, ...]:
    """All that was said so far."""
    case = app_of(pilot).main.case
    assert case
    return case.conversation.turns


async def test_each_thing_is_kept_as_it_happens(start: Start, tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with start() as pilot:
        await paste(pilot, f"{SHM}\nexport HF_TOKEN={TOKEN}")
        await until(pilot, lambda: [one["incident"] for one in kept(state)] == ["shm-too-small"])
        await press(pilot, "space")
        await until(pilot, lambda: kept(state)[0]["done"] == [["shm-too-small", 0]])
        await press(pilot, "t", *"why", "enter")
        await until(pilot, lambda: kept(state)[0]["messages"] == ["why"])
    (case,) = kept(state)
    assert "/dev/shm/nccl-c7XQ2w" in case["text"]
    assert TOKEN not in json.dumps(case)


async def test_a_case_comes_back_with_what_was_said_and_ticked(
    start: Start, tmp_path: Path
) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "space")
        await press(pilot, "t", *"also with gloo", "enter")
        await until(pilot, lambda: "also with gloo" in [turn.text for turn in turns_of(pilot)])
        turns = turns_of(pilot)
        await until(pilot, lambda: bool(kept(tmp_path / "state")[0]["messages"]))
        app_of(pilot).keeper.close()
    async with start(size=(120, 60), session=last()) as pilot:
        await answered(pilot)
        case = app_of(pilot).main.case
        assert case
        await until(pilot, lambda: len(turns_of(pilot)) >= len(turns))
        assert [turn.text for turn in turns_of(pilot)] == [turn.text for turn in turns]
        assert case.done_of("shm-too-small") == {0}
        assert pilot.app.screen.query_one(PasteBox).text == SHM
        await until(pilot, lambda: "Fix  1 of 3 done" in shown(pilot))
        assert "also with gloo" in shown(pilot)
        await press(pilot, "space")
        app_of(pilot).keeper.close()
    (case_kept,) = kept(tmp_path / "state")
    assert case_kept["messages"] == ["also with gloo"]


async def test_what_was_piped_in_comes_back(start: Start) -> None:
    async with start(user_input=attach(SHM)) as pilot:
        await answered(pilot)
        app_of(pilot).keeper.close()
    async with start(session=last()) as pilot:
        await answered(pilot)
        assert app_of(pilot).main.case.matches[0].incident.id == "shm-too-small"  # type: ignore[union-attr]


async def test_of_a_large_paste_the_lines_that_matter_are_kept(start: Start) -> None:
    calm = "".join(f"2026-11-21 INFO step {step} loss 2.31\n" for step in range(20_000))
    async with start(user_input=attach(f"{calm}{SHM}\n{calm}")) as pilot:
        await answered(pilot)
        app_of(pilot).keeper.close()
    assert "NCCL WARN Error: failed to extend" in last().text


async def test_a_log_that_is_gone_is_named(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(SHM)
    async with start(user_input=UserInput(paths=(log,), name="train.log")) as pilot:
        await answered(pilot)
        app_of(pilot).keeper.close()
    log.unlink()
    async with start(session=last()) as pilot:
        await answered(pilot)
        assert "train.log is gone; the case goes on without it" in told(pilot)


async def test_with_the_history_off_nothing_is_kept(start: Start, tmp_path: Path) -> None:
    async with start(history=False) as pilot:
        await paste(pilot, SHM)
        await press(pilot, "space")
        app_of(pilot).keeper.close()
    assert not kept(tmp_path / "state")
