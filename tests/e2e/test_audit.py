"""`kb audit`: a team grades the answers to its closed cases, and sees how far to trust them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kb.audit import Grade, Graded, reliability
from kb.verdict import Verdict
from tests.conftest import Run
from tests.e2e.conftest import ANSWER, QUESTION

SHORT_QUESTION = "nccl cannot create its shared memory segment in the container"
NOTHING_KNOWN = b"flux capacitor lost its plutonium; giving up\n"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Two closed cases: one with a record, and one without."""
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "known.log").write_bytes(QUESTION)
    (folder / "unknown.log").write_bytes(NOTHING_KNOWN)
    return folder


def test_grades_are_asked_kept_and_counted(kb: Run, cases: Path) -> None:
    first = kb("audit", cases, stdin=b"r\nr\n")
    assert first.returncode == 0
    said = first.stdout.decode()
    assert ANSWER in said
    assert "2 cases are graded." in said
    assert "Matches that led to what helped: 1 of 1" in said
    assert "Cases whose record was shown first: 1 of 2" in said
    again = kb("audit", cases)
    assert "0 cases without a grade" in again.stderr.decode()
    figures = json.loads(kb("audit", "--json").stdout)
    assert figures["covered"]["hits"] == 1
    assert figures["bar"] is None


def test_quitting_and_the_end_of_input_keep_what_was_graded(kb: Run, cases: Path) -> None:
    assert kb("audit", cases, stdin=b"w\nq\n").returncode == 0
    assert "1 cases without a grade, 1 drawn" in kb("audit", cases, stdin=b"").stderr.decode()


def test_a_case_that_cannot_be_read_is_named_and_the_others_are_graded(
    kb: Run, cases: Path
) -> None:
    (cases / "torn.log.gz").write_bytes(b"\x1f\x8b\x08\x00torn")
    run = kb("audit", cases, stdin=b"r\nr\nr\n")
    assert run.returncode == 0
    assert "torn.log.gz" in run.stderr.decode()
    assert "2 cases are graded." in run.stdout.decode()


def test_before_any_grade_it_says_what_to_do(kb: Run) -> None:
    run = kb("audit")
    assert run.returncode == 0
    assert "run kb audit with the logs" in run.stdout.decode()


def test_the_bar_is_where_one_answer_in_twenty_is_wrong() -> None:
    sure = [graded(0.9, Grade.RIGHT)] * 24 + [graded(0.9, Grade.AREA)]
    unsure = [graded(0.6, Grade.WRONG)] * 5
    figures = reliability([*sure, *unsure])
    assert figures.bar == 0.9
    assert figures.above_bar == 25
    assert (figures.harmful.hits, figures.matches.cases) == (1, 30)
    assert figures.matches.low < 24 / 30 < figures.matches.high
    assert reliability(unsure * 5).bar is None


def test_confidence_follows_the_share_of_known_failures(kb: Run, tmp_path: Path) -> None:
    configuration = tmp_path / "config.toml"
    sure = []
    for said in ("covered = 0.1\n", "", "covered = 0.95\n"):
        configuration.write_text(said)
        run = kb("ask", "--json", SHORT_QUESTION, env={"KB_CONFIG": str(configuration)})
        sure.append(json.loads(run.stdout)["matches"][0]["confidence"])
    assert sure[0] < sure[1] < sure[2]


def test_a_share_that_is_none_is_refused(kb: Run, tmp_path: Path) -> None:
    configuration = tmp_path / "config.toml"
    configuration.write_text("covered = 1.5\n")
    run = kb("ask", "x", env={"KB_CONFIG": str(configuration)})
    assert run.returncode == 2
    assert b"covered" in run.stderr


def graded(confidence: float, grade: Grade) -> Graded:
    """A graded match."""
    return Graded(datetime.now(UTC), "job.log", Verdict.MATCH, ANSWER, confidence, grade)
