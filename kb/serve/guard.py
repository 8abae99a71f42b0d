"""What every request passes before it is read: who asks, how often, and how much they send."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.serve.refusal import RefusedError, busy, to_response, wrong

MAX_BODY_BYTES = 64 << 20
"""Of one request; a larger job is asked about with `kb ask` where its logs lie."""
MAX_HELD_BYTES = 256 << 20
"""Of all bodies that wait for their answer in one process."""
BODY_SECONDS = 60
"""In which a body arrives; one that trickles in holds nothing longer."""

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Probes of a cluster have no token, and come as often as they like."""
_MAX_DIGITS = 20
"""Of a length; Python refuses a number of thousands."""
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT = re.compile(r":\d*\Z")
_BURST_SECONDS = 2
"""How much of its rate a client may use at once."""
_MAX_CLIENTS = 10_000
"""Whose rate is known; the one that was quiet for the longest time is forgotten."""
_IPV6_BITS_OF_A_CLIENT = 64
"""One customer of a provider has as many addresses as they like below these."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Rules(msgspec.Struct, frozen=True):
    """Who may ask, and how often."""

    token: str
    """Empty only where nobody but this machine can ask."""
    rate: float
    """Requests of one client each second."""


class Guard:
    """Lets through what the rules allow, and adds the headers of security to every answer."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        self._rates = Rates(rules.rate)
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(receive, self)
        secured = _with_headers(send)
        try:
            self._check(HTTPConnection(scope))
            await self._app(scope, body.receive, secured)
        except RefusedError as error:  # before the application, which answers its own
            await to_response(HTTPConnection(scope), error)(scope, receive, secured)
        finally:
            self._held -= body.size

    def hold(self, size: int) -> None:
        """Count bytes that have come.

        Raises:
            RefusedError: there are too many.
        """
        self._held += size
        if self._held > MAX_HELD_BYTES:
            raise busy("too much is being read at the moment; send it again")

    def _check(self, request: HTTPConnection) -> None:
        refuse_other_sites(request.headers, request.scope["method"])
        if request.url.path in OPEN_PATHS:
            return
        self._rates.take(request.client.host if request.client else "")
        if not self._rules.token:
            refuse_other_names(request.headers)
        elif not is_known(request.headers, self._rules.token):
            raise unknown_client(request.headers)
        refuse_announced(request.headers)


class _Body:
    """The body of a request, whose size and time are limited."""

    def __init__(self, receive: Receive, guard: Guard) -> None:
        self.size = 0
        self._receive = receive
        self._guard = guard
        self._due = asyncio.get_running_loop().time() + BODY_SECONDS
        self._ended = False

    async def receive(self) -> Message:
        """The next part."""
        if self._ended:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._due):
                message = await self._receive()
        except TimeoutError:
            sentence = f"the request did not arrive within {BODY_SECONDS} s; send it again"
            raise wrong(sentence, HTTPStatus.REQUEST_TIMEOUT) from None
        self._ended = not message.get("more_body", False)
        self._count(len(message.get("body", b"")))
        return message

    def _count(self, size: int) -> None:
        self.size += size
        self._guard.hold(size)
        if self.size > MAX_BODY_BYTES:
            raise _too_large()


def refuse_announced(headers: Mapping[str, str]) -> None:
    """A body that is too large by what its head says is not waited for.

    Raises:
        RefusedError: it is.
    """
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:_MAX_DIGITS]) > MAX_BODY_BYTES:
        raise _too_large()


def _too_large() -> RefusedError:
    return wrong(
        f"the request has more than {MAX_BODY_BYTES >> 20} MB; send the logs of the ranks"
        " that failed, compressed, or run kb ask where they lie",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    )


class Rates:
    """How many requests each client has left: a bucket that fills with time."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate * _BURST_SECONDS)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, host: str) -> None:
        """Let a client ask once more.

        Raises:
            RefusedError: it has asked too often.
        """
        client = _client(host)
        now = time.monotonic()
        left, since = self._left.pop(client, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        allowed = left >= 1
        self._left[client] = (left - allowed, now)
        if len(self._left) > _MAX_CLIENTS:
            self._left.popitem(last=False)
        if not allowed:
            raise RefusedError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"more than {self._rate:g} requests a second; wait a moment",
                {"Retry-After": "1"},
            )


def _client(host: str) -> str:
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.version == 6:
            return str(ipaddress.ip_network((address, _IPV6_BITS_OF_A_CLIENT), strict=False))
    return host


def refuse_other_sites(headers: Mapping[str, str], method: str) -> None:
    """A page of another site could make a browser ask with the token that it knows. It may link.

    Raises:
        RefusedError: another site asks.
    """
    links = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    if _comes_from_elsewhere(headers) and not links:
        raise wrong("another site may not ask in your name", HTTPStatus.FORBIDDEN)


def _comes_from_elsewhere(headers: Mapping[str, str]) -> bool:
    """By what a browser says of its own; old ones, and all over plain HTTP to other machines, say
    only the origin of what is sent."""
    if site := headers.get("sec-fetch-site"):
        return site == "cross-site"
    return is_of_another_origin(headers)


def is_of_another_origin(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a page of another server asks."""
    origin = headers.get("origin")
    return (
        origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()
    )


def refuse_other_names(headers: Mapping[str, str]) -> None:
    """A site whose name was made to lead to this machine is another site all the same.

    Raises:
        RefusedError: this machine was asked by another name.
    """
    if _PORT.sub("", headers.get("host", "").lower()) not in _LOCAL_NAMES:
        raise wrong("without a token, only http://127.0.0.1 is answered", HTTPStatus.FORBIDDEN)


def is_known(headers: Mapping[str, str], token: str) -> bool:
    """Whether the token was sent: neither it nor its length is told by how long that takes."""
    return is_same(_given(headers), token.encode())


def is_same(given: bytes, expected: bytes) -> bool:
    """Whether two secrets are the same, in constant time."""
    return hmac.compare_digest(hashlib.sha256(given).digest(), hashlib.sha256(expected).digest())


def _given(headers: Mapping[str, str]) -> bytes:
    """The token of a program, or what a person typed as the password."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode()
    if scheme.lower() == "basic":
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(value, validate=True).partition(b":")[2]
    return b""


def unknown_client(headers: Mapping[str, str]) -> RefusedError:
    """What somebody without the token is told; a browser asks for it."""
    is_browser = "text/html" in headers.get("accept", "")
    scheme = 'Basic realm="incident-kb: the token is the password"' if is_browser else "Bearer"
    return RefusedError(
        HTTPStatus.UNAUTHORIZED,
        "no valid token; send the header `Authorization: Bearer TOKEN`",
        {"WWW-Authenticate": scheme},
    )


def _with_headers(send: Send) -> Send:
    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return secured
