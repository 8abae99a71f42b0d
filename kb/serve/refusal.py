"""What a request is refused with: one sentence for whoever asked, and a status that says whether
asking again helps."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response

from kb.views.web import Pages

RETRY_SECONDS = 1
"""When to ask again after an overload, which passes as quickly as requests are answered."""

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class RefusedError(Exception):
    """The request is not answered; another one may be."""

    def __init__(
        self, status: HTTPStatus, sentence: str, headers: Mapping[str, str] = _NO_HEADERS
    ) -> None:
        self.status = status
        self.sentence = sentence
        self.headers = headers
        super().__init__(sentence)


class Problem(msgspec.Struct, frozen=True):
    """The body of every answer that is none."""

    error: str
    """One sentence: what is wrong, and what to do."""


def busy(why: str) -> RefusedError:
    """Too much is asked at the moment."""
    return RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, why, {"Retry-After": str(RETRY_SECONDS)})


def wrong(sentence: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> RefusedError:
    """The request itself is wrong."""
    return RefusedError(status, sentence)


def not_found(sentence: str) -> RefusedError:
    """There is nothing of this name."""
    return RefusedError(HTTPStatus.NOT_FOUND, sentence)


def to_response(request: HTTPConnection, error: RefusedError) -> Response:
    """The refusal as a page for a browser, as JSON for all others."""
    if "text/html" in request.headers.get("accept", ""):
        depth = request.url.path.count("/") - 1
        root = "../" * depth or "./"
        page = Pages().make("problem", root, status=error.status, sentence=error.sentence)
        return HTMLResponse(page, error.status, error.headers)
    body = msgspec.json.encode(Problem(error.sentence))
    return Response(body, error.status, error.headers, "application/json")
