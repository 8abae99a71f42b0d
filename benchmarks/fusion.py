"""What speaks for each candidate of each labelled report, and the fit of the weights to it.

The likelihood is that of the conditional logit with a null alternative (see
kb/diagnosis/confidence.py), maximised with L-BFGS-B under the signs that the weights must have,
with a little shrinkage.
Cross-validated by incident, not by report: what is learnt must hold for incidents not seen. The
calibration counts reports of strangers as well, most of which have no record: the own reports alone
have one in four cases of five.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.model_selection import GroupKFold

from kb.corpus.base import KnowledgeBase
from kb.diagnosis.confidence import confidences
from kb.diagnosis.features import FeatureRow, Features, Model, load_model
from kb.diagnosis.retrieval import no_failure_is_seen, retrieve
from kb.evaluate import LabelledReport, read_cases
from kb.evaluate.cases import AMBIGUOUS
from kb.evaluate.expressions import contains
from kb.evaluate.outcome import remedy
from kb.evidence import collect
from kb.incident import Incident, Kind
from kb.log import Log

NAMES = Features.__struct_fields__
SHRINKAGE = 0.1
AT_LEAST = {"strong_signatures": 6.0, "shared_code": 2.0}
"""A strong signature is by definition enough to name its incident, also where little else fits;
and who types nothing but an exact code means it."""
FOLDS = 5
STRANGERS_WEIGHT = 0.5
"""Weight of all reports of strangers together in the calibration, that of the own ones being 1:
with more the own reports are stated too low, with less those of strangers too high."""

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
    right = np.array([float(_is_right(one.incident, case)) for one in found])
    subject = min(case.relevant, default=case.text) if case.is_labelled else case.text
    group = zlib.crc32(subject.encode())
    return Sample(case, features, rows.reshape(len(found), len(NAMES)), right, group)


def _is_right(incident: Incident, case: LabelledReport) -> bool:
    if case.is_labelled:
        return incident.id in case.relevant
    return case.fix_must_match is not None and contains(case.fix_must_match, remedy(incident))


def fit(samples: Sequence[Sample], used: Sequence[str] = NAMES) -> Model:
    """Return the weights of the greatest likelihood on the labelled reports, not calibrated; names
    that are not `used` get 0."""
    kept = [sample for sample in samples if len(sample.rows) and sample.case.is_labelled]
    table = load_model().feature
    bounds = [(None, None), *(_bounds(row, used) for row in table)]
    start = np.array([-4.0, *(min(max(1.0, low or -1.0), high or 1.0) for low, high in bounds[1:])])
    best = minimize(_loss, start, (kept,), "L-BFGS-B", jac=True, bounds=bounds, tol=1e-9)
    bias, *weights = (round(float(value), 3) for value in best.x)
    rows = (
        msgspec.structs.replace(row, weight=weight)
        for row, weight in zip(table, weights, strict=True)
    )
    return Model("", 1.0, 0.0, 1.0, 0.5, bias, tuple(rows))


def calibrate(samples: Sequence[Sample]) -> Model:
    """Fit, then set the confidence of the first candidate to how often it is right on reports of
    incidents that were held out (Platt scaling), up to the share of the surest that are right."""
    answers = held_out(samples)
    weights = _weights(answers)
    asked = np.array([answer.confidence > 0 for answer in answers])
    sure = np.array([answer.confidence for answer in answers])[asked]
    right = np.array([float(answer.position == 1) for answer in answers])[asked]
    log_odds = np.log(sure / (1 - sure))

    def loss(values: Vector) -> float:
        slope, offset, top = values
        said = expit(top) * expit(slope * log_odds + offset)
        likelihood = right * np.log(said) + (1 - right) * np.log1p(-said)
        return -float(weights[asked] @ likelihood)

    slope, offset, top = minimize(loss, np.array([1.0, 0.0, 3.0]), method="Nelder-Mead").x
    known = np.array([math.isfinite(answer.position) for answer in answers])
    failures = np.array([answer.case.kind != "healthy" for answer in answers])
    covered = float(weights[failures] @ known[failures]) / float(weights[failures].sum())
    return msgspec.structs.replace(
        fit(samples),
        slope=round(float(slope), 3),
        offset=round(float(offset), 3),
        top=round(float(expit(top)), 3),
        covered=round(covered, 3),
    )


def _weights(answers: Sequence[Answer]) -> Vector:
    """Of each report in the calibration: 1 of an own one, that of all strangers together is
    fixed."""
    strange = np.array([not answer.case.is_labelled for answer in answers])
    share = STRANGERS_WEIGHT * float((~strange).sum()) / max(float(strange.sum()), 1.0)
    return np.where(strange, share, 1.0)


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
