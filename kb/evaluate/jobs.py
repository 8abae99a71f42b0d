"""Recorded jobs with known truth: a folder a job, described in benchmarks/jobs/README.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, diagnose
from kb.errors import DamagedError, EvaluationError
from kb.evaluate.expressions import check_expression, contains
from kb.evaluate.outcome import remedy
from kb.files import decode_json, read_regular
from kb.job import QuotedLine
from kb.log import Log
from kb.verdict import Verdict


class Truth(msgspec.Struct, frozen=True):
    """What really happened. Further keys of the file are not read."""

    id: str
    layout: str
    kind: str
    failed: bool
    culprit_ranks: tuple[int, ...]
    culprit_hosts: tuple[str, ...]
    root_line: str | None = None
    """None or empty where no line shows a cause: a healthy job has none."""
    right_advice: str | None = None

    def is_shown_by(self, text: str | None) -> bool:
        """Whether a line shows the cause; none has to where none is known to."""
        return not self.root_line or _has(self.root_line, text)


class JobOutcome(msgspec.Struct, frozen=True):
    """What was said of one job, and what of it is right."""

    id: str
    layout: str
    kind: str
    failed: bool
    """Whether it was told from one that did not fail."""
    culprit: bool
    """The first culprit is a right rank, or host where no rank is at fault; where none of them is,
    none is named, though a line of a driver may be."""
    line: bool
    """The first culprit's text is the root line."""
    verdict: Verdict
    advice: bool | None
    """Whether the first match holds the right remedy; None where nothing is answered."""
    said: QuotedLine | None
    """The first culprit."""

    @property
    def right(self) -> bool:
        """Whether a user is sent to the right place."""
        return self.failed and self.culprit and self.line


class JobReport(msgspec.Struct, frozen=True):
    """Rates over all jobs."""

    jobs: int
    failed: float
    culprit: float
    line: float
    right: float
    answered: int
    advice_right: int
    outcomes: tuple[JobOutcome, ...]


def read_truths(directory: Path) -> list[tuple[Path, Truth]]:
    """Read the truths of all jobs below a directory, each with the folder of its logs.

    Raises:
        EvaluationError: there is none, or one is not such an object.
    """
    found = []
    for path in sorted(directory.glob("*/truth.json")):
        try:
            truth = decode_json(read_regular(path), Truth)
            for regex in filter(None, (truth.root_line, truth.right_advice)):
                check_expression(regex)
            found.append((path.parent / "logs", truth))
        except (OSError, DamagedError, EvaluationError) as error:
            raise EvaluationError(f"{path} is not a valid truth.json: {error}") from error
    if not found:
        raise EvaluationError(f"{directory} contains no <job>/truth.json")
    return found


def run_jobs(
    truths: Iterable[tuple[Path, Truth]], knowledge: KnowledgeBase
) -> Iterator[JobOutcome]:
    """Diagnose each job as a user would."""
    for logs, truth in truths:
        yield _outcome(truth, diagnose(Log.from_paths([logs]), knowledge))


def measure_jobs(outcomes: Sequence[JobOutcome]) -> JobReport:
    """Count what is right."""
    answers = [outcome.advice for outcome in outcomes if outcome.advice is not None]

    def share(what: Iterable[bool]) -> float:
        return sum(what) / len(outcomes)

    return JobReport(
        jobs=len(outcomes),
        failed=share(outcome.failed for outcome in outcomes),
        culprit=share(outcome.culprit for outcome in outcomes),
        line=share(outcome.line for outcome in outcomes),
        right=share(outcome.right for outcome in outcomes),
        answered=len(answers),
        advice_right=sum(answers),
        outcomes=tuple(outcomes),
    )


def _outcome(truth: Truth, diagnosis: Diagnosis) -> JobOutcome:
    job = diagnosis.job
    first = job.culprits[0] if job and job.culprits else None
    failed = job.failed if job else diagnosis.verdict is not Verdict.HEALTHY
    best = diagnosis.matches[0] if diagnosis.verdict is Verdict.MATCH else None
    advice = _has(truth.right_advice, remedy(best.incident)) if best else None
    return JobOutcome(
        truth.id,
        truth.layout,
        truth.kind,
        failed is truth.failed,
        _is_culprit(truth, first),
        truth.is_shown_by(first.text if first else None),
        diagnosis.verdict,
        advice,
        first,
    )


def _has(regex: str | None, text: str | None) -> bool:
    return regex is not None and contains(regex, text or "")


def _is_culprit(truth: Truth, first: QuotedLine | None) -> bool:
    if truth.culprit_ranks:
        return first is not None and first.rank in truth.culprit_ranks
    if truth.culprit_hosts:
        return first is not None and first.host in truth.culprit_hosts
    return first is None or (first.rank is None and first.host is None)
