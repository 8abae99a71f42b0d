"""The screen in a browser: a page with a terminal, and for each browser that opens it a screen of
its own, which ends with the page. Needs the extra `screen`."""

from __future__ import annotations

import asyncio
import html
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import NoReturn

from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler
from textual_serve.server import Server

from index.progress import Notify
from kb.serve.guard import (
    HEADERS,
    OPEN_PATHS,
    Rates,
    Rules,
    is_known,
    is_of_another_origin,
    is_same,
    refuse_other_names,
    refuse_other_sites,
    unknown_client,
)
from kb.serve.messages import tell_by
from kb.serve.refusal import Problem, RefusedError, busy, wrong
from kb.serve.respond import to_line
from kb.serve.screen_process import ScreenProcess

MAX_SCREENS = 32
"""At a time; each is a process."""
MAX_MESSAGE_BYTES = 16 << 20
"""Of what a browser sends at once, such as a paste."""

_HEARTBEAT_SECONDS = 15
"""A browser that says nothing for so long is gone."""
_ANSWERS_SECONDS = 1.0
"""At the end: how long open requests have."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL = 128
"""Added to the number of the signal in the exit code, as in shells."""
_HERE = Path(__file__).parent
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self';"
    " img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'none'"
)
"""The terminal makes styles of its own; nothing comes from elsewhere."""


def serve(
    arguments: Sequence[str], rules: Rules, listening: socket.socket, notify: Notify
) -> NoReturn:
    """Show what the command draws to whoever opens the page, until a signal comes."""
    for name in ("aiohttp", "textual-serve", "asyncio"):
        tell_by(notify, name)
    raise SystemExit(_BY_SIGNAL + asyncio.run(Site(arguments, rules, notify).run(listening)))


class Site(Server):
    """The page and its screens. Who may see it is asked before anything else."""

    def __init__(self, arguments: Sequence[str], rules: Rules, notify: Notify) -> None:
        super().__init__(arguments[0], statics_path="static")
        self._arguments = arguments
        self._rules = rules
        self._rates = Rates(rules.rate)
        self._notify = notify
        self._pass = secrets.token_urlsafe(32)
        """What the cookie holds: whoever finds it learns nothing of the token."""
        self._screens: set[ScreenProcess] = set()

    async def run(self, listening: socket.socket) -> int:
        """Answer until a signal comes, and return which. A second Ctrl-C waits for nothing."""
        self._port = listening.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = loop.create_future()
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._end, number)
        application = await self._make_app()
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_ANSWERS_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            return await self._ended
        finally:
            await runner.cleanup()

    def _end(self, number: int) -> None:
        if not self._ended.done():
            self._ended.set_result(number)
        elif number == signal.SIGINT:
            for screen in self._screens:
                screen.kill()
            os._exit(_BY_SIGNAL + number)

    async def _make_app(self) -> web.Application:
        application = web.Application(middlewares=[self._guard])
        application.on_response_prepare.append(_secure)
        application.on_shutdown.append(self.on_shutdown)
        application.add_routes(
            [
                web.get("/", self.handle_index),
                web.get("/ws", self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                web.get("/{name:screen\\.(css|js)}", _own_file),
                web.static("/static", self.statics_path),
                *(web.get(path, _alive) for path in sorted(OPEN_PATHS)),
            ]
        )
        return application

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002
        """End all screens."""
        await asyncio.gather(*(screen.stop() for screen in list(self._screens)))

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page. Who came by a name and a password or by a link gets a cookie, which the
        terminal of the page sends again."""
        if "token" in request.query:
            page = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "./"})
        else:
            page = web.Response(text=_read("screen.html"), content_type="text/html")
        if self._rules.token:
            is_encrypted = "https" in (request.scheme, request.headers.get("X-Forwarded-Proto"))
            page.set_cookie(
                self._cookie,
                self._pass,
                path=None,  # type: ignore[arg-type]  # that of the page, below any prefix
                httponly=True,
                samesite="Lax",
                secure=is_encrypted,
            )
        return page

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A screen, until its browser goes away."""
        if is_of_another_origin(request.headers):
            raise wrong("another site may not ask in your name", HTTPStatus.FORBIDDEN)
        if len(self._screens) >= MAX_SCREENS:
            raise busy(f"{MAX_SCREENS} screens are open; close one, or try again later")
        browser = web.WebSocketResponse(
            heartbeat=_HEARTBEAT_SECONDS, max_msg_size=MAX_MESSAGE_BYTES
        )
        screen = ScreenProcess(self._arguments, browser, self.download_manager, self._notify)
        self._screens.add(screen)
        try:
            await browser.prepare(request)
            await screen.start(_number(request, "width", 80), _number(request, "height", 24))
            await self._hear(browser, screen)
        except OSError as error:
            self._notify(f"a screen did not open: {error.strerror or error}")
        finally:
            await asyncio.shield(self._close(browser, screen))
        return browser

    async def _close(self, browser: web.WebSocketResponse, screen: ScreenProcess) -> None:
        try:
            await screen.stop()
            await browser.close()
        finally:
            self._screens.discard(screen)

    async def _hear(self, browser: web.WebSocketResponse, screen: ScreenProcess) -> None:
        """Hand on what comes from the browser; whoever sends something else is left."""
        with suppress(ValueError, TypeError, LookupError):
            async for message in browser:
                if message.type == WSMsgType.TEXT:
                    await _hand_on(json.loads(message.data), browser, screen)

    @property
    def _cookie(self) -> str:
        """Its name: cookies of one machine are those of all its ports."""
        return f"kb-screen-{self._port}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check(request)
            return await handler(request)
        except RefusedError as error:
            return _refused(request, error)
        except web.HTTPException as error:
            if error.status < HTTPStatus.BAD_REQUEST:
                raise
            return _refused(request, RefusedError(HTTPStatus(error.status), _NOTHING))

    def _check(self, request: web.Request) -> None:
        refuse_other_sites(request.headers, request.method)
        if request.path in OPEN_PATHS:
            return
        self._rates.take(request.remote or "")
        if not self._rules.token:
            refuse_other_names(request.headers)
        elif not self._is_known(request):
            raise unknown_client(request.headers)

    def _is_known(self, request: web.Request) -> bool:
        """By the token in a link to the page, else by the cookie, or as `kb serve` asks."""
        link = request.query.get("token") if request.path == "/" else None
        if link is not None:
            return is_same(link.encode("utf-8", "surrogateescape"), self._rules.token.encode())
        cookie = request.cookies.get(self._cookie, "")
        has_cookie = is_same(cookie.encode("utf-8", "surrogateescape"), self._pass.encode())
        return has_cookie or is_known(request.headers, self._rules.token)


_NOTHING = "there is no such page here; the screen is at /"


async def _hand_on(
    message: Sequence[object], browser: web.WebSocketResponse, screen: ScreenProcess
) -> None:
    match message:
        case ["stdin", str(text)]:
            if data := text.encode("utf-8", "ignore"):  # nothing at all would be the end
                await screen.send_bytes(data)
        case ["resize", {"width": int(width), "height": int(height)}]:
            await screen.set_terminal_size(width, height)
        case ["ping", value]:
            with suppress(ConnectionError):
                await browser.send_json(["pong", value])
        case ["blur", *_]:
            await screen.blur()
        case ["focus", *_]:
            await screen.focus()
        case _:
            raise ValueError(f"{type(message).__name__} is no message of the page")


def _number(request: web.Request, name: str, otherwise: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else otherwise


async def _own_file(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return web.Response(text=_read(name), content_type=kind)


async def _alive(_request: web.Request) -> web.Response:
    return web.Response(text="alive\n")


def _read(name: str) -> str:
    return (_HERE / name).read_text("utf-8")


async def _secure(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in {**HEADERS, "Content-Security-Policy": _POLICY}.items():
        response.headers[name] = value
    response.headers.popall("Server", None)


def _refused(request: web.Request, error: RefusedError) -> web.Response:
    """The refusal as a page for a browser, as JSON for all others."""
    if "text/html" in request.headers.get("accept", ""):
        sentence = html.escape(error.sentence)
        page = f"<!doctype html><title>{error.status:d} - incident-kb</title><p>{sentence}."
        return web.Response(
            text=page, status=error.status, headers=error.headers, content_type="text/html"
        )
    return web.Response(
        text=to_line(Problem(error.sentence)),
        status=error.status,
        headers=error.headers,
        content_type="application/json",
    )


def screen_command(incidents: Sequence[Path]) -> tuple[str, ...]:
    """What starts one screen."""
    given = (word for path in incidents for word in ("--incidents", str(path.absolute())))
    return (sys.executable, "-P", "-m", "kb", "tui", "--in-browser", *given)
