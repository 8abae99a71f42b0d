"""The standard streams as callers hand them on: closed, full, or pipes that do not wait."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.conftest import ANSWER, PATIENCE_S, QUESTION, Small, wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")

Process = subprocess.Popen[bytes]
Start = Callable[..., Process]


@pytest.fixture
def start(small_installation: Small, tmp_path: Path) -> Iterator[Start]:
    """Start the command: `start("ask", stdin=...)`."""
    started: list[Process] = []

    def run(*arguments: str | Path, **streams: int) -> Process:
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "kb", *arguments],
                stderr=subprocess.PIPE,
                cwd=tmp_path,
                env=small_installation.environment(),
                **streams,
            )
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def waits(process: Process, place: str) -> bool:
    """Whether a process sleeps in a system call of this name."""
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        with suppress(OSError):
            if place in (task / "wchan").read_text():
                return True
    return process.poll() is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("ask", "--json"), ("chat", "NCCL error"), ("new", "--from-log", "-"), ("classify", "-")],
    ids=lambda arguments: arguments[0],
)
def test_a_pipe_that_does_not_wait_is_read_to_its_end(
    start: Start, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "a.log").write_bytes(QUESTION)
    theirs, ours = os.pipe()
    os.set_blocking(theirs, False)
    process = start(*arguments, stdin=theirs, stdout=subprocess.PIPE)
    wait_until(lambda: waits(process, "pipe_read") or os.get_blocking(theirs), "kb reads")
    os.close(theirs)
    os.write(ours, b"a.log\n" if "classify" in arguments else QUESTION)
    os.close(ours)
    out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert b"shared memory" in out.replace(b"-", b" ") or ANSWER.encode() in out


def test_a_full_pipe_that_does_not_wait_loses_nothing(start: Start, small: Small) -> None:
    whole = small.kb("show", ANSWER).stdout
    theirs, ours = os.pipe()
    os.set_blocking(ours, False)
    with suppress(BlockingIOError):
        while True:
            os.write(ours, b"x" * 4096)
    process = start("show", ANSWER, stdout=ours)
    wait_until(lambda: waits(process, "pipe_write"), "kb writes")
    os.close(ours)
    with os.fdopen(theirs, "rb") as reader:
        assert reader.read().lstrip(b"x") == whole
    assert process.wait(PATIENCE_S) == 0, process.communicate()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ask <&-", "cannot read standard input: it is closed"),
        ("ask -f - 0>x", "cannot read standard input: it is closed, or not open for reading"),
        ("classify - <&-", "cannot read standard input: it is closed"),
        ("ask shm >&-", "cannot write to stdout: it is closed"),
        ("list >&-", "cannot write to stdout: it is closed"),
        ("--version >&-", "cannot write to stdout: it is closed"),
        ("list 1</dev/null", "cannot write to stdout: it is closed, or not open for writing"),
    ],
)
def test_a_stream_that_is_needed_and_closed_is_one_sentence(
    small: Small, tmp_path: Path, line: str, said: str
) -> None:
    run = small.kb(
        program=("bash", "-c", f"cd {tmp_path}; exec {sys.executable} -m kb {line}"),
        env={"PYTHONPATH": str(small.home)},
    )
    assert run.returncode == 2
    assert run.stderr.decode().startswith(f"Error: {said}")
    assert run.stderr.count(b"\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2> >(exec <&-)"])
def test_a_message_that_cannot_be_written_changes_nothing(small: Small, stderr: str) -> None:
    asked = f"exec {sys.executable} -m kb"
    noticed = small.kb(
        program=("bash", "-c", f"{asked} ask --json {stderr}"), env={"KB_CACHE": "/dev/null/x"}
    )
    assert noticed.returncode == 0
    assert ANSWER.encode() in noticed.stdout
    assert small.kb(program=("bash", "-c", f"{asked} ask -f gone {stderr}")).returncode == 2
