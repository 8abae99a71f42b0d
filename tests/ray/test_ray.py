"""The same rows from a Ray cluster, even when one of its nodes dies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.classify.cut import CUT_ABOVE_BYTES
from tests.conftest import Run, environment

ray_cluster = pytest.importorskip("ray.cluster_utils", reason="ray is not installed")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

FAILURES = (
    "NVRM: Xid (PCI:0000:0{n}:00): 79, pid={n}, GPU has fallen off the bus.\n",
    "FrobnicateError: widget {n} of tray {n} is jammed\n",
    "",
)
UNITS = 240


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for n in range(UNITS):
        calm = "".join(f"2026-11-21 03:00:00 INFO step {n + k} loss 2.5\n" for k in range(310))
        (folder / f"{n:03d}.log").write_text(calm + FAILURES[n % 3].format(n=n))
    return folder


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head that runs nothing, and two workers."""
    found = ray_cluster.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield found
    found.shutdown()


def test_a_node_that_dies_midway_changes_nothing(
    shipped_kb: Run, built_cache: Path, logs: Path, tmp_path: Path, cluster: Any
) -> None:
    doomed, _other = (cluster.add_node(num_cpus=1) for _ in range(2))
    output = tmp_path / "out.jsonl"
    command = ["classify", logs, "--format", "jsonl", "--engine", "ray", "-o", output]
    process = subprocess.Popen(
        [sys.executable, "-m", "kb", *map(str, command)],
        stderr=subprocess.PIPE,
        env=environment(built_cache, RAY_ADDRESS=cluster.address),
    )
    while not output.exists() or output.read_bytes().count(b"\n") < UNITS // 4:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
    cluster.remove_node(doomed, allow_graceful=False)
    assert process.poll() is None
    _output, said = process.communicate()
    here = shipped_kb("classify", logs, "--format", "jsonl")
    assert (process.returncode, said) == (0, here.stderr)
    assert output.read_bytes() == here.stdout


def test_without_a_cluster_one_is_started_here(shipped_kb: Run, logs: Path) -> None:
    some = str(logs / "00?.log")
    run = shipped_kb("classify", some, "--format", "jsonl", "--engine", "ray")
    assert run.stdout == shipped_kb("classify", some, "--format", "jsonl").stdout


def test_a_large_file_is_scanned_by_many_tasks(shipped_kb: Run, tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    calm = "".join(f"2026-11-21 03:00:00 INFO step {n} loss 2.5\n" for n in range(20_000))
    text = calm + FAILURES[0].format(n=1) + calm
    path.write_text(text * (CUT_ABOVE_BYTES // len(text) + 1))
    run = shipped_kb("classify", path, "--format", "jsonl", "--engine", "ray", "--jobs", "2")
    assert run.stdout == shipped_kb("classify", path, "--format", "jsonl", "--jobs", "1").stdout
