"""What speaks for each candidate of each labelled report, and the fit of the weights to it.

The likelihood is that of the conditional logit with a null alternative (see
kb/diagnosis/confidence.py), maximised with L-BFGS-B under the signs that the weights must have,
with a little shrinkage.
Cross-validated by incident, not by report: what is learnt must hold for incidents not seen.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from kb.corpus.base import KnowledgeBase
from kb.diagnosis.confidence import confidences
from kb.diagnosis.features import FeatureRow, Features, Model, load_model
from kb.diagnosis.retrieval import no_failure_is_seen, retrieve
from kb.evaluate import LabelledReport, read_cases
from kb.evaluate.cases import AMBIGUOUS
from kb.evidence import collect
from kb.incident import Kind
from kb.log import Log

NAMES = Features.__struct_fields__
SHRINKAGE = 0.1
AT_LEAST = {"strong_signatures": 6.0, "shared_code": 2.0}
"""A strong signature is by definition enough to name its incident, also where little else fits;
and who types nothing but an exact code means it."""
FOLDS = 5
NO_PENALTY = 1e6

Vector = NDArray[np.float64]


class Sample(msgspec.Struct, frozen=True):
    """One report with its candidates."""

    case: LabelledReport
    features: tuple[Features, ...]
    rows: Vector
    """The features as the score sees them: (candidates, names)."""
    right: Vector
    """1 for the right candidates."""
    group: int
    """Of its incident; reports of one incident stay together."""


class Answer(msgspec.Struct, frozen=True):
    """What the weights make of a report."""

    case: LabelledReport
    confidence: float
    """Of the first candidate; 0 without one."""
    position: float
    """Of the first right candidate, from 1; infinite where there is none."""


def read_samples(paths: Iterable[Path], knowledge: KnowledgeBase) -> list[Sample]:
    """Ask the engine what speaks for the candidates of each report."""
    cases = [case for path in paths for case in read_cases(path) if case.kind != AMBIGUOUS]
    return [_sample(case, knowledge) for case in cases]


def _sample(case: LabelledReport, knowledge: KnowledgeBase) -> Sample:
    evidence = collect(Log.from_text(case.text).blocks(), knowledge.signatures, knowledge.markers)
    everything = retrieve(evidence, knowledge)
    no_failure = no_failure_is_seen(everything, evidence)
    found = [one for one in everything if one.incident.kind is Kind.INCIDENT]
    features = tuple(
        one.for_log_without_failure(made_progress=evidence.made_progress)
        if no_failure
        else one.features
        for one in found
    )
    rows = np.array([load_model().values(one) for one in features], dtype=np.float64)
    right = np.array([float(one.incident.id in case.relevant) for one in found])
    group = zlib.crc32(min(case.relevant, default=case.text).encode())
    return Sample(case, features, rows.reshape(len(found), len(NAMES)), right, group)


def fit(samples: Sequence[Sample], used: Sequence[str] = NAMES) -> Model:
    """Return the weights of the greatest likelihood, not calibrated; names that are not `used`
    get 0."""
    kept = [sample for sample in samples if len(sample.rows)]
    table = load_model().feature
    bounds = [(None, None), *(_bounds(row, used) for row in table)]
    start = np.array([-4.0, *(min(max(1.0, low or -1.0), high or 1.0) for low, high in bounds[1:])])
    best = minimize(_loss, start, (kept,), "L-BFGS-B", jac=True, bounds=bounds, tol=1e-9)
    bias, *weights = (round(float(value), 3) for value in best.x)
    rows = (
        msgspec.structs.replace(row, weight=weight)
        for row, weight in zip(table, weights, strict=True)
    )
    return Model("", 1.0, 0.0, bias, tuple(rows))


def calibrate(samples: Sequence[Sample]) -> Model:
    """Fit, then set the confidence of the first candidate to how often it is right on reports of
    incidents that were held out (Platt scaling)."""
    answers = [answer for answer in held_out(samples) if answer.confidence]
    sure = np.array([answer.confidence for answer in answers])
    log_odds = np.log(sure / (1 - sure)).reshape(-1, 1)
    right = [answer.position == 1 for answer in answers]
    scaling = LogisticRegression(C=NO_PENALTY).fit(log_odds, right)
    slope, offset = float(scaling.coef_[0, 0]), float(scaling.intercept_[0])
    return msgspec.structs.replace(fit(samples), slope=round(slope, 3), offset=round(offset, 3))


def _bounds(row: FeatureRow, used: Sequence[str]) -> tuple[float | None, float | None]:
    if row.name not in used:
        return (0.0, 0.0)
    if row.reason:
        return (row.weight, row.weight)
    return (None, 0.0) if row.against else (AT_LEAST.get(row.name, 0.0), None)


def _loss(values: Vector, samples: Sequence[Sample]) -> tuple[float, Vector]:
    """Mean negative log likelihood and its gradient."""
    bias, weights = values[0], values[1:]
    loss, gradient = 0.5 * SHRINKAGE * float(weights @ weights), np.append(0.0, SHRINKAGE * weights)
    for sample in samples:
        scores = sample.rows @ weights + bias
        top = max(0.0, float(scores.max()))
        odds = np.exp(scores - top)
        total = np.exp(-top) + odds.sum()
        target = np.zeros(len(scores))
        if sample.right.any():
            target = odds * sample.right / (odds @ sample.right)
            loss -= float(np.log((odds @ sample.right) / total))
        else:
            loss += top + float(np.log(total))
        gap = odds / total - target
        gradient += np.append(gap.sum(), gap @ sample.rows)
    return loss / len(samples), gradient / len(samples)


def answer(sample: Sample, model: Model) -> Answer:
    """Return what the user would see."""
    sure = np.array(confidences(sample.features, model))
    if not sure.any():
        return Answer(sample.case, 0.0, float("inf"))
    order = np.argsort(-sure, kind="stable")
    places = np.flatnonzero(sample.right[order])
    position = float(places[0]) + 1 if len(places) else float("inf")
    return Answer(sample.case, float(sure[order[0]]), position)


def held_out(
    samples: Sequence[Sample], used: Sequence[str] = NAMES, *, calibrated: bool = False
) -> list[Answer]:
    """Answer every report with weights fitted without any report of its incident."""
    answers: list[Answer] = []
    groups = [sample.group for sample in samples]
    for inside, outside in GroupKFold(FOLDS).split(groups, groups=groups):
        chosen = [samples[number] for number in inside]
        model = calibrate(chosen) if calibrated else fit(chosen, used)
        answers += [answer(samples[number], model) for number in outside]
    return answers
