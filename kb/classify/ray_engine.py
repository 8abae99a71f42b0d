"""The units of a cluster: every node that can read them takes part.

Ray runs a task again elsewhere if its worker or node dies. Every node needs `incident-kb[ray]`
and the files under the same paths.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from kb.classify.cut import files_to_cut, in_order
from kb.classify.result import Outcome, Unreadable
from kb.classify.worker import Worker
from kb.diagnosis.scan import RangeScan
from kb.errors import KbError, MissingExtraError
from kb.log.ranges import Range, cut
from kb.settings import Settings

try:
    import ray
except ImportError as error:
    raise MissingExtraError("--engine ray needs Ray", "ray") from error

_MAX_QUEUED_PER_CORE = 4
"""Units per core that are queued at a time, so that no worker waits for the network."""
_MAX_RETRIES = 3
"""Retries of a unit whose worker died; a unit that kills each of its workers is unreadable."""


def classify_on_ray(units: Iterable[str], settings: Settings, jobs: int) -> Iterator[Outcome]:
    """Yield the outcome of each unit as soon as it is known, in any order.

    Uses the cluster at `RAY_ADDRESS`, otherwise a cluster that runs on this machine, otherwise
    starts `jobs` workers here.
    """
    _connect(jobs)
    try:
        units = list(units)
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        large = files_to_cut(units, cores)
        yield from _run(deque(unit for unit in units if unit not in large), settings, cores)
        for unit in large:
            yield from _in_ranges(unit, settings, cores)
    finally:
        ray.shutdown()


def _in_ranges(unit: str, settings: Settings, cores: int) -> Iterator[Outcome]:
    """Scan a large file on all nodes. Whatever one of them fails at, the file is then read in one
    go."""
    task = ray.remote(max_retries=_MAX_RETRIES, num_cpus=1)(_scan)
    scan = partial(task.remote, incidents=settings.incidents, model=settings.model)
    try:
        with Worker(settings) as worker:
            outcome = worker.diagnose(unit, in_order(cut(Path(unit)), cores, scan, ray.get))
    except Exception:  # noqa: BLE001  whoever reads it in one go says what is wrong
        yield from _run(deque([unit]), settings, cores)
    else:
        yield outcome


def _run(queue: deque[str], settings: Settings, cores: int) -> Iterator[Outcome]:
    task = ray.remote(max_retries=_MAX_RETRIES, num_cpus=1)(_classify)
    window = _MAX_QUEUED_PER_CORE * cores
    running: dict[Any, str] = {}
    while queue or running:
        while queue and len(running) < window:
            unit = queue.popleft()
            running[task.remote(unit, settings.incidents, settings.model)] = unit
        for done in ray.wait(list(running))[0]:
            yield _outcome(done, running.pop(done))


def _outcome(done: Any, unit: str) -> Outcome:
    try:
        outcome: Outcome = ray.get(done)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().rpartition("\n")[2]
        return Unreadable(unit, f"cannot read {unit}: its worker failed: {reason}")
    return outcome


def _connect(jobs: int) -> None:
    try:
        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    except ConnectionError as error:
        if os.environ.get("RAY_ADDRESS"):
            raise KbError(f"cannot reach the Ray cluster at RAY_ADDRESS: {error}") from error
        ray.init(
            address="local",
            num_cpus=jobs,
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False,
        )


def _classify(unit: str, incidents: tuple[str, ...], model: str | None) -> Outcome:
    return _worker(incidents, model).classify(unit)


def _scan(part: Range, incidents: tuple[str, ...], model: str | None) -> RangeScan:
    return _worker(incidents, model).scan(part)


@lru_cache(1)
def _worker(incidents: tuple[str, ...], model: str | None) -> Worker:
    """The worker of this process for the settings that it needs; Ray runs many tasks in one
    process."""
    return Worker(Settings(incidents=incidents, model=model))
