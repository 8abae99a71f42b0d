"""The real app, driven as a user does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from kb.settings import Settings
from tui.app import KbApp
from tui.subject import Subject
from tui.widgets.paste_box import PasteBox

Start = Callable[..., AbstractAsyncContextManager[Pilot[int]]]


@pytest.fixture
def start(built_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Run the app: `async with start(size, subject, **settings) as pilot`."""
    monkeypatch.setenv("KB_CACHE", str(built_cache))
    monkeypatch.setenv("KB_STATE", str(tmp_path / "state"))

    @asynccontextmanager
    async def run(
        size: tuple[int, int] = (120, 34), subject: Subject | None = None, **settings: object
    ) -> AsyncIterator[Pilot[int]]:
        app = KbApp(Settings(**settings), subject or Subject())  # type: ignore[arg-type]
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            yield pilot

    return run


async def settle(pilot: Pilot[int]) -> None:
    """Wait until everything that was begun is done."""
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def paste(pilot: Pilot[int], text: str) -> None:
    """Paste a text and wait for the answer."""
    app = pilot.app
    assert isinstance(app, KbApp)
    app.main.query_one(PasteBox).take(text)
    await until(pilot, lambda: app.main.case is not None and not app.main.is_draft)


async def until(pilot: Pilot[int], true: Callable[[], bool]) -> None:
    """Wait for something to become true; a test that waits in vain fails."""
    for _ in range(200):
        await pilot.pause(0.05)
        await pilot.app.workers.wait_for_complete()
        if true():
            await pilot.pause()
            return
    pytest.fail("nothing came of it")
