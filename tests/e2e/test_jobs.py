"""One job of many ranks, through the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Run

pytestmark = pytest.mark.slow


JOBS = Path("benchmarks/jobs")


def told(run: Any) -> Any:
    found = json.loads(run.stdout)
    jsonschema.validate(found, json.loads(Path("docs/ask.schema.json").read_text()))
    return found


def test_the_first_failure_comes_before_the_incidents(shipped_kb: Run) -> None:
    run = shipped_kb("ask", "-f", JOBS / "rec-twotower" / "logs")
    text = run.stdout.decode()
    assert run.returncode == 0
    assert text.startswith("First to fail\n  rank 2 on ads-train-0")
    parts = ("Other ranks\n", "Timeline\n", "MATCH  ", "Fix\n")
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert max(map(len, text[: text.index("MATCH  ")].splitlines())) <= 80


def test_the_object_names_culprits_cascade_and_attempts(shipped_kb: Run) -> None:
    job = told(shipped_kb("ask", "--json", "-f", JOBS / "nmt-ende" / "logs"))["job"]
    assert (job["failed"], job["kind"], job["world_size"]) == (True, "exception", 4)
    assert [(one["rank"], one["host"]) for one in job["culprits"]] == [(3, "cl2-n11")]
    assert job["culprits"][0]["text"].endswith("IndexError: list index out of range")
    assert [one["rank"] for one in job["earlier"]] == [1]
    assert job["cascade"]["count"] == 3


def test_the_advice_fits_the_root_and_not_the_cascade(shipped_kb: Run) -> None:
    """All ranks of this job print the same timeout; a link is down."""
    found = told(shipped_kb("ask", "--json", "-f", JOBS / "moe-pretrain" / "logs"))
    assert found["job"]["culprits"][0]["host"] == "hgx-b"
    assert found["matches"][0]["id"] == "host-network-link-down-unreachable"


@pytest.mark.parametrize(
    "name",
    [
        "bev-fusion",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("tide-loud", "vit-cifar", "stop-early")
        ),
    ],
)
def test_a_loud_job_that_ended_well_is_healthy(shipped_kb: Run, name: str) -> None:
    run = shipped_kb("ask", "--json", "-f", JOBS / name / "logs")
    found = told(run)
    assert (run.returncode, found["verdict"], found["matches"]) == (1, "healthy", [])
    assert found["job"]["failed"] is False


def test_a_slow_job_names_its_straggler(shipped_kb: Run) -> None:
    found = told(shipped_kb("ask", "--json", "-f", JOBS / "clip-vitb" / "logs"))
    assert found["job"]["failed"] is False
    assert [one["rank"] for one in found["job"]["culprits"]] == [6]
    assert found["matches"][0]["id"].startswith("straggler-")


def test_interleaved_ranks_on_stdin_are_one_job(shipped_kb: Run) -> None:
    log = (JOBS / "sl-vqvae" / "logs" / "slurm-88120.out").read_bytes()
    found = told(shipped_kb("ask", "--json", stdin=log))
    assert [(one["rank"], one["host"]) for one in found["job"]["culprits"]] == [(4, "cn103")]


def test_a_log_of_one_process_is_no_job(shipped_kb: Run) -> None:
    assert (
        told(shipped_kb("ask", "--json", stdin=b"RuntimeError: CUDA error: out of memory\n"))["job"]
        is None
    )


def test_jobs_are_measured(shipped_kb: Run, tmp_path: Path) -> None:
    for name in ("nmt-ende", "stop-early"):
        (tmp_path / name).symlink_to((JOBS / name).resolve())
    run = shipped_kb("eval", "--jobs", tmp_path, "--json")
    assert run.returncode == 0, run.stderr.decode()
    result = json.loads(run.stdout)
    assert (result["jobs"], result["right"], result["failed"]) == (2, 1.0, 1.0)
    table = shipped_kb("eval", "--jobs", tmp_path).stdout.decode()
    assert "nmt-ende (exception)" in table
    assert shipped_kb("eval").returncode == 2
    assert b"contains no" in shipped_kb("eval", "--jobs", tmp_path / "nmt-ende").stderr
