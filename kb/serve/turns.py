"""Where requests wait for the service: each has its turn, none waits without end, and what would
wait too long is refused at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from typing import TypeVar

from starlette.requests import Request

from kb.diagnosis import Diagnosis
from kb.log import Log
from kb.serve.refusal import busy, wrong
from kb.service.service import Service, SupersededError

Result = TypeVar("Result")

MAX_WAITING = 128
"""Requests that one process has taken and not answered; the last of them waits for two seconds."""
ANSWER_SECONDS = 30
"""In which a request is answered, its wait included."""
READ_SECONDS = 10
"""In which a log is read, while others wait: that of a whole job takes one."""


class Turns:
    """Hands requests to one service, and what they come to is written in a thread of its own."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._waiting = 0
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="writer")

    async def diagnose(self, request: Request, open_log: Callable[[], Log], top: int) -> Diagnosis:
        """The diagnosis of a log.

        Raises:
            LogError: it cannot be read.
            RefusedError: too many wait, or it takes too long.
        """
        stop, loop = threading.Event(), asyncio.get_running_loop()

        def opened() -> Log:
            loop.call_soon_threadsafe(loop.call_later, READ_SECONDS, stop.set)
            return open_log()

        asked = lambda: self.service.diagnose_for_one(opened, top, stop)  # noqa: E731
        return await self.ask(request, asked, stop)

    async def ask(
        self,
        request: Request,
        ask: Callable[[], Future[Result]],
        stop: threading.Event | None = None,
    ) -> Result:
        """What the service answers. If nobody waits for it any more, it is not worked out; `stop`
        ends what has begun.

        Raises:
            RefusedError: too many wait, or it takes too long.
        """
        if self._waiting >= MAX_WAITING:
            raise busy("too many requests wait; ask again in a moment")
        self._waiting += 1
        answer = asyncio.wrap_future(ask())
        left = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait(
                (answer, left), timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            return _taken(answer, gone=left.done(), stopped=stop is not None and stop.is_set())
        finally:
            self._waiting -= 1
            left.cancel()
            answer.cancel()
            if stop:
                stop.set()

    async def write(self, make: Callable[[], Result]) -> Result:
        """What takes time and needs no service, beside both."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, make)

    def close(self) -> None:
        """Release the service."""
        self.service.close()
        self._writer.shutdown(wait=False)


def _taken(answer: asyncio.Future[Result], *, gone: bool, stopped: bool) -> Result:
    if not answer.done():
        if gone:
            raise wrong("the client is gone")
        raise busy(f"no answer within {ANSWER_SECONDS} s; ask again, or about fewer lines")
    try:
        return answer.result()
    except SupersededError:
        if stopped:
            raise wrong(
                f"it takes more than {READ_SECONDS} s to read; send fewer lines, or run kb ask"
                " where the logs lie",
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            ) from None
        raise busy("the server is ending; ask again") from None


async def _disconnected(request: Request) -> None:
    """Wait until the client goes away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
