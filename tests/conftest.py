"""What tests share: one built index, the real command, and the engine in process."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

from kb.corpus.base import KnowledgeBase
from kb.settings import Settings
from tests.forked import Forked

PATIENCE_S = 300
"""How long a command may take; on a busy machine the slowest one takes a quarter of it."""

Run = Callable[..., subprocess.CompletedProcess[bytes]]

FOUNDING = (
    "megatron-lm-mixtral-pp-inference-worker-exit",
    "gpt-fast-intra-node-comm-hang",
    "transformer-engine-tp-comm-overlap-hang-mpi-interface",
    "llama3-fsdp-lora-allgather-nccl-timeout",
    "openrlhf-zero3-generate-allgather-timeout",
)
"""The incidents that started the project."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups, each of which runs in one process, begin first: no process ends up alone with one."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: looking through it again and again for
    what can be freed takes a quarter of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture(scope="session")
def built_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the index of the shipped incidents, built once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    cache = shared / "built-cache"
    with FileLock(shared / "built-cache.lock"):
        if not cache.exists():
            subprocess.run(
                [sys.executable, "-m", "kb", "index"],
                check=True,
                capture_output=True,
                env=environment(cache),
            )
    return cache


def copy_cache(cache: Path, target: Path) -> Path:
    """A copy to be changed, without what others who use the cache make and remove meanwhile, or
    said to the tool."""
    passing = shutil.ignore_patterns("lint", "state", "*-shm", "*-wal")
    return Path(shutil.copytree(cache, target, ignore=passing))


def environment(cache: Path, **extra: str) -> dict[str, str]:
    """The environment of a user who has set nothing but the places of what kb keeps."""
    # Without compiled modules each start of the command would take twice as long.
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("KB_", "PYTEST_")) and key != "PYTHONDONTWRITEBYTECODE"
    }
    own = {"KB_CACHE": cache, "KB_CONFIG": cache / "no-config.toml", "KB_STATE": cache / "state"}
    own["KB_DATA"] = cache / "data"
    return {**kept, **{name: str(path) for name, path in own.items()}, **extra}


@cache
def _server(home: Path) -> Forked:
    return Forked(home, environment(home))


def run_kb(
    home: Path,
    arguments: Sequence[str | bytes | Path],
    stdin: bytes | None,
    directory: Path,
    environment: dict[str, str],
) -> subprocess.CompletedProcess[bytes]:
    """Run the real command of the packages in `home`. One that hangs fails."""
    words = [os.fsdecode(argument) for argument in arguments]
    if stdin is not None and _server(home).can_run(environment):
        return _server(home).run(words, stdin, directory, environment, PATIENCE_S)
    return subprocess.run(
        [sys.executable, "-P", "-m", "kb", *words],
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        cwd=directory,
        env=environment,
    )


def command(home: Path, own_cache: Path, state: Path) -> Run:
    """Return what runs the real command of the packages in `home`, with relative paths as they are
    in the tests: `run("ask", "text", stdin=b"", env={})`. What it keeps of the user is in `state`.
    """

    def run(
        *arguments: str | Path,
        stdin: bytes | None = b"",
        cache: Path = own_cache,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        own = {"PYTHONPATH": str(home), "KB_STATE": str(state), **(env or {})}
        return run_kb(home, arguments, stdin, Path.cwd(), environment(cache, **own))

    return run


@pytest.fixture
def shipped_kb(built_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The real command over all shipped incidents."""
    return command(Path.cwd(), built_cache, tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session")
def knowledge(built_cache: Path) -> Iterator[KnowledgeBase]:
    """The engine over the shipped incidents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KB_CACHE", str(built_cache))
        with KnowledgeBase.open(Settings()) as opened:
            yield opened
