"""`kb eval` counts what a user would see: what comes first and what is answered."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("content", ["{", '{"text": "a"}', '{"text": 1}', "[]"])
def test_wrong_line_is_named(kb: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(f"{json.dumps(REPORTS[0])}\n{content}\n")
    run = kb("eval", path)
    assert run.returncode == 2
    assert f"{path}:2 is not a labelled report" in run.stderr.decode()


def test_missing_file_is_wrong_use(kb: Run, tmp_path: Path) -> None:
    run = kb("eval", tmp_path / "none.jsonl")
    assert run.returncode == 2
    assert b"none.jsonl" in run.stderr
