"""Tells others of what is news, in a thread of its own: a receiver that is slow or gone never stops
the watch."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

import msgspec

from index.progress import Notify
from kb.containment import reason
from kb.errors import KbError, MissingExtraError, short_name
from kb.watch.event import Event
from kb.webhook import check_url, post

_PAUSES_SECONDS = (1, 5, 25)
"""Before the second try and those that follow: as long as a receiver needs to start again."""
_MAX_WAITING = 100
"""Messages that wait; more of them are lost, and that is said."""
_LAST_SECONDS = 15
"""How long to wait at the end for what was not sent so far."""


class Payload(msgspec.Struct, frozen=True):
    """What a webhook gets, as JSON."""

    text: str
    """One line for people, under the name that chats look for."""
    event: Event


class Notifier:
    """Sends to each URL what it is told."""

    def __init__(self, urls: Sequence[str], notify: Notify) -> None:
        """
        Raises:
            KbError: a URL cannot be used.
        """
        self._receivers = [_Receiver(url, notify) for url in dict.fromkeys(urls)]

    def tell(self, text: str, event: Event) -> None:
        """Send it soon."""
        for receiver in self._receivers:
            receiver.put(Payload(text, event))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for what is not sent so far, but not for ever."""
        until = time.monotonic() + _LAST_SECONDS
        for receiver in self._receivers:
            receiver.end(until)


class _Receiver:
    """One URL, and what waits to be sent to it."""

    def __init__(self, url: str, notify: Notify) -> None:
        self._send = sender(url)
        self._name = _without_path(url)
        self._notify = notify
        self._waiting: queue.Queue[Payload | None] = queue.Queue(_MAX_WAITING)
        self._lost = 0
        self._failing = False
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="notify", daemon=True)
        self._thread.start()

    def put(self, payload: Payload) -> None:
        """Send it after the others."""
        try:
            self._waiting.put_nowait(payload)
        except queue.Full:
            self._lost += 1

    def end(self, until: float) -> None:
        """Send what waits, and say what was lost."""
        self._ending.set()
        waiting = self._waiting.qsize()
        with suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(max(until - time.monotonic(), 0))
        if self._thread.is_alive():
            self._lost += max(waiting, 1)
        if self._lost:
            messages = "1 message was" if self._lost == 1 else f"{self._lost} messages were"
            self._notify(f"{messages} not sent to {self._name}")

    def _work(self) -> None:
        while (payload := self._waiting.get()) is not None:
            if not self._sent(payload):
                self._lost += 1

    def _sent(self, payload: Payload) -> bool:
        for pause in (0, *_PAUSES_SECONDS):
            if pause and self._ending.wait(pause) and pause > 1:
                return False  # at the end there is one more try
            try:
                self._send(payload)
            except Exception as error:  # noqa: BLE001  whatever a receiver does, the watch goes on
                self._fail(error)
            else:
                self._failing = False
                return True
        return False

    def _fail(self, error: Exception) -> None:
        """Said once, until it works again."""
        if not self._failing:
            self._failing = True
            self._notify(f"cannot send to {self._name}: {_why(error)}; kb tries again")


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, KbError) else reason(error)


def sender(url: str) -> Callable[[Payload], None]:
    """What sends to a URL: a webhook, or whatever Apprise knows.

    Raises:
        KbError: it is no URL of a webhook, and Apprise does not know it or is not installed.
    """
    scheme = url.partition(":")[0].lower() if ":" in url else ""
    if scheme in ("http", "https"):
        check_url(url)
        return lambda payload: post(url, payload)
    if not scheme:
        raise KbError(f"{short_name(url)} is no URL; write https://HOST/PATH")
    return _by_apprise(url)


def _by_apprise(url: str) -> Callable[[Payload], None]:
    try:
        import apprise
    except ImportError:
        raise MissingExtraError(f"{_without_path(url)} needs Apprise", "notify") from None
    service = apprise.Apprise()
    if not service.add(url):
        raise KbError(f"Apprise does not know {_without_path(url)}; see the list of its services")

    def send(payload: Payload) -> None:
        if not service.notify(title="kb watch", body=payload.text):
            raise KbError("Apprise could not send it")

    return send


def _without_path(url: str) -> str:
    """The kind and host of a URL: what follows them is often the secret by which one may send."""
    scheme = url.partition("://")[0]
    host = urlsplit(url).hostname if scheme.lower() in ("http", "https") else "..."
    return f"{scheme}://{host}"
