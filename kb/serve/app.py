"""The application: what answers under which path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from index.progress import Notify
from kb.errors import KbError, LogError
from kb.serve.alerts import Alerts, Links
from kb.serve.chat import Chat
from kb.serve.diagnoses import Diagnoses
from kb.serve.guard import Guard, Rules
from kb.serve.library import Library
from kb.serve.mcp import PATH, mcp_app
from kb.serve.metrics import Metrics, Timed
from kb.serve.openapi import description
from kb.serve.pages import WebPages
from kb.serve.refusal import RefusedError, to_response
from kb.serve.respond import json_response
from kb.serve.talks import FileTalks, Talks
from kb.serve.turns import Turns
from kb.service.service import Service
from kb.settings import Settings

_OPEN_AGAIN_SECONDS = 1.0
"""After the records could not be opened."""
_WORDS = {
    HTTPStatus.NOT_FOUND: "there is no such page; /openapi.json lists the paths",
    HTTPStatus.METHOD_NOT_ALLOWED: "this path does not know this method; see /openapi.json",
}


class Options(msgspec.Struct, frozen=True):
    """How to serve."""

    settings: Settings
    rules: Rules
    talks: Path | str
    """The file of the conversations, or the URL of a PostgreSQL that holds them."""


def make_app(options: Options, notify: Notify) -> Starlette:
    """The application of one process, with a service of its own."""
    metrics = Metrics()
    turns = Turns(Service(options.settings, notify=notify))
    library = Library(turns)
    diagnoses = Diagnoses(turns, metrics)
    pages = WebPages(turns, diagnoses, library)
    links = Links(options.settings.alerts_to, options.settings.public_url)
    talks = _opened_talks(options.talks, notify)
    mcp = mcp_app(turns.service, loopback=not options.rules.token, talks=talks)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        try:
            await _opened(turns.service, notify)
            async with mcp.running():
                yield
        finally:
            turns.close()

    async def scrape(request: Request) -> Response:
        return await metrics.page(request, turns)

    routes = [
        Route("/v1/diagnose", diagnoses.diagnose, methods=["POST"]),
        Route("/v1/classify", diagnoses.classify, methods=["POST"]),
        Route("/v1/chat", Chat(turns, talks).reply, methods=["POST"]),
        Route("/v1/alerts", Alerts(diagnoses, links).answer, methods=["POST"]),
        Route("/v1/records", library.list),
        Route("/v1/records/{id}", library.one),
        Route("/v1/search", library.search),
        Route("/healthz", _alive),
        Route("/readyz", _ready),
        Route("/metrics", scrape),
        Route(PATH, mcp.asgi),
        Route("/openapi.json", _openapi),
        Route("/", pages.home),
        Route("/ask", pages.ask, methods=["GET", "POST"]),
        Route("/records", pages.records),
        Route("/search", pages.search),
        Route("/style.css", pages.style),
        *(
            Route(f"/{directory}/{{id}}", pages.record)
            for directory in ("incidents", "checks", "playbooks")
        ),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Timed, metrics), Middleware(Guard, options.rules)],
        exception_handlers=_handlers(notify),
    )


def _opened_talks(place: Path | str, notify: Notify) -> Talks:
    if isinstance(place, Path):
        return FileTalks(place, notify)
    from kb.serve.postgres_talks import PostgresTalks

    return PostgresTalks(place, notify)


def _handlers(notify: Notify) -> Mapping[Any, Callable[[Request, Any], Response]]:
    """What each error becomes."""

    def refused(request: Request, error: RefusedError) -> Response:
        return to_response(request, error)

    def unreadable(request: Request, error: LogError) -> Response:
        return to_response(request, RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)))

    def failed(request: Request, error: KbError) -> Response:
        notify(str(error))
        sentence = "the server cannot use its records; its messages say why"
        return to_response(request, RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, sentence))

    def http(request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        sentence = _WORDS.get(status, error.detail)
        return to_response(request, RefusedError(status, sentence, error.headers or {}))

    def unforeseen(request: Request, _error: Exception) -> Response:
        sentence = "something went wrong that nobody foresaw; the server's messages say what"
        return to_response(request, RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, sentence))

    return {
        RefusedError: refused,
        LogError: unreadable,
        KbError: failed,
        HTTPException: http,
        Exception: unforeseen,
    }


async def _alive(_request: Request) -> Response:
    return PlainTextResponse("alive\n")


async def _ready(_request: Request) -> Response:
    return PlainTextResponse("ready\n")


async def _opened(service: Service, notify: Notify) -> None:
    """Wait until the records can be used. A process that cannot take requests listens to none; a
    directory of records may be away for a while."""
    told = ""
    while True:
        try:
            await asyncio.wrap_future(service.open())
        except KbError as error:
            if str(error) != told:
                told = str(error)
                notify(f"{told}; this process answers nothing until it can be used")
            await asyncio.sleep(_OPEN_AGAIN_SECONDS)
        else:
            return


async def _openapi(_request: Request) -> Response:
    return json_response(_description())


@cache
def _description() -> dict[str, Any]:
    return description()
