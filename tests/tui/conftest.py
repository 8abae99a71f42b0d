"""The real app, driven as a user does."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from textual import events
from textual.app import App
from textual.message import Message
from textual.notifications import Notify
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.worker import WorkerCancelled

from kb.paths import packaged_incidents
from kb.service.input import UserInput
from kb.sessions import Session
from kb.settings import Settings
from tui.app import KbApp

NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.sendto")


class _Watch:
    """Whether a test of the screen runs: a hook cannot be taken away, and sees all others, too."""

    is_on = False


def _forbid_network(event: str, arguments: tuple[object, ...]) -> None:
    if _Watch.is_on and event in NETWORK and not _is_local(arguments[0]):
        raise AssertionError(f"the screen uses the network: {event} {arguments}")


def _is_local(used: object) -> bool:
    """Tests beside those of the screen talk to a process of their own."""
    return isinstance(used, socket) and used.family == AF_UNIX


sys.addaudithook(_forbid_network)


@pytest.fixture(autouse=True)
def offline() -> Iterator[None]:
    """Forbid the network to every test of the screen."""
    _Watch.is_on = True
    yield
    _Watch.is_on = False


Start = Callable[..., AbstractAsyncContextManager[Pilot[int]]]


INCIDENTS = Path(__file__).parent / "incidents"
"""Four records: one that is sure, two that look alike, and a follow-on error."""

SHM = (
    "step 12 loss 2.31\n"
    "node-a:121:1530 [3] NCCL WARN Error: failed to extend /dev/shm/nccl-c7XQ2w to 4096 bytes\n"
    "step 13\n"
    "node-a:121:1530 [3] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-c7XQ2w"
)
"""The incident `shm-too-small`, with evidence in the lines 2 and 4."""
WATCHDOG = (
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=1893, OpType=_ALLGATHER_BASE, Timeout(ms)=600000) ran for 600013 milliseconds"
)
"""Fits two of the records, so that a question is asked."""
UNKNOWN = (
    "Traceback (most recent call last):\n"
    "RuntimeError: the flux capacitor of pump 7 is out of plutonium"
)
HEALTHY = "epoch 1 loss 2.3\nepoch 2 loss 2.1\ntraining finished"
FOLLOW_ON = "node-b:77:91 [0] NCCL WARN socketProgress: Connection closed by remote peer node-a"


_TOLD: WeakKeyDictionary[App[int], list[str]] = WeakKeyDictionary()
"""The sentences that an app showed for a while."""


@pytest.fixture(scope="session")
def small_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the index of the four records."""
    return tmp_path_factory.mktemp("small-cache")


@pytest.fixture
def start(small_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Run the app over four records: `async with start(size, user_input, **settings) as pilot`."""
    monkeypatch.setattr("kb.corpus.directories.packaged_incidents", lambda: INCIDENTS)
    monkeypatch.setenv("KB_CACHE", str(small_cache))
    monkeypatch.setenv("KB_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    @asynccontextmanager
    async def run(
        size: tuple[int, int] = (120, 34),
        user_input: UserInput | None = None,
        loaded: bool = True,
        session: Session | None = None,
        in_browser: bool = False,
        **settings: object,
    ) -> AsyncIterator[Pilot[int]]:
        given = Settings(**settings)  # type: ignore[arg-type]
        app = KbApp(given, user_input or UserInput(), session, in_browser)
        sentences = _TOLD.setdefault(app, [])

        def watch(message: Message) -> None:
            if isinstance(message, Notify):
                sentences.append(message.notification.message)

        async with app.run_test(size=size, message_hook=watch) as pilot:
            if loaded:
                await settle(pilot)
            yield pilot
        app.service.close()  # as leaving does; an index for each test would fill the memory

    return run


@pytest.fixture
def start_shipped(start: Start, built_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """The same over the shipped records."""
    monkeypatch.setattr("kb.corpus.directories.packaged_incidents", packaged_incidents)
    monkeypatch.setenv("KB_CACHE", str(built_cache))
    return start


async def settle(pilot: Pilot[int]) -> None:
    """Wait until everything that was begun is done, or was replaced by something newer."""
    await pilot.pause()
    while True:
        try:
            await pilot.app.workers.wait_for_complete()
        except WorkerCancelled:
            await pilot.pause()
        else:
            break
    await pilot.pause()


async def paste(pilot: Pilot[int], text: str) -> None:
    """Paste as a terminal does, and wait for the answer."""
    before = app_of(pilot).main.case
    app_of(pilot).post_message(events.Paste(text.replace("\n", "\r")))
    await until(pilot, lambda: app_of(pilot).main.case is not before)
    await settle(pilot)


async def answered(pilot: Pilot[int]) -> None:
    """Wait for the answer to the first search."""
    await until(pilot, lambda: app_of(pilot).main.case is not None)
    await settle(pilot)


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Press keys and wait until nothing moves any more; screens that wait for an answer may."""
    await pilot.press(*keys)
    await pilot.wait_for_scheduled_animations()


async def until(pilot: Pilot[int], true: Callable[[], bool]) -> None:
    """Wait for something to become true; a test that waits in vain fails."""
    for _ in range(400):
        await pilot.pause(0.025)
        if true():
            await pilot.pause()
            return
    pytest.fail(f"nothing came of it:\n{shown(pilot)}\n{told(pilot)}")


async def until_shown(pilot: Pilot[int], text: str) -> None:
    """Wait for a text on the screen."""
    await until(pilot, lambda: text in shown(pilot))


def app_of(pilot: Pilot[int]) -> KbApp:
    """The app that is driven."""
    assert isinstance(pilot.app, KbApp)
    return pilot.app


def strips(screen: Screen[Any]) -> list[Strip]:
    """The rows of a screen. Textual's only public way to them is a picture, 50 times as slow."""
    return screen._compositor.render_strips()


def shown(pilot: Pilot[int]) -> str:
    """All that stands on the screen, line by line."""
    return "\n".join(row.text.rstrip() for row in strips(pilot.app.screen))


def told(pilot: Pilot[int]) -> str:
    """The sentences that were shown for a while, one a line."""
    return "\n".join(_TOLD.get(pilot.app, []))
