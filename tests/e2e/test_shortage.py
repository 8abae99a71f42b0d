"""Too little memory, or too few threads and processes: one sentence, and never the exit code of
"nothing is known"."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import QUESTION, Small

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")

FAILURES = {
    "a thread": 'RuntimeError("can\'t start new thread")',
    "memory": "MemoryError()",
    "a panic": 'type("PanicException", (BaseException,), {})("no thread pool")',
    "a mistake": 'KeyError("odd")',
}


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize(
    ("module", "name"),
    [("kb.service.service", "Service.diagnose"), ("kb.corpus.sync", "load_encoder")],
)
def test_what_fails_at_the_start_or_in_a_thread_is_no_answer(
    small: Small, kind: str, module: str, name: str
) -> None:
    program = f"""
import {module}

def fail(*_):
    raise {FAILURES[kind]}

{module}.{name} = fail
from kb.__main__ import main
main()
"""
    run = small.kb("ask", program=(sys.executable, "-c", program))
    assert run.returncode == 2
    assert run.stdout == b""
    if kind != "a mistake":
        assert run.stderr.startswith(b"Error: not enough")
        assert run.stderr.count(b"\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="must become a user who has no other process")
@pytest.mark.parametrize("most", [3, 5, 9])
@pytest.mark.parametrize("command", [("ask", "-f"), ("classify", "--jobs", "2")])
def test_few_processes_are_an_answer_or_one_sentence(
    small: Small, tmp_path: Path, command: tuple[str, ...], most: int
) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / "logs" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "logs" / name).write_bytes(QUESTION)
    capability = "dac_override"
    run = small.kb(
        program=(
            "setpriv", "--reuid=45873", "--clear-groups",
            f"--inh-caps=+{capability}", f"--ambient-caps=+{capability}",
            "bash", "-c", f'ulimit -u {most}; exec "$@"', "-",
            sys.executable, "-m", "kb", *command, str(tmp_path / "logs"),
        ),
    )  # fmt: skip
    said = run.stderr.decode()
    assert "Traceback" not in said
    assert run.returncode == 0 or (run.returncode == 2 and "Error: " in said), said


def test_little_memory_is_one_sentence(small: Small) -> None:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))

    run = small.kb("ask", before=little)
    assert run.returncode == 2
    assert b"Traceback" not in run.stderr
    assert run.stderr.count(b"Error: ") == 1
