"""Sends JSON to a webhook that the user named. Its path is often the secret by which one may send,
so nothing here says it."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import msgspec

from kb.containment import reason
from kb.errors import KbError

_SECONDS = 10
"""Of one try."""
_MAX_REPLY_BYTES = 1 << 16
"""Read of the reply, and not looked at."""


def check_url(url: str, of: str = "the webhook") -> None:
    """Find out before the work whether one can send to a URL; `of` says whose it is.

    Raises:
        KbError: one cannot.
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise KbError(f"the URL of {of} holds a space or a sign that no URL has; quote it")
    try:
        parts = urlsplit(url)
        is_good = bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a bracket or a port
        is_good = False
    if not is_good:
        raise KbError(f"the URL of {of} names no host or no port; write https://HOST/PATH")
    if parts.username is not None:
        raise KbError(f"the URL of {of} holds a user name, which kb does not send")


def post(url: str, body: object) -> None:
    """Send one message.

    Raises:
        KbError: the receiver did not take it.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "kb"}
    data = msgspec.json.encode(body)
    try:
        request = urllib.request.Request(url, data, headers)  # noqa: S310  of http and https only
        with urllib.request.urlopen(request, timeout=_SECONDS) as reply:  # noqa: S310
            reply.read(_MAX_REPLY_BYTES)
    except (http.client.InvalidURL, ValueError) as error:
        raise KbError("its URL is not valid") from error
    except urllib.error.HTTPError as error:
        raise KbError(f"status {error.code}") from error
    except (OSError, http.client.HTTPException) as error:
        raise KbError(reason(error)) from error
