"""`kb eval` counts what a user would see: what comes first and what is answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run

pytestmark = pytest.mark.slow


SHM = "NCCL WARN Error: failed to extend /dev/shm/nccl-Qx81Zz to 9637892 bytes"
BREAD = "how do I bake bread with rye and a long cold rise"
REPORTS = (
    {"text": SHM, "relevant": ["nccl-shm-too-small-container"], "kind": "log"},
    {
        "text": SHM,
        "relevant": ["xid79-gpu-fallen-off-bus"],
        "kind": "log",
        "lang": "zh",
        "fix_must_match": "--shm-size",
    },
    {"id": "bread", "text": BREAD, "relevant": [], "kind": "prose"},
    {"id": "near", "text": SHM, "relevant": [], "kind": "log"},
    {"text": "timeout", "relevant": [], "kind": "ambiguous"},
)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    path = tmp_path / "reports.jsonl"
    path.write_text("\n".join(json.dumps(report) for report in REPORTS))
    return path


def test_rates_are_those_of_the_labels(kb: Run, reports: Path) -> None:
    run = kb("eval", reports, "--json")
    assert run.returncode == 0, run.stderr.decode()
    result = json.loads(run.stdout)
    assert result["reports"] == 5
    assert result["overall"]["reports"] == 2
    assert result["overall"]["recall_at_1"] == 0.5
    assert result["overall"]["wrong"] == 0.5
    assert result["by_language"]["en"]["mrr"] == 1.0
    assert result["by_language"]["zh"]["recall_at_5"] == 0.0
    assert result["by_system"]["nccl"]["recall_at_1"] == 1.0
    assert result["negatives"] == {"reports": 2, "false_matches": 1, "rate": 0.5}
    assert result["remedy"]["at_1"] == 1.0
    assert [miss["id"] for miss in result["false_matches"]] == ["near"]
    (miss,) = result["misses"]
    assert miss["winner"] == "nccl-shm-too-small-container"
    assert any("failed to extend" in line for line in miss["why"])
    surest = result["reliability"][-1]
    assert surest["answers"] == 3
    assert surest["right"] == pytest.approx(1 / 3, abs=1e-3)


def test_table_names_the_misses(kb: Run, reports: Path) -> None:
    printed = kb("eval", reports).stdout.decode()
    assert "at 1" in printed
    assert "Misses (1)" in printed
    assert "reports.jsonl:2" in printed


def test_curves_are_drawn(kb: Run, reports: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra [plots]")
    run = kb("eval", reports, "--plot", tmp_path / "plots")
    assert run.returncode == 0, run.stderr.decode()
    names = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert names == ["coverage.png", "coverage.svg", "reliability.png", "reliability.svg"]
    assert "<svg" in (tmp_path / "plots" / "coverage.svg").read_text()


@pytest.mark.parametrize("name", ["coverage.png", "reliability.svg"])
def test_no_curve_overwrites_a_file(kb: Run, reports: Path, tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra [plots]")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / name).write_text("precious")
    run = kb("eval", reports, "--plot", tmp_path / "plots")
    assert run.returncode == 2
    assert run.stdout == b""
    assert run.stderr.decode().count("\n") == 1
    assert f"{name} exists; choose another name" in run.stderr.decode()
    assert (tmp_path / "plots" / name).read_text() == "precious"
    assert [path.name for path in (tmp_path / "plots").iterdir()] == [name]


def test_an_incident_that_is_not_there_is_named(kb: Run, reports: Path) -> None:
    """It would count as a report that nothing known fits, and every answer as a false one."""
    known = ["nccl-shm-too-small-container", "no-such-incident"]
    with reports.open("a") as file:
        file.write(json.dumps({"text": SHM, "relevant": known, "kind": "log"}))
    text = reports.read_text().replace("}{", "}\n{")
    reports.write_text(text)
    run = kb("eval", reports)
    assert run.returncode == 2
    assert run.stdout == b""
    assert f"{reports}:6 names `no-such-incident`" in run.stderr.decode()
    assert "--incidents" in run.stderr.decode()


def test_reports_come_from_a_pipe(kb: Run, reports: Path) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(reports.read_bytes())
    program = [sys.executable, "-m", "kb", "eval", f"/dev/fd/{reading}", "--json"]
    run = subprocess.run(program, capture_output=True, pass_fds=[reading], timeout=100, check=False)
    os.close(reading)
    assert run.returncode == 0, run.stderr.decode()
    assert json.loads(run.stdout)["reports"] == len(REPORTS)


@pytest.mark.parametrize("name", ["/dev/zero", "."])
def test_reports_do_not_come_from_devices_or_directories(kb: Run, name: str) -> None:
    run = kb("eval", name)
    assert run.returncode == 2
    assert f"cannot read {name}: " in run.stderr.decode()


@pytest.mark.parametrize("content", ["{", '{"text": "a"}', '{"text": 1}', "[]"])
def test_wrong_line_is_named(kb: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(f"{json.dumps(REPORTS[0])}\n{content}\n")
    run = kb("eval", path)
    assert run.returncode == 2
    assert f"{path}:2 is not a labelled report" in run.stderr.decode()


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_reports_is_wrong_use(kb: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content)
    run = kb("eval", path)
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.decode() == (
        f"Error: {path} holds no labelled reports; it has one JSON object a line\n"
    )


def test_missing_file_is_wrong_use(kb: Run, tmp_path: Path) -> None:
    run = kb("eval", tmp_path / "none.jsonl")
    assert run.returncode == 2
    assert b"none.jsonl" in run.stderr
