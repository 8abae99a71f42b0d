"""Who may ask a server over HTTP: everybody on this machine, or who knows the token."""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from kb.errors import KbError
from kb.files import read_given

VARIABLE = "KB_TOKEN"
"""The environment variable that holds the token: arguments are seen by all users of a machine."""
_MAX_FILE_BYTES = 4_096
_MIN_TOKEN_CHARACTERS = 16
"""A shorter one is guessed."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def token_of_environment() -> str:
    """The token; empty where none is set.

    Raises:
        KbError: it is short, or no header can hold it.
    """
    token = os.environ.get(VARIABLE, "")
    return checked(token, VARIABLE) if token else ""


def token_in(file: Path) -> str:
    """The token that is the first line of a file.

    Raises:
        KbError: it cannot be read, is short, or no header can hold it.
    """
    try:
        data = read_given(file, _MAX_FILE_BYTES)
    except OSError as error:
        raise KbError(f"cannot read {file}: {error.strerror or error}") from error
    return checked(data.decode("utf-8", "replace").partition("\n")[0].strip(), str(file))


def checked(token: str, source: str) -> str:
    """The token.

    Raises:
        KbError: it is short, or no header can hold it.
    """
    fits = len(token) >= _MIN_TOKEN_CHARACTERS and token.isascii() and token.isprintable()
    if not fits:
        raise KbError(
            f"{source} must have at least {_MIN_TOKEN_CHARACTERS} printable ASCII characters;"
            " make one: openssl rand -hex 32"
        )
    return token


def with_token(app: App, token: str) -> App:
    """The application for those who send `Authorization: Bearer TOKEN`. What a wrong one has in
    common with the right one cannot be told from the time of the answer."""
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not hmac.compare_digest(_authorization(scope), wanted):
            await _refuse(send)
        else:
            await app(scope, receive, send)

    return guarded


def _authorization(scope: Scope) -> bytes:
    return next((value for name, value in scope["headers"] if name == b"authorization"), b"")


async def _refuse(send: Send) -> None:
    headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    text = f"send the header: Authorization: Bearer TOKEN, with the {VARIABLE} of the server\n"
    await send({"type": "http.response.body", "body": text.encode()})
