"""What speaks for each candidate of each labelled report, and the fit of the weights to it.

The likelihood is that of the conditional logit with a null alternative (see kb/confidence.py),
maximised with L-BFGS-B under the signs that the weights must have, with a little shrinkage.
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
from sklearn.model_selection import GroupKFold

from kb.confidence import AGAINST, UNWRITTEN, Model, features
from kb.diagnosis import find, is_calm
from kb.evaluate import Case, read_cases
from kb.evaluate.cases import AMBIGUOUS
from kb.evidence import collect
from kb.incident import Kind
from kb.knowledge import Knowledge
from kb.log import Log

NAMES = tuple(name for name in Model.__struct_fields__ if name not in ("command", "bias"))
SHRINKAGE = 0.1
AT_LEAST = {"strong": 6.0, "codes": 2.0}
"""A strong signature is by definition enough to name its incident, also where little else fits;
and who types nothing but an exact code means it."""
FOLDS = 5

Vector = NDArray[np.float64]


class Weights(msgspec.Struct, frozen=True):
    """Coefficients in the order of `NAMES`."""

    bias: float
    values: tuple[float, ...]


class Sample(msgspec.Struct, frozen=True):
    """One report: features (candidates, names), 1 for the right candidates, and its group."""

    case: Case
    rows: Vector
    right: Vector
    group: int
    """Of its incident; reports of one incident stay together."""


class Answer(msgspec.Struct, frozen=True):
    """What the weights make of a report."""

    case: Case
    confidence: float
    """Of the first candidate; 0 without one."""
    position: float
    """Of the first right candidate, from 1; infinite where there is none."""


def read_samples(paths: Iterable[Path], knowledge: Knowledge) -> list[Sample]:
    """Ask the engine what speaks for the candidates of each report."""
    cases = [case for path in paths for case in read_cases(path) if case.kind != AMBIGUOUS]
    return [_sample(case, knowledge) for case in cases]


def _sample(case: Case, knowledge: Knowledge) -> Sample:
    evidence = collect(Log.from_text(case.text), knowledge.signatures, knowledge.markers)
    everything = find(evidence, knowledge)
    calm = is_calm(everything, evidence)
    found = [item for item in everything if item.kind is Kind.INCIDENT]
    rows = np.array([features(item.signs(calm)) for item in found], dtype=np.float64)
    right = np.array([float(item.candidate.id in case.relevant) for item in found])
    group = zlib.crc32(min(case.relevant, default=case.text).encode())
    return Sample(case, rows.reshape(len(found), len(NAMES)), right, group)


def fit(samples: Sequence[Sample], used: Sequence[str] = NAMES) -> Weights:
    """Return the weights of the greatest likelihood; names that are not `used` get 0."""
    kept = [sample for sample in samples if len(sample.rows)]
    bounds = [(None, None), *(_bounds(name, used) for name in NAMES)]
    start = np.array([-4.0, *(min(max(1.0, low or -1.0), high or 1.0) for low, high in bounds[1:])])
    best = minimize(_loss, start, (kept,), "L-BFGS-B", jac=True, bounds=bounds, tol=1e-9)
    return Weights(float(best.x[0]), tuple(map(float, best.x[1:])))


def _bounds(name: str, used: Sequence[str]) -> tuple[float | None, float | None]:
    if name not in used:
        return (0.0, 0.0)
    return (None, 0.0) if name in AGAINST else (AT_LEAST.get(name, 0.0), None)


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


def answer(sample: Sample, weights: Weights) -> Answer:
    """Return what the user would see."""
    if not len(sample.rows):
        return Answer(sample.case, 0.0, float("inf"))
    odds = np.exp(np.minimum(sample.rows @ np.array(weights.values) + weights.bias, 50.0))
    order = np.argsort(-odds, kind="stable")
    places = np.flatnonzero(sample.right[order])
    position = float(places[0]) + 1 if len(places) else float("inf")
    sure = odds[order[0]] / (1.0 + (1.0 + UNWRITTEN) * odds.sum())
    return Answer(sample.case, float(sure), position)


def held_out(samples: Sequence[Sample], used: Sequence[str] = NAMES) -> list[Answer]:
    """Answer every report with weights fitted without any report of its incident."""
    answers: list[Answer] = []
    groups = [sample.group for sample in samples]
    for inside, outside in GroupKFold(FOLDS).split(groups, groups=groups):
        weights = fit([samples[number] for number in inside], used)
        answers += [answer(samples[number], weights) for number in outside]
    return answers
