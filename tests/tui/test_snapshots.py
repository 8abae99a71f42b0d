"""What the screen looks like, at three sizes.

After a change that is meant, look at the report and make them again:
pytest tests/tui/test_snapshots.py --snapshot-update
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from pytest_textual_snapshot import SVGImageExtension
from textual.pilot import Pilot

from kb.service.input import UserInput
from kb.settings import Settings
from tests.tui.conftest import (
    SHM,
    UNKNOWN,
    WATCHDOG,
    answered,
    app_of,
    paste,
    press,
    until,
    until_shown,
)
from tui.app import KbApp
from tui.screens.ranks import RanksScreen

pytestmark = pytest.mark.slow


# What the plugin wants, in the words of the newer syrupy.
SVGImageExtension.file_extension = "svg"

Compare = Callable[..., bool]
Drive = Callable[[Pilot[int]], Awaitable[None]]

JOB = Path("benchmarks/jobs/acc-lora/logs").resolve()


async def tour(pilot: Pilot[int]) -> None:
    """The empty screen."""


async def answer(pilot: Pilot[int]) -> None:
    await paste(pilot, SHM)
    await press(pilot, "space")


async def evidence(pilot: Pilot[int]) -> None:
    await paste(pilot, SHM)
    await press(pilot, "e", "e")


async def talk(pilot: Pilot[int]) -> None:
    await paste(pilot, WATCHDOG)
    await press(pilot, "2", "t")
    await until(pilot, lambda: len(app_of(pilot).main.query(".turn.user")) == 1)


async def unknown(pilot: Pilot[int]) -> None:
    await paste(pilot, UNKNOWN)


async def ranks(pilot: Pilot[int]) -> None:
    app_of(pilot).main.ask(UserInput(paths=(JOB,), name="acc-lora"))
    await answered(pilot)
    await press(pilot, "r")
    await until(pilot, lambda: isinstance(pilot.app.screen, RanksScreen))


async def keys(pilot: Pilot[int]) -> None:
    await press(pilot, "f1")


@pytest.mark.usefixtures("start")
@pytest.mark.parametrize(
    "size",
    [
        pytest.param((80, 24), marks=pytest.mark.slow),
        (120, 34),
        pytest.param((200, 50), marks=pytest.mark.slow),
    ],
    ids="{0[0]}x{0[1]}".format,
)
@pytest.mark.parametrize(
    "drive", [tour, answer, evidence, talk, unknown, ranks, keys], ids=lambda drive: drive.__name__
)
def test_it_looks_as_it_did(snap_compare: Compare, drive: Drive, size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[int]) -> None:
        for one in app_of(pilot).screen.query("TextArea, UserInput"):
            one.cursor_blink = False  # type: ignore[attr-defined]
        await until_shown(pilot, "4 records, offline")
        await drive(pilot)
        app_of(pilot).main.say(app_of(pilot).readiness())  # without how long it took
        await pilot.pause()

    app = KbApp(Settings(history=False), UserInput())
    assert snap_compare(app, terminal_size=size, run_before=before)
