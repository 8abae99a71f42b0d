"""A small installation of its own: the real program with a handful of incidents, whose index is
built in a second and can be damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from filelock import FileLock

from index.encoder import model_name
from kb.paths import index_directory
from tests.conftest import Run, command, copy_cache, environment, run_kb

RECORDS = (
    "gpt-fast-intra-node-comm-hang",
    "nccl-shm-too-small-container",
    "pytorch-fsdp-flatten-mixed-dtype",
    "pytorch-process-group-not-destroyed-warning",
    "pytorch-watchdog-abort-after-peer-failure",
    "xid79-gpu-fallen-off-bus",
)
QUESTION = b"NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9)\n"
ANSWER = "nccl-shm-too-small-container"


PATIENCE_S = 60
"""How long a test waits for what other processes do."""


def wait_until(true: Callable[[], object], what: str) -> None:
    """Wait for something that can be seen; a test that waits in vain fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.01)


@contextmanager
def killed_in_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whoever waits for a process that a test has given up on waits for ever."""
    try:
        yield
    finally:
        process.kill()


def processes(file: str) -> Iterator[tuple[int, bytes]]:
    """The id and a file of /proc of each process; any of them may end meanwhile."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                yield int(path.name), (path / file).read_bytes()


def wait_until_read(pipe: Path) -> int:
    """Wait until somebody reads a pipe, and return its other end: until that is closed they wait
    for more."""
    held: list[int] = []

    def is_read() -> bool:
        with suppress(OSError):
            held.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        return bool(held)

    wait_until(is_read, "the pipe is read")
    return held[0]


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe that nobody writes to: who reads it never ends."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


ANSWERS = 5
"""Of the table of questions, in the small installation."""


class Small(msgspec.Struct, frozen=True):
    """An installation and its cache."""

    home: Path
    """Holds the packages and the incidents."""
    cache: Path

    @property
    def index(self) -> Path:
        """The index of the installation alone; tests with a team's directory add others."""
        name = index_directory([self.home / "incidents"], model_name()).name
        return self.cache / name

    @property
    def database(self) -> Path:
        return self.index / "index.sqlite"

    @property
    def vectors(self) -> Path:
        return next(self.index.glob("vectors-*.faiss"))

    def environment(self, **extra: str) -> dict[str, str]:
        """Of a user of this installation."""
        return environment(self.cache, PYTHONPATH=str(self.home), **extra)

    def kb(
        self,
        *arguments: str | bytes | Path,
        stdin: bytes = QUESTION,
        env: dict[str, str] | None = None,
        program: tuple[str, ...] | None = None,
        before: Callable[[], None] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the real command, or a program that runs it. One that hangs fails."""
        own = {**self.environment(), **(env or {})}
        if program is None and before is None:
            return run_kb(self.home, arguments, stdin, self.home, own)
        return subprocess.run(
            [*(program or (sys.executable, "-m", "kb")), *arguments],
            input=stdin,
            capture_output=True,
            timeout=100,
            cwd=self.home,
            env=own,
            preexec_fn=before,
        )


@pytest.fixture(scope="session")
def small_installation(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The installation and its built index, made once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made = Small(shared / "small", shared / "small-cache")
    with FileLock(shared / "small.lock"):
        if not made.cache.exists():
            _install(made.home)
            run = made.kb("index")
            assert run.returncode == 0, run.stderr
    return made


def _install(home: Path) -> None:
    ignore = shutil.ignore_patterns("__pycache__", "*.zst")
    for package in ("kb", "index"):
        shutil.copytree(package, home / package, ignore=ignore)
    # Some answers are as good as all, whose encoding would take seconds.
    first, *others = sorted((home / "kb" / "answers").glob("*.toml"))
    rows = first.read_text("utf-8").split("[[row]]")
    first.write_text("[[row]]".join(rows[: 1 + ANSWERS]), "utf-8")
    for answers in others:
        answers.unlink()
    for name in RECORDS:
        source = next(Path("incidents").glob(f"*/{name}.md"))
        (home / source.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(source, home / source)


@pytest.fixture
def kb(small_installation: Small, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The real command of the small installation."""
    state = tmp_path_factory.mktemp("state")
    return command(small_installation.home, small_installation.cache, state)


@pytest.fixture
def small(small_installation: Small, tmp_path: Path) -> Small:
    """The installation with a copy of the cache, to be damaged."""
    return Small(small_installation.home, copy_cache(small_installation.cache, tmp_path / "cache"))
