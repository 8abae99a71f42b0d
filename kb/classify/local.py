"""The units of one machine, on all its cores.

Workers are started afresh (`spawn`): Hyperscan, FAISS and ONNX Runtime do not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from kb.classify.cut import files_to_cut, in_order
from kb.classify.result import Outcome, Unreadable
from kb.classify.worker import Worker
from kb.containment import shortage
from kb.diagnosis.scan import RangeScan
from kb.errors import KbError
from kb.log.ranges import Range, cut
from kb.settings import Settings

Given = TypeVar("Given")
Made = TypeVar("Made")

_MAX_QUEUED_PER_WORKER = 4
"""Units per worker that are queued at a time, so that no worker waits; the others stay names."""

_OF_THE_TERMINAL = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that a terminal sends to all processes of a command at once."""
_THAT_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command, and that it handles."""
_SAFE_PATH = "PYTHONSAFEPATH"
"""If set, Python does not look for modules in the working directory, where logs lie that may have
the names of modules."""

_PATIENCE_SECONDS = 1
"""How long to wait for a result before asking whether a thread of the pool is gone."""

_worker: Worker
"""Of this process, when it is one of the pool."""
_missing: str | None = None
"""What the system did not give the worker."""


class _CrashError(Exception):
    """A worker died; one of the `suspects` units caused it."""

    def __init__(self, suspects: Iterable[str]) -> None:
        super().__init__()
        self.suspects = tuple(suspects)


def classify_here(units: Iterable[str], settings: Settings, jobs: int) -> Iterator[Outcome]:
    """Yield the outcome of each unit as soon as it is known, in any order."""
    units = list(units)
    large = files_to_cut(units, jobs)
    queue = deque(unit for unit in units if unit not in large)
    if min(jobs, len(queue)) == 1:
        with Worker(settings) as worker:
            yield from map(worker.classify, queue)
        queue.clear()
    while queue:
        try:
            yield from _in_pool(queue, settings, min(jobs, len(queue)))
        except _CrashError as crash:
            for unit in crash.suspects:
                yield from _alone(unit, settings)
    for unit in large:
        yield from _in_ranges(unit, settings, jobs)


def _alone(unit: str, settings: Settings) -> Iterator[Outcome]:
    try:
        yield from _in_pool(deque([unit]), settings, 1)
    except _CrashError:
        yield Unreadable(unit, f"cannot read {unit}: its worker process died")


def _in_ranges(unit: str, settings: Settings, jobs: int) -> Iterator[Outcome]:
    """Scan a large file with all workers. Whatever one of them fails at, or dies of, the file is
    then read in one go."""
    try:
        with _pool(settings, jobs) as pool:
            ranges = in_order(cut(Path(unit)), jobs, partial(pool.submit, _scan), pool.result)
            with Worker(settings) as worker:
                outcome = worker.diagnose(unit, ranges)
    except Exception:  # noqa: BLE001  whoever reads it in one go says what is wrong
        yield from _alone(unit, settings)
    else:
        yield outcome


def _in_pool(queue: deque[str], settings: Settings, jobs: int) -> Iterator[Outcome]:
    """Classify what is in the queue and take it out."""
    running: dict[Future[Outcome], str] = {}
    try:
        with _pool(settings, jobs) as pool:
            while queue or running:
                while queue and len(running) < jobs * _MAX_QUEUED_PER_WORKER:
                    future = pool.submit(_classify, queue[0])
                    running[future] = queue.popleft()
                for future in pool.done(running):
                    yield future.result()
                    del running[future]
    except BrokenProcessPool as error:
        raise _CrashError(running.values()) from error


class _Pool:
    """Worker processes."""

    def __init__(self, settings: Settings, jobs: int) -> None:
        self._shortages: list[str] = []
        context = multiprocessing.get_context("spawn")
        with _starting_processes():
            self._executor = ProcessPoolExecutor(jobs, context, _start, (settings,))
        threading.excepthook = self._thread_failed

    def submit(self, task: Callable[[Given], Made], given: Given) -> Future[Made]:
        """Have a worker do something.

        Raises:
            BrokenProcessPool: a worker died, perhaps while another one was started.
            OSError: the system does not give what a worker needs.
        """
        with _starting_processes():
            try:
                return self._executor.submit(task, given)
            except OSError as error:
                if error.errno is None:  # not of the system: a pipe of the pool is closed
                    raise BrokenProcessPool(str(error)) from error
                raise

    def done(self, futures: Iterable[Future[Made]]) -> set[Future[Made]]:
        """Those that are done, as soon as one is.

        Raises:
            BrokenProcessPool: a worker died, and it may be that none will ever be done: one that is
                submitted at that moment is not told of it.
            KbError: the system does not give what the pool needs.
        """
        while not (found := wait(futures, _PATIENCE_SECONDS, FIRST_COMPLETED).done):
            if self._shortages:
                raise KbError(self._shortages[0])
            if self._executor._broken:
                raise BrokenProcessPool("a worker died")
        return found

    def result(self, future: Future[Made]) -> Made:
        """What a worker made.

        Raises:
            BrokenProcessPool: a worker died.
            KbError: the system does not give what the pool needs.
        """
        (done,) = self.done([future])
        return done.result()

    def shutdown(self) -> None:
        """End the workers when they are done."""
        self._executor.shutdown()

    def terminate(self) -> None:
        """End the workers at once."""
        for process in list((self._executor._processes or {}).values()):
            process.kill()  # one that is stopped, or hangs, hears nothing else

    def _thread_failed(self, failed: threading.ExceptHookArgs) -> None:
        """A thread of the pool that ends leaves others waiting for what it was to do. While the
        pool breaks, the thread fails at workers that are started meanwhile."""
        sentence = shortage(failed.exc_value) if failed.exc_value else None
        if sentence:
            self._shortages.append(sentence)
        elif not self._executor._broken:
            threading.__excepthook__(failed)


@contextmanager
def _pool(settings: Settings, jobs: int) -> Iterator[_Pool]:
    """Worker processes that end with the block."""
    _leave_lost_directory()
    pool = _Pool(settings, jobs)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        # Interrupted, and nobody waits for a worker that is reading gigabytes; or broken, and one
        # that was started meanwhile waits for work for ever.
        pool.terminate()
        raise


def _leave_lost_directory() -> None:
    """No process can be started in a directory that was deleted, and no path leads from there."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        os.chdir("/")


@contextmanager
def _starting_processes() -> Iterator[None]:
    """Hold back what the terminal sends, and look for modules only where this process does: a
    process inherits both. So this one alone hears Ctrl-C, and decides; the others end with it."""
    with _signals_put_off():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_TERMINAL)
        was_safe = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            os.environ.pop(_SAFE_PATH)
            if was_safe is not None:
                os.environ[_SAFE_PATH] = was_safe
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _signals_put_off() -> Iterator[None]:
    """Leave no process half started: what a signal does is done afterwards. To hold it back is not
    enough, because another thread may take it, and Python then handles it in the main one."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread handles signals
        return
    put_off: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _frame: put_off.append(number))
        for number in _THAT_END
        if callable(signal.getsignal(number))
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for late in put_off:
        signal.raise_signal(late)


def _start(settings: Settings) -> None:
    global _worker, _missing
    try:
        threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()
        _worker = Worker(settings)
    except BaseException as error:
        _missing = shortage(error)
        if _missing is None:
            raise


def _end_with_parent() -> None:
    """Wait for the parent to end, however it does: a worker that waits for work would not notice,
    because it holds both ends of the pipe that the work comes through."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _classify(unit: str) -> Outcome:
    if _missing:
        raise KbError(_missing)
    return _worker.classify(unit)


def _scan(part: Range) -> RangeScan:
    if _missing:
        raise KbError(_missing)
    return _worker.scan(part)
