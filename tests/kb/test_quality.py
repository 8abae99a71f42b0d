"""How surely the right incident comes first, over whole sets of reports. Floors, not records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kb.diagnosis import Diagnosis, Verdict, diagnose
from kb.knowledge import Knowledge
from kb.library import Library
from kb.log import Log

OWN = Path("benchmarks/reports")
DEVELOPMENT = Path("../shared/eval")
Answered = tuple[dict[str, Any], Diagnosis]


def answered(path: Path, knowledge: Knowledge) -> list[Answered]:
    if not path.exists():
        pytest.skip(f"the development set {path} is not part of the repository")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row, diagnose(Log.from_text(row["text"]), knowledge)) for row in rows]


def right_share(answers: Sequence[Answered]) -> float:
    right = [bool(d.matches) and d.matches[0].incident.id in row["relevant"] for row, d in answers]
    return sum(right) / len(right)


@pytest.mark.parametrize(
    "path", [OWN / "reports.jsonl", OWN / "founding.jsonl", DEVELOPMENT / "dev.jsonl"]
)
def test_right_incident_is_first(knowledge: Knowledge, path: Path) -> None:
    known = {file.path.stem for file in Library().files()}
    answers = [a for a in answered(path, knowledge) if known & set(a[0]["relevant"])]
    assert right_share(answers) >= 0.8
    wrong = [
        d
        for row, d in answers
        if d.verdict is Verdict.MATCH and d.matches[0].incident.id not in row["relevant"]
    ]
    assert len(wrong) <= 0.03 * len(answers)


@pytest.mark.parametrize("path", [OWN / "negatives.jsonl", DEVELOPMENT / "negatives.jsonl"])
def test_foreign_text_is_not_answered_with_confidence(knowledge: Knowledge, path: Path) -> None:
    answers = answered(path, knowledge)
    wrong = [row["id"] for row, d in answers if d.verdict is Verdict.MATCH]
    assert len(wrong) <= 0.02 * len(answers), wrong


@pytest.mark.parametrize("path", [OWN / "negatives.jsonl", DEVELOPMENT / "negatives.jsonl"])
def test_healthy_logs_are_healthy(knowledge: Knowledge, path: Path) -> None:
    healthy = [d for row, d in answered(path, knowledge) if row["kind"] == "healthy"]
    assert not any(d.matches for d in healthy)
    assert sum(d.verdict is Verdict.HEALTHY for d in healthy) >= 0.85 * len(healthy)
