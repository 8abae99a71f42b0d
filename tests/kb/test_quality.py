"""How surely the right incident is found must not get worse than what docs/quality.json records."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.evaluate import Outcome, Report, measure, read_cases, run
from kb.log.mask import mask
from kb.verdict import Verdict
from tests.conftest import FOUNDING

SETS = {"own": Path("benchmarks/reports"), "development": Path("../shared/eval")}
RECORDED = json.loads(Path("docs/quality.json").read_text(encoding="utf-8"))
Answers = tuple[list[Outcome], Report]


def noise(share: float, number: float) -> float:
    """Two standard errors of a share."""
    return 2 * math.sqrt(share * (1 - share) / number)


@pytest.fixture(scope="module", params=SETS)
def answers(request: pytest.FixtureRequest, knowledge: KnowledgeBase) -> tuple[str, Answers]:
    paths = sorted(SETS[request.param].glob("*.jsonl"))
    if not paths:
        pytest.skip(f"the set {SETS[request.param]} is not part of the repository")
    systems = {record.id: record.header.systems[0] for record in IncidentDirectories().load()[0]}
    cases = [case for path in paths for case in read_cases(path)]
    outcomes = list(run(cases, knowledge, systems.keys()))
    return request.param, (outcomes, measure(outcomes, systems))


def test_right_incident_is_found(answers: tuple[str, Answers]) -> None:
    name, (_outcomes, report) = answers
    recorded = RECORDED[name]
    for found, key in (
        (report.overall.recall_at_1, "recall_at_1"),
        (report.overall.recall_at_3, "recall_at_3"),
    ):
        assert found >= recorded[key] - noise(recorded[key], recorded["reports"]), key


def test_what_nothing_fits_is_not_answered(answers: tuple[str, Answers]) -> None:
    name, (_outcomes, report) = answers
    share, number = RECORDED[name]["false_matches"], RECORDED[name]["negatives"]
    allowed = share + max(noise(share, number), 1 / number)
    assert report.negatives.rate <= allowed, [miss.id for miss in report.false_matches]


def test_confidence_means_what_it_says(answers: tuple[str, Answers]) -> None:
    name, (_outcomes, report) = answers
    recorded = RECORDED[name]
    assert report.calibration_error <= recorded["calibration_error"] + 1 / math.sqrt(
        recorded["reports"]
    )


def test_healthy_logs_are_healthy(answers: tuple[str, Answers]) -> None:
    _name, (outcomes, _report) = answers
    healthy = [outcome for outcome in outcomes if outcome.case.kind == "healthy"]
    assert not any(outcome.is_answer for outcome in healthy)
    calm = sum(outcome.verdict is Verdict.HEALTHY for outcome in healthy)
    assert calm >= 0.75 * len(healthy)


def test_founding_incidents_come_first_in_every_form(answers: tuple[str, Answers]) -> None:
    _name, (outcomes, _report) = answers
    for incident in FOUNDING:
        about = [outcome for outcome in outcomes if incident in outcome.case.relevant]
        right = sum(outcome.is_right for outcome in about)
        assert right >= 0.9 * len(about), incident


def test_own_set_is_large_and_says_nothing_twice() -> None:
    cases = [case for path in sorted(SETS["own"].glob("*.jsonl")) for case in read_cases(path)]
    texts = [mask(case.text).casefold() for case in cases]
    assert len(set(texts)) == len(texts)
    assert len({case.id for case in cases}) == len(cases)
    assert sum(bool(case.relevant) for case in cases) >= 150
    assert sum(not case.relevant for case in cases) >= 60
    known = {file.path.stem for file in IncidentDirectories().files()}
    assert all(set(case.relevant) <= known for case in cases)
