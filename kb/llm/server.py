"""Asks the server that the user named, in threads of its own: nobody waits for it who does not
want to. `openai` is imported here, and takes longer to load than an answer of kb."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec

from kb.errors import MissingExtraError, SettingsError
from kb.settings import LlmSettings
from kb.webhook import check_url

if TYPE_CHECKING:
    from httpx2 import Request, Response
    from openai import OpenAI

_SENT_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
    }
)
"""All that a server needs to know; the client tells it more about this machine by itself."""


UNREADABLE = "the answer of its server could not be read"


class Ended(msgspec.Struct, frozen=True):
    """Nothing more comes."""

    why: str = ""
    """What went wrong, in a few words; empty at the end of a whole answer."""


Event = str | Ended
"""A piece of an answer, or its end."""


class Answer:
    """An answer that comes; `stop` when it is not wanted any more."""

    def __init__(self) -> None:
        self.events: SimpleQueue[Event] = SimpleQueue()
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._response: Response | None = None

    def opened(self, response: Response) -> None:
        """It begins to come."""
        with self._lock:
            self._response = response
        if self.stopped.is_set():
            self.stop()

    def stop(self) -> None:
        """Close the connection, so that a server that sends for ever reaches nobody."""
        self.stopped.set()
        with self._lock, suppress(Exception):
            if self._response is not None:
                self._response.close()


class Server:
    """One server, and no other host: proxies and redirects are not followed."""

    def __init__(self, settings: LlmSettings) -> None:
        """Find out before the first request whether one can be made.

        Raises:
            KbError: the client is not installed, the URL is none, or the key is missing.
        """
        check_url(settings.url, "the voice in the configuration")
        if find_spec("openai") is None:
            raise MissingExtraError("the voice needs the client of the model's server", "llm")
        self._settings = settings
        self._key = _key(settings)
        self._loading = threading.Lock()
        self._mine = threading.local()
        self._start(self._load)

    def ask(self, request: dict[str, Any]) -> Answer:
        """Send a request; what comes, and how it ended, is in the answer."""
        answer = Answer()
        self._start(lambda: self._answer(request, answer))
        return answer

    def _start(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="voice", daemon=True).start()

    def _load(self) -> None:
        with suppress(Exception), self._loading:
            _ = self._client.chat.completions

    def _answer(self, request: dict[str, Any], answer: Answer) -> None:
        try:
            for piece in self._pieces(request, answer):
                answer.events.put(piece)
            answer.events.put(Ended())
        except Exception as error:  # noqa: BLE001  whatever a server does, kb answers by itself
            answer.events.put(Ended(_why(error)))
        finally:
            answer.stop()

    def _pieces(self, request: dict[str, Any], answer: Answer) -> Iterator[str]:
        with self._loading:
            client = self._client
        self._mine.answer = answer
        for chunk in client.chat.completions.create(**request):
            if answer.stopped.is_set():
                return
            for choice in chunk.choices[:1]:
                if isinstance(choice.delta.content, str):
                    yield choice.delta.content

    @cached_property
    def _client(self) -> OpenAI:
        from openai import DefaultHttpxClient, OpenAI, Timeout

        seconds = self._settings.wait_seconds
        return OpenAI(
            api_key=self._key or "none",
            base_url=self._settings.url,
            max_retries=0,
            timeout=Timeout(seconds),
            http_client=DefaultHttpxClient(
                trust_env=False,
                follow_redirects=False,
                event_hooks={"request": [self._keep_needed_headers], "response": [self._opened]},
            ),
        )

    def _opened(self, response: Response) -> None:
        """Before anything of its body is read, of an error too."""
        answer: Answer = self._mine.answer
        answer.opened(response)

    def _keep_needed_headers(self, request: Request) -> None:
        for name in list(request.headers):
            if name.lower() not in _SENT_HEADERS:
                del request.headers[name]
        request.headers["Accept-Encoding"] = "identity"
        if not self._key:
            request.headers.pop("Authorization", None)


def _key(settings: LlmSettings) -> str | None:
    if settings.key_variable is None:
        return None
    key = os.environ.get(settings.key_variable, "")
    if not (key and key.isascii() and key.isprintable()):
        raise SettingsError(
            f"the key of the voice is not set; put it into the variable {settings.key_variable},"
            " which `key_variable` in the configuration names"
        )
    return key


def _why(error: Exception) -> str:
    if isinstance(error, ImportError):
        return "its client is damaged"
    import openai

    if isinstance(error, openai.APIStatusError):
        return f"its server answered with status {error.status_code}"
    if isinstance(error, openai.APITimeoutError):
        return "its server did not answer in time"
    if isinstance(error, openai.APIConnectionError):
        return "its server cannot be reached"
    return UNREADABLE
