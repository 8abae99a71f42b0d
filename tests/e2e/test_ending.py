"""However `kb` is ended, it ends quietly, at once, and with all that belongs to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import (
    ANSWER,
    PATIENCE_S,
    QUESTION,
    Small,
    processes,
    wait_until,
    wait_until_read,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

ENDINGS = {
    signal.SIGINT: 130,
    signal.SIGTERM: 143,
    signal.SIGHUP: 129,
    signal.SIGQUIT: -signal.SIGQUIT,
    signal.SIGKILL: -signal.SIGKILL,
}
"""Exit codes by signal; the last two cannot be or are not handled."""
HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Process = subprocess.Popen[bytes]
Start = Callable[..., Process]


def signals_as_of_a_terminal() -> None:
    """What runs in the background of a shell, or under nohup, hands on that these are ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def start(small_installation: Small, tmp_path: Path) -> Iterator[Start]:
    """Start the command in a group of its own; `start("ask", ...)`. What it leaves is ended."""
    (tmp_path / "tmp").mkdir()
    started: list[Process] = []

    def run(
        *arguments: str | Path,
        program: tuple[str, ...] = (sys.executable, "-m", "kb"),
        before: Callable[[], None] = signals_as_of_a_terminal,
    ) -> Process:
        started.append(
            subprocess.Popen(
                [*program, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=small_installation.home,
                env=small_installation.environment(TMPDIR=str(tmp_path / "tmp")),
                start_new_session=True,
                preexec_fn=before,
            )
        )
        return started[-1]

    yield run
    for process in started:
        for pid in of_session(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def of_session(leader: int) -> list[int]:
    """The processes of a session that still run."""
    found = []
    for pid, stat in processes("stat"):
        fields = stat.rpartition(b")")[2].split()
        if fields[3] == str(leader).encode() and fields[0] != b"Z":
            found.append(pid)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda number: number.name)
@pytest.mark.parametrize("whom", [os.kill, os.killpg], ids=["process", "terminal"])
def test_no_process_outlives_a_batch(
    start: Start,
    pipe: Path,
    tmp_path: Path,
    ending: signal.Signals,
    whom: Callable[[int, int], None],
) -> None:
    log, output = tmp_path / "a.log", tmp_path / "out.jsonl"
    log.write_bytes(QUESTION)
    process = start("classify", log, pipe, "--jobs", "2", "--format", "jsonl", "-o", output)
    wait_until_read(pipe)
    wait_until(output.read_bytes, "a row")
    # Two workers, and what keeps their semaphores.
    wait_until(lambda: len(of_session(process.pid)) == 4, "all processes have started")
    whom(process.pid, ending)
    assert process.wait(PATIENCE_S) == ENDINGS[ending]
    wait_until(lambda: not of_session(process.pid), "all processes end")
    said = process.communicate()[1].decode().strip()
    if ending in HEARD:
        assert said == f"stopped; kept 1 results; continue with: --resume -o {output}"
    assert "Traceback" not in said
    assert output.read_bytes().count(b"\n") == 1
    assert {file.name for file in tmp_path.rglob("*")} == {"a.log", "pipe", "tmp", "out.jsonl"}


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3, 4])
def test_ctrl_c_while_workers_start_is_quiet(start: Start, pipe: Path, processes: int) -> None:
    process = start("classify", pipe, __file__, "--jobs", "2")
    wait_until(lambda: len(of_session(process.pid)) >= processes, "processes of its own")
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE_S) == 130
    wait_until(lambda: not of_session(process.pid), "all processes end")
    assert process.communicate()[1].count(b"\n") <= 2


@pytest.mark.parametrize("ending", HEARD, ids=lambda number: number.name)
@pytest.mark.parametrize("command", ["ask", "chat", "classify"])
def test_what_waits_for_a_pipe_ends_at_once(
    start: Start, pipe: Path, command: str, ending: signal.Signals
) -> None:
    process = start(*((command, pipe) if command == "classify" else (command, "-f", pipe)))
    wait_until_read(pipe)
    process.send_signal(ending)
    out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ENDINGS[ending]
    assert out == b""
    assert said.count(b"\n") <= 2
    assert b"Traceback" not in said


@pytest.mark.parametrize("moment", ["click", "kb.cli.ask", "kb.service.service", "exit"])
@pytest.mark.parametrize("ending", HEARD, ids=lambda number: number.name)
def test_a_signal_while_modules_load_and_at_the_end_is_quiet(
    start: Start, moment: str, ending: signal.Signals
) -> None:
    program = f"""
import atexit, os, sys

class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == {moment!r}:
            os.kill(os.getpid(), {ending.value})

sys.meta_path.insert(0, AtImport())
if {moment!r} == "exit":
    atexit.register(os.kill, os.getpid(), {ending.value})
sys.argv = ["kb", "ask", "NCCL timeout"]
from kb.__main__ import main
main()
"""
    process = start(program=(sys.executable, "-c", program))
    _out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ENDINGS[ending]
    assert said.strip() == b""


def test_a_signal_in_a_destructor_is_quiet(start: Start) -> None:
    program = """
import os, signal, sys
import kb.cli

class Dying:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

def command(**_):
    Dying()
    os.write(1, b"went on")

kb.cli.cli.main = command
from kb.__main__ import main
main()
"""
    process = start(program=(sys.executable, "-c", program))
    assert process.communicate(timeout=PATIENCE_S) == (b"", b"")
    assert process.returncode == 130


def test_what_nohup_switches_off_stays_off(start: Start, pipe: Path) -> None:
    def nohup() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = start("ask", "--json", "-f", pipe, before=nohup)
    held = wait_until_read(pipe)
    process.send_signal(signal.SIGHUP)
    os.write(held, QUESTION)
    os.close(held)
    assert ANSWER.encode() in process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 0


@pytest.mark.parametrize("ending", HEARD, ids=lambda number: number.name)
def test_a_library_that_hides_a_signal_behind_an_error_of_its_own(
    start: Start, ending: signal.Signals
) -> None:
    interrupted = (
        "import os, sys; from kb import cli, __main__\n"
        "def load(**_options):\n"
        "    try:\n"
        f"        os.kill(os.getpid(), {int(ending)}); import time; time.sleep(60)\n"
        "    except BaseException:\n"
        "        pass\n"
        "    raise ImportError('numpy: could not import module datetime')\n"
        "cli.cli.main = load\n"
        "__main__.main()\n"
    )
    process = start(program=(sys.executable, "-c", interrupted))
    assert process.wait(PATIENCE_S) == ENDINGS[ending]
    assert process.communicate()[1] == b""
