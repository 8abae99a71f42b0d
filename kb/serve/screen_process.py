"""One screen in a browser: a process that hears and draws over its standard streams."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress

from aiohttp.web import WebSocketResponse
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from index.progress import Notify
from kb.log.clean import strip_controls
from kb.serve.token import VARIABLE

END_SECONDS = 3
"""How long a screen may take to end."""
MAX_CELLS = 600
"""Columns or lines of a screen; each cell takes memory."""

_READY = b"__GANGLION__\n"
"""The line before all that is drawn."""
_HEAD_BYTES = 5
"""Before each packet: its kind, and the length in four bytes."""
_OF_THE_SERVER = (
    *(VARIABLE, "KB_CASES_AT", "DISPLAY", "WAYLAND_DISPLAY", "TMUX", "STY"),
    *("NO_COLOR", "TEXTUAL", "TEXTUAL_LOG", "TEXTUAL_THEME"),
)
"""Variables that mean the server or its terminal, not the browser."""


class ScreenProcess(AppService):
    """The process, and what goes to and fro between it and its browser."""

    def __init__(
        self,
        arguments: Sequence[str],
        browser: WebSocketResponse,
        downloads: DownloadManager,
        notify: Notify,
    ) -> None:
        super().__init__(
            arguments[0],
            write_bytes=browser.send_bytes,
            write_str=self._tell,
            close=self._leave,
            download_manager=downloads,
        )
        self._arguments = arguments
        self._browser = browser
        self._notify = notify

    async def set_terminal_size(self, width: int, height: int) -> None:
        """Tell the size of the browser, as far as a screen has it."""
        await super().set_terminal_size(_cells(width), _cells(height))

    async def run(self) -> None:
        """Hand on what the process draws, until it ends. What nobody takes any more is dropped: who
        waits to write would not end."""
        assert self._process is not None  # noqa: S101  for the type
        output, errors = self._process.stdout, self._process.stderr
        assert output is not None  # noqa: S101
        assert errors is not None  # noqa: S101
        complaint = asyncio.create_task(_last_words(errors))
        is_ready = False
        with suppress(asyncio.IncompleteReadError, ValueError):
            while line := await output.readline():
                if is_ready := line == _READY:
                    break
            while is_ready:
                head = await output.readexactly(_HEAD_BYTES)
                payload = await output.readexactly(int.from_bytes(head[1:], "big"))
                with suppress(ConnectionError):
                    await self._take(head[:1], payload)
        if not is_ready:
            told = await complaint
            self._notify(strip_controls(f"a screen did not open{told and f': {told}'}"))
        await self.remote_close()

    async def stop(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._download_manager.cancel_app_downloads(self.app_service_id)
                await self.send_meta({"type": "quit"})
                self.stdin.close()
                await process.wait()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if self._task:
            await self._task

    def kill(self) -> None:
        """End the process at once."""
        if self._process:
            with suppress(ProcessLookupError):
                self._process.kill()

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment = super()._build_environment(_cells(width), _cells(height))
        return {name: value for name, value in environment.items() if name not in _OF_THE_SERVER}

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,  # Ctrl-C is for the server, which ends it
        )
        self._stdin = self._process.stdin
        return self._process

    async def _take(self, kind: bytes, payload: bytes) -> None:
        if kind == b"D":
            await self.on_data(payload)
        elif kind == b"P":
            await self.on_packed(payload)
        elif kind == b"M":
            await self.on_meta(payload)

    async def _leave(self) -> None:
        await self._browser.close()

    async def _tell(self, message: str) -> None:
        """Tell the page to open a page of the web, or to fetch a file from beside itself: a proxy
        may have put it below a prefix."""
        kind, value = json.loads(message)
        if kind == "deliver_file_start":
            message = json.dumps(["open_url", {"url": f"download/{value}", "new_tab": True}])
        elif kind == "open_url" and not value["url"].startswith(("https://", "http://")):
            return
        await self._browser.send_str(message)


def _cells(number: int) -> int:
    return min(max(number, 1), MAX_CELLS)


async def _last_words(errors: asyncio.StreamReader) -> str:
    """What a process says when it fails: one sentence. What else comes is dropped, because it may
    hold what was typed."""
    said = b""
    while data := await errors.read(1 << 12):
        said = said or data
    lines = said.decode("utf-8", "replace").splitlines()
    return next((line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")), "")
