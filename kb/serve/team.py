"""Several processes that answer at one socket, and who looks after them."""

from __future__ import annotations

import multiprocessing
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait

from uvicorn import Config, Server

from index.progress import Notify
from kb.errors import KbError

_HUNG_SECONDS = 30
"""A process that does not answer its parent for so long hangs; building an index takes less."""
_LOOK_SECONDS = 0.5
"""How long until the processes are asked again how they are."""
_LAST_LOOK_SECONDS = 0.5
"""How long a process that is to end may take to say how it is: one that loads says nothing."""
_OF_ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that a terminal, or what manages services, sends to all processes at once."""
_GO_ON = True
"""What a worker is told when it is asked how it is; else it is to end."""
_MAX_SIGNALS = 100
"""That are taken at a time; the others wait."""

_SPAWN = multiprocessing.get_context("spawn")


class Worker:
    """A process that answers. It ends when its parent says so, who alone hears signals."""

    def __init__(self, config: Config, listening: socket.socket) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._asked_at: float | None = None
        self.process = _SPAWN.Process(target=_work, args=(config, listening, theirs))
        self.is_ready = False
        self.is_leaving = False
        resource_tracker.ensure_running()  # whose start lets INT through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_ALL)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def look(self) -> None:
        """See whether it is ready; end it if it hangs."""
        with suppress(EOFError, OSError):  # it has died, which its sentinel tells
            if self._asked_at and self._pipe.poll():
                self.is_ready = self._pipe.recv()
                self._asked_at = None
            if self._asked_at is None:
                self._pipe.send(_GO_ON)
                self._asked_at = time.monotonic()
        if self._asked_at and time.monotonic() - self._asked_at > _HUNG_SECONDS:
            self.process.kill()

    def end(self) -> None:
        """Let it answer what it has; one that is not ready has nothing."""
        self.is_leaving = True
        if self.is_ready or self._is_ready_now():
            with suppress(OSError):  # it has died
                self._pipe.send(not _GO_ON)
        else:
            self.process.kill()

    def _is_ready_now(self) -> bool:
        """Ask it once more: it may have become ready, and taken a request, since it was asked."""
        with suppress(EOFError, OSError):
            if self._asked_at and self._pipe.poll(_LAST_LOOK_SECONDS):
                self._pipe.recv()  # how it was then
            self._pipe.send(_GO_ON)
            return self._pipe.poll(_LAST_LOOK_SECONDS) and bool(self._pipe.recv())
        return False


def _work(config: Config, listening: socket.socket, parent: Connection) -> None:
    server = Server(config)
    threading.Thread(target=_answer, args=(parent, server), daemon=True).start()
    server.run([listening])


def _answer(parent: Connection, server: Server) -> None:
    """Tell the parent, whenever it asks, whether requests are answered, until it says to end."""
    with suppress(EOFError, OSError):
        while parent.recv() == _GO_ON:
            parent.send(server.started)
        server.should_exit = True


class Team:
    """As many workers as are wanted: who dies is replaced."""

    def __init__(
        self, start: Callable[[], Worker], number: int, listening: socket.socket, notify: Notify
    ) -> None:
        """Each worker that is started has `listening` as well."""
        self._start = start
        self._listening = listening
        self._number = number
        self._notify = notify
        self._workers: list[Worker] = []
        self._outdated: list[Worker] = []

    def run(self) -> int:
        """Work until INT or TERM comes, and return which. A second INT waits for no request.

        Raises:
            KbError: no worker can start.
        """
        with _signals() as signals:
            try:
                self._workers = [self._start() for _ in range(self._number)]
                ending = self._work(signals)
                self._end(signals)
            finally:
                for worker in self._workers:
                    worker.process.kill()
                    worker.process.join()
        return ending

    def _work(self, signals: socket.socket) -> int:
        while True:
            for number in self._await(signals):
                if number != signal.SIGHUP:
                    return number
                self._outdated = list(self._active)
            for worker in self._workers:
                worker.look()
            for worker in self._take_dead():
                self._replace(worker)
            self._renew()

    def _end(self, signals: socket.socket) -> None:
        self._listening.close()  # else what is asked from now on would wait for nobody
        for worker in self._workers:
            worker.end()
        while self._workers:
            if signal.SIGINT in self._await(signals):
                return
            self._take_dead()

    def _await(self, signals: socket.socket) -> bytes:
        """The signals that came, as soon as there is one, or news of a worker."""
        ends = [worker.process.sentinel for worker in self._workers]
        came = wait([signals, *ends], _LOOK_SECONDS)
        return signals.recv(_MAX_SIGNALS) if signals in came else b""

    @property
    def _active(self) -> list[Worker]:
        return [worker for worker in self._workers if not worker.is_leaving]

    def _take_dead(self) -> list[Worker]:
        dead = [worker for worker in self._workers if not worker.process.is_alive()]
        self._workers = [worker for worker in self._workers if worker not in dead]
        self._outdated = [worker for worker in self._outdated if worker not in dead]
        return [worker for worker in dead if not worker.is_leaving]

    def _replace(self, dead: Worker) -> None:
        name = f"process {dead.process.pid}"
        has_failed = not dead.is_ready and bool(dead.process.exitcode and dead.process.exitcode > 0)
        if len(self._active) >= self._number:
            self._outdated.clear()
            self._notify(f"the new {name} did not start; the old ones go on")
        elif has_failed and not any(worker.is_ready for worker in self._active):
            raise KbError(f"{name} of the server cannot start; its message is above")
        else:
            self._notify(f"{name} of the server died; another takes its place")
            self._workers.append(self._start())

    def _renew(self) -> None:
        """Take a step towards new workers in the place of those that are outdated: each goes when
        the next one is ready."""
        if len(self._active) < len(self._workers) or not all(one.is_ready for one in self._workers):
            return
        if len(self._workers) > self._number:
            leaving = (self._outdated or self._workers)[0]
            self._outdated = [worker for worker in self._outdated if worker is not leaving]
            leaving.end()
        elif self._outdated:
            self._workers.append(self._start())


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """Where INT, TERM and HUP come, a byte each, within the block: nothing is interrupted half
    way. INT and TERM that were switched off stay so; HUP ends nothing here."""
    ending = (signal.SIGINT, signal.SIGTERM)
    heard = [number for number in ending if signal.getsignal(number) is not signal.SIG_IGN]
    numbers = (*heard, signal.SIGHUP)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        handlers = {number: signal.signal(number, lambda *_: None) for number in numbers}
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield ours
        finally:
            signal.set_wakeup_fd(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
