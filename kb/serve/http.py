"""Listens, and runs the application in one process or several."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from uvicorn import Config, Server
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from index.progress import Notify
from kb.serve.app import Options, make_app
from kb.serve.mcp import PATH
from kb.serve.messages import tell_by
from kb.serve.metrics import SHARED_DIRECTORY
from kb.serve.team import Team, Worker

HEADER_SECONDS = 10
"""In which the head of a request arrives, from when the connection is there or its last answer is
sent; so long may an idle connection live."""
LAST_CALL_SECONDS = 1
"""At the end: who has just sent a request on a connection that was idle is still answered."""
MAX_CONNECTIONS = 1_000
"""Of one process. For a further one, one that asks nothing is closed."""
MAX_HEAD_BYTES = 16_384
"""Of the line and the headers of a request."""
END_SECONDS = 40
"""At the end: how long open requests have, which is longer than any answer may take."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL = 128
"""Added to the number of the signal in the exit code, as in shells."""
_OPEN_FILES = 65_536
_BACKLOG = 2_048


def serve(options: Options, listening: socket.socket, workers: int, notify: Notify) -> None:
    """Answer until a signal comes; what was asked by then is still answered."""
    _allow_many_connections()
    tell_by(notify, "uvicorn.error")
    config = Config(
        partial(_in_process, options, notify),
        factory=True,
        http=PatientProtocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=HEADER_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
    )
    if workers == 1:
        _Server(config, options).run([listening])
        return
    with TemporaryDirectory(prefix="kb-metrics-") as shared:
        os.environ[SHARED_DIRECTORY] = shared
        ending = Team(partial(Worker, config, listening), workers, listening, notify).run()
    raise SystemExit(_BY_SIGNAL + ending)


def _in_process(options: Options, notify: Notify) -> Any:
    threading.Thread(target=_end_with_parent, args=(options,), daemon=True).start()
    tell_by(notify, "uvicorn.error")
    return make_app(options, notify)


def _end_with_parent(options: Options) -> None:
    """Wait for the parent to end, however it does, and remove what it could not: with nobody in
    charge, a worker would hold the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        shutil.rmtree(os.environ[SHARED_DIRECTORY], ignore_errors=True)
        _forget_talks(options)
        os._exit(1)


def _forget_talks(options: Options) -> None:
    """Remove the conversations that are to live no longer than the server."""
    if isinstance(options.talks, Path) and not options.settings.history:
        shutil.rmtree(options.talks.parent, ignore_errors=True)


class _Server(Server):
    """The only process. What a second Ctrl-C cancelled, the libraries would tell of at length."""

    def __init__(self, config: Config, options: Options) -> None:
        super().__init__(config)
        self._options = options

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Those of the library, and HUP, which a lost terminal sends; but none that was switched
        off."""
        before = {number: signal.getsignal(number) for number in _ENDING}
        with super().capture_signals():
            for number, handler in before.items():
                ignored = handler is signal.SIG_IGN
                signal.signal(number, signal.SIG_IGN if ignored else self.handle_exit)
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End after what is asked; at once on a second Ctrl-C, and while nothing can be asked."""
        if not self.started or (self.should_exit and sig == signal.SIGINT):
            _forget_talks(self._options)
            os._exit(_BY_SIGNAL + sig)
        super().handle_exit(sig, frame)


def _allow_many_connections() -> None:
    """The usual limit of 1,024 open files is meant for programs of a person."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class PatientProtocol(H11Protocol):
    """Has patience with requests that arrive when the server ends, and none with those that never
    come whole."""

    _ending = False
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._await_request(HEADER_SECONDS)
        if len(self.connections) > MAX_CONNECTIONS:
            others = (one for one in self.connections if isinstance(one, PatientProtocol))
            idle = next((one for one in others if one is not self and not one.is_busy), self)
            idle.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        if self._due:
            self._due.cancel()

    def data_received(self, data: bytes) -> None:
        """Take what came; at the end, the answer says that it is the last one."""
        super().data_received(data)
        if self._ending and self.is_busy:
            self._answer_last()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._await_request(HEADER_SECONDS)

    def shutdown(self) -> None:
        """End after the answer, or soon if nothing is asked."""
        self._ending = True
        if self.is_busy:
            self._answer_last()
            if self.scope["method"] == "GET" and self.scope["path"] == PATH:
                self.loop.call_later(LAST_CALL_SECONDS, self.transport.close)  # it has no end
        else:
            self._await_request(LAST_CALL_SECONDS)

    @property
    def is_busy(self) -> bool:
        """Whether a request is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _answer_last(self) -> None:
        self.cycle.keep_alive = False
        self.scope["headers"] = [
            *self.scope["headers"],
            CLOSE_HEADER,
        ]  # so uvicorn tells the client

    def _await_request(self, seconds: float) -> None:
        if self._due:
            self._due.cancel()
        self._due = self.loop.call_later(seconds, self._close_unless_asked, self.cycle)

    def _close_unless_asked(self, before: object) -> None:
        if self.cycle is before or self.transport.is_closing():
            self.transport.abort()
