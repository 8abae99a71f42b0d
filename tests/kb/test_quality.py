"""How surely the right incident is found: each report of the repository is answered as
docs/quality/answers.json records, and the figures of the development set do not get worse than in
docs/quality.json."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks import twins
from benchmarks.answers import Answer, answers_of, changes, recorded
from benchmarks.dialogues import hold_all
from benchmarks.quality import STRANGERS
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.evaluate import LabelledReport, Outcome, Report, measure, read_cases, run
from kb.log.mask import mask
from kb.verdict import Verdict
from tests.conftest import FOUNDING

SETS = {"own": Path("benchmarks/reports"), "development": Path("../shared/eval")}
FOUNDING_REPORTS = SETS["own"] / "founding.jsonl"
FIGURES = json.loads(Path("docs/quality.json").read_text(encoding="utf-8"))
EVERY = 2
"""Of the reports of an incident: `make quality` asks all, as does the fit of the confidence."""
RECORD_THEM = "to record the answers as they are now: make quality"
Answers = tuple[list[Outcome], Report]


def noise(share: float, number: float) -> float:
    """Two standard errors of a share."""
    return 2 * math.sqrt(share * (1 - share) / number)


def ask(paths: list[Path], knowledge: KnowledgeBase, every: int = 1) -> Answers:
    systems = {record.id: record.header.systems[0] for record in knowledge.incidents()}
    cases = [case for path in paths for case in read_cases(path)]
    asked = [case for place, case in enumerate(cases) if place % every == 0 or not case.relevant]
    outcomes = list(run(asked, knowledge, systems.keys()))
    return outcomes, measure(outcomes, systems)


def form_of(case: LabelledReport) -> str:
    """A log, or words in a language."""
    return "log" if case.kind == "log" else case.lang


@pytest.fixture(scope="module")
def founding(knowledge: KnowledgeBase) -> list[Outcome]:
    return ask([FOUNDING_REPORTS], knowledge)[0]


@pytest.fixture(scope="module")
def asked() -> dict[str, Answers]:
    """The answers so far, by set: asking all takes a minute."""
    return {}


@pytest.fixture(params=SETS)
def answers(
    request: pytest.FixtureRequest, asked: dict[str, Answers], knowledge: KnowledgeBase
) -> tuple[str, Answers]:
    paths = sorted(SETS[request.param].glob("*.jsonl"))
    if not paths:
        pytest.skip(f"the set {SETS[request.param]} is not part of the repository")
    if request.param not in asked:
        asked[request.param] = ask(paths, knowledge, EVERY)
    return request.param, asked[request.param]


of_all_reports = pytest.mark.slow
"""Asks a thousand reports: one process does it for all of these tests."""
own = pytest.mark.parametrize("answers", ["own"], indirect=True)
development = pytest.mark.parametrize("answers", ["development"], indirect=True)
pytestmark = pytest.mark.xdist_group("quality")


@pytest.mark.parametrize("incident", FOUNDING)
@pytest.mark.parametrize("form", ["log", "en", "zh"])
def test_a_founding_incident_comes_first_in_every_form(
    founding: list[Outcome], incident: str, form: str
) -> None:
    about = [
        outcome
        for outcome in founding
        if incident in outcome.case.relevant and form_of(outcome.case) == form
    ]
    assert len(about) >= 3
    assert [outcome.case.id for outcome in about if not outcome.is_right] == []


def test_founding_reports_are_answered_as_recorded(founding: list[Outcome]) -> None:
    now = answers_of(founding)
    before = recorded()
    assert changes({key: before[key] for key in now}, now) == [], RECORD_THEM


@pytest.mark.parametrize(
    "identifier",
    [
        "deepspeed-zero2-overlap-comm-nan-gradients/log-2",
        "nccl-gdr-ib-error4-acs-enabled/zh-2",
        "neg/near-mmcv-ext-source-built-torch-zh",
    ],
)
def test_the_whole_text_and_its_telling_lines_are_both_searched(
    knowledge: KnowledgeBase, identifier: str
) -> None:
    """With only one of the two passages these are answered otherwise."""
    cases = [case for path in SETS["own"].glob("*.jsonl") for case in read_cases(path)]
    known = {file.path.stem for file in IncidentDirectories().files()}
    found = run([case for case in cases if case.id == identifier], knowledge, known)
    assert answers_of(found) == {identifier: recorded()[identifier]}, RECORD_THEM


@of_all_reports
@own
def test_reports_are_answered_as_recorded(answers: tuple[str, Answers]) -> None:
    _name, (outcomes, _report) = answers
    now, before = answers_of(outcomes), recorded()
    assert changes({key: before[key] for key in now if key in before}, now) == [], RECORD_THEM


def test_an_answer_is_recorded_for_each_report() -> None:
    cases = [case for path in SETS["own"].glob("*.jsonl") for case in read_cases(path)]
    assert recorded().keys() == {case.id for case in cases}, RECORD_THEM


def test_figures_of_the_own_set_are_those_of_the_recorded_answers() -> None:
    found = list(recorded().values())
    negatives = sum(answer in (Answer.SILENT, Answer.FALSE) for answer in found)
    first = sum(answer in (Answer.RIGHT, Answer.FIRST) for answer in found)
    among_3 = first + sum(answer in (Answer.AMONG_3, Answer.WRONG_AMONG_3) for answer in found)
    reports = len(found) - negatives
    assert {**FIGURES["own"], "calibration_error": None} == {
        "reports": reports,
        "recall_at_1": round(first / reports, 4),
        "recall_at_3": round(among_3 / reports, 4),
        "negatives": negatives,
        "false_matches": round(found.count(Answer.FALSE) / negatives, 4),
        "calibration_error": None,
    }, RECORD_THEM


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({"a": Answer.FIRST, "b": Answer.SILENT}, ["WORSE: a: first, answered -> first, not"]),
        ({"a": Answer.RIGHT, "b": Answer.FALSE}, ["WORSE: b: not answered, as nothing fits ->"]),
        ({"a": Answer.RIGHT}, ["removed: b"]),
        ({"a": Answer.RIGHT, "b": Answer.SILENT, "c": Answer.WRONG}, ["added: c"]),
        ({"a": Answer.RIGHT, "b": Answer.SILENT}, []),
    ],
)
def test_a_change_of_an_answer_is_told(now: dict[str, Answer], told: list[str]) -> None:
    found = changes({"a": Answer.RIGHT, "b": Answer.SILENT}, now)
    assert len(found) == len(told)
    assert all(map(str.startswith, found, told))


def test_what_got_better_is_told_too() -> None:
    told = changes({"a": Answer.MISSED, "b": Answer.RIGHT}, {"a": Answer.RIGHT, "b": Answer.WRONG})
    assert [line.split(":")[:2] for line in told] == [["WORSE", " b"], ["better", " a"]]


@of_all_reports
@development
def test_right_incident_is_found(answers: tuple[str, Answers]) -> None:
    name, (_outcomes, report) = answers
    recorded = FIGURES[name]
    for found, key in (
        (report.overall.recall_at_1, "recall_at_1"),
        (report.overall.recall_at_3, "recall_at_3"),
    ):
        assert found >= recorded[key] - noise(recorded[key], recorded["reports"]), key


@of_all_reports
@development
def test_what_nothing_fits_is_not_answered(answers: tuple[str, Answers]) -> None:
    name, (_outcomes, report) = answers
    share, number = FIGURES[name]["false_matches"], FIGURES[name]["negatives"]
    allowed = share + max(noise(share, number), 1 / number)
    assert report.negatives.rate <= allowed, [miss.id for miss in report.false_matches]


@of_all_reports
def test_confidence_means_what_it_says(answers: tuple[str, Answers]) -> None:
    name, (_outcomes, report) = answers
    figures = FIGURES[name]
    assert report.calibration_error <= figures["calibration_error"] + 1 / math.sqrt(
        figures["reports"]
    )


@of_all_reports
def test_strangers_find_their_remedy(knowledge: KnowledgeBase) -> None:
    """Those that no record was written from."""
    remedy = ask([STRANGERS["unread"]], knowledge)[1].remedy
    recorded = FIGURES["strangers unread"]
    for found, key, number in (
        (remedy.at_3, "remedy_at_3", remedy.reports),
        (remedy.held_by_matches, "held_by_matches", remedy.matches),
    ):
        assert found >= recorded[key] - noise(recorded[key], number), key


@of_all_reports
def test_a_twin_with_one_fact_changed_is_no_match(knowledge: KnowledgeBase) -> None:
    figures = twins.guarded(twins.held(knowledge, twins.all_twins()))
    assert figures["held"] >= FIGURES["twins"]["held"]


SHOWN_TO_END = {"own": 0.25, "development": 0.7}
"""Share of the logs without a failure that show that the work is done; the others just stop."""


@of_all_reports
def test_logs_without_a_failure_are_no_answer_and_healthy_where_they_end(
    answers: tuple[str, Answers],
) -> None:
    name, (outcomes, _report) = answers
    healthy = [outcome for outcome in outcomes if outcome.case.kind == "healthy"]
    assert len(healthy) >= 5
    assert not any(outcome.is_answer for outcome in healthy)
    calm = sum(outcome.verdict is Verdict.HEALTHY for outcome in healthy)
    assert calm >= SHOWN_TO_END[name] * len(healthy)


def test_own_set_is_large_and_says_nothing_twice() -> None:
    cases = [case for path in sorted(SETS["own"].glob("*.jsonl")) for case in read_cases(path)]
    texts = [mask(case.text).casefold() for case in cases]
    assert len(set(texts)) == len(texts)
    assert len({case.id for case in cases}) == len(cases)
    assert sum(bool(case.relevant) for case in cases) >= 150
    assert sum(not case.relevant for case in cases) >= 60
    known = {file.path.stem for file in IncidentDirectories().files()}
    assert all(set(case.relevant) <= known for case in cases)


@pytest.mark.slow
def test_dialogues_go_as_well_as_recorded(knowledge: KnowledgeBase) -> None:
    report = hold_all(knowledge)
    figures = FIGURES["dialogues"]
    assert figures["dialogues"] == report.overall.dialogues >= 150
    assert report.by_language["zh"].dialogues >= 50
    for found, key, number in (
        (report.overall.good, "good", "turns"),
        (report.overall.openings, "openings", "dialogues"),
        (report.overall.whole, "whole", "dialogues"),
    ):
        told = [f"{turn.id} turn {turn.turn}" for turn in report.failed]
        assert found >= figures[key] - noise(figures[key], figures[number]) / 2, (key, told)
    assert not [turn.id for turn in report.failed if turn.failure]
