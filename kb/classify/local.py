"""The units of one machine, on all its cores.

Workers are started afresh (`spawn`): Hyperscan, FAISS and ONNX Runtime do not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from kb.classify.result import Outcome, Unreadable
from kb.classify.worker import Worker
from kb.settings import Settings

_MAX_QUEUED_PER_WORKER = 4
"""Units per worker that are queued at a time, so that no worker waits; the others stay names."""

_worker: Worker
"""Of this process, when it is one of the pool."""


class _CrashError(Exception):
    """A worker died; one of the `suspects` units caused it."""

    def __init__(self, suspects: Iterable[str]) -> None:
        super().__init__()
        self.suspects = tuple(suspects)


def classify_here(units: Iterable[str], settings: Settings, jobs: int) -> Iterator[Outcome]:
    """Yield the outcome of each unit as soon as it is known, in any order."""
    queue = deque(units)
    if min(jobs, len(queue)) == 1:
        with Worker(settings) as worker:
            yield from map(worker.classify, queue)
        return
    while queue:
        try:
            yield from _in_pool(queue, settings, min(jobs, len(queue)))
        except _CrashError as crash:
            for unit in crash.suspects:
                yield from _alone(unit, settings)


def _alone(unit: str, settings: Settings) -> Iterator[Outcome]:
    try:
        yield from _in_pool(deque([unit]), settings, 1)
    except _CrashError:
        yield Unreadable(unit, f"cannot read {unit}: its worker process died")


def _in_pool(queue: deque[str], settings: Settings, jobs: int) -> Iterator[Outcome]:
    """Classify what is in the queue and take it out."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, _start, (settings,))
    running: dict[Future[Outcome], str] = {}
    try:
        while queue or running:
            while queue and len(running) < jobs * _MAX_QUEUED_PER_WORKER:
                future = pool.submit(_classify, queue[0])
                running[future] = queue.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield future.result()
                del running[future]
        pool.shutdown()
    except BrokenProcessPool as error:
        raise _CrashError(running.values()) from error
    except BaseException:
        # Interrupted: do not wait for a worker that is reading gigabytes.
        for process in multiprocessing.active_children():
            process.terminate()
        raise


def _start(settings: Settings) -> None:
    global _worker
    # Ctrl-C reaches every process of the terminal; the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _worker = Worker(settings)


def _classify(unit: str) -> Outcome:
    return _worker.classify(unit)
