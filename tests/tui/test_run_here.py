"""A read-only command of a record is run from the screen, after a yes to this very run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.conftest import SHM, Start, app_of, paste, press, shown, told, until, until_shown
from tui.screens.main import MainScreen
from tui.screens.run import RunScreen

pytestmark = pytest.mark.slow

COMMAND = "df -h /dev/shm"


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stdin is a terminal, as it is for a user."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        yield
    os.close(ours)


@pytest.mark.usefixtures("at_a_terminal")
async def test_a_step_is_seen_agreed_to_run_and_read(start: Start) -> None:
    async with start(size=(120, 40)) as pilot:
        await paste(pilot, SHM)
        assert "! run" in shown(pilot)
        await press(pilot, "!")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        for text in (COMMAND, "program   df", "argument  -h", "argument  /dev/shm", "as you"):
            assert text in shown(pilot)
        await press(pilot, "y")
        await until_shown(pilot, f"› $ {COMMAND}")
        case = app_of(pilot).main.case
        assert case is not None
        said = [turn.text for turn in case.conversation.turns if turn.speaker == "user"]
        assert said[0].startswith(f"$ {COMMAND}\n")
        assert "Filesystem" in said[0]


@pytest.mark.usefixtures("at_a_terminal")
@pytest.mark.parametrize("key", ["n", "escape", "enter"])
async def test_without_a_yes_nothing_is_run(start: Start, key: str) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "!")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        await press(pilot, key)
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        case = app_of(pilot).main.case
        assert case is not None
        assert len(case.conversation.turns) == 1


@pytest.mark.usefixtures("at_a_terminal")
async def test_a_step_that_is_not_marked_is_not_run(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "s", "s")
        await until_shown(pilot, "▸ [ ] 2.")
        assert "! run" not in shown(pilot)
        await press(pilot, "!")
        await until(pilot, lambda: "does not mark this command as read-only" in told(pilot))


@pytest.mark.usefixtures("at_a_terminal")
async def test_the_configuration_switches_it_off(start: Start) -> None:
    async with start(run=False) as pilot:
        await paste(pilot, SHM)
        assert "! run" not in shown(pilot)
        await press(pilot, "!")
        await until(pilot, lambda: "run = false" in told(pilot))


async def test_it_is_off_without_a_terminal(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "!")
        await until(pilot, lambda: "at a terminal" in told(pilot))


async def test_for_all_nodes_a_command_line_is_copied(
    start: Start, small_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WAYLAND_DISPLAY", "DISPLAY", "TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    async with start() as pilot:
        await paste(pilot, SHM)
        await press(pilot, "a")
        await until(pilot, lambda: bool(told(pilot)))
        assert (small_cache / "last-copy.txt").read_text() == f"clush -bw NODES '{COMMAND}'"
        await press(pilot, "s", "s", "a")
        await until(pilot, lambda: "no command that looks at each node" in told(pilot))
