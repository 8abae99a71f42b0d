"""Fit the coefficients of the confidence and print kb/confidence.toml.

`python -m benchmarks.fit_confidence FILE.jsonl...` reads reports (`text`, `relevant`), asks the
engine what speaks for each candidate, and maximises the likelihood of the conditional logit with
a null alternative (see kb/confidence.py), with a little shrinkage. Weights keep their sign, so the
confidence stays monotone. Cross-validated by incident, not by report: what is learnt must hold for
incidents that were not seen.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.confidence import Model, features
from kb.diagnosis import find, is_calm, is_eligible
from kb.evidence import collect
from kb.knowledge import Knowledge
from kb.log import Log
from kb.settings import load_settings

NAMES = [name for name in Model.__struct_fields__ if name not in ("command", "bias")]
SHRINKAGE = 0.1
AT_LEAST = {"strong": 6.0, "codes": 2.0}
"""A strong signature is by definition enough to name its incident, also where little else fits;
and who types nothing but an exact code means it."""
STEPS = 1_500
RATE = 0.05
FOLDS = 5

Vector = NDArray[np.float64]
Case = tuple[Vector, Vector, str]
"""Features (candidates, names); 1 for the right candidates; the group of the case."""


def main(paths: Sequence[str]) -> None:
    """Fit on all, report the cross-validated likelihood and calibration."""
    cases = list(_cases(paths))
    groups = sorted({group for _features, _right, group in cases})
    held_out: list[tuple[float, bool]] = []
    for fold in range(FOLDS):
        outside = set(groups[fold::FOLDS])
        weights, bias = fit([case for case in cases if case[2] not in outside])
        held_out += [_top(case, weights, bias) for case in cases if case[2] in outside]
    _report(held_out)
    weights, bias = fit(cases)
    print(
        f'command = "python -m benchmarks.fit_confidence {" ".join(Path(p).name for p in paths)}"'
    )
    print(f"bias = {bias:.3f}")
    for name, weight in zip(NAMES, weights, strict=True):
        print(f"{name} = {weight:.3f}")


def _cases(paths: Iterable[str]) -> Iterable[Case]:
    with Knowledge.open(load_settings()) as knowledge:
        for path in paths:
            for line in Path(path).read_text(encoding="utf-8").splitlines():
                report = json.loads(line)
                yield _case(report["text"], set(report["relevant"]), knowledge)


def _case(text: str, relevant: set[str], knowledge: Knowledge) -> Case:
    evidence = collect(Log.from_text(text), knowledge.signatures, knowledge.markers)
    everything = find(evidence, knowledge)
    calm = is_calm(everything, evidence)
    found = [item for item in everything if is_eligible(item, evidence, calm)]
    rows = np.array([features(item.signs) for item in found], dtype=np.float64)
    right = np.array([float(item.candidate.id in relevant) for item in found])
    return rows.reshape(len(found), len(NAMES)), right, min(relevant, default=text[:80])


def fit(cases: Sequence[Case]) -> tuple[Vector, float]:
    """Adam on the negative log likelihood, projected on the allowed signs."""
    weights, bias = np.ones(len(NAMES)), -4.0
    least = np.array([AT_LEAST.get(name, 0.0) for name in NAMES])
    signs = np.array([-1.0 if name in ("unsigned", "conflict") else 1.0 for name in NAMES])
    mean, square = np.zeros(len(NAMES) + 1), np.zeros(len(NAMES) + 1)
    for step in range(1, STEPS + 1):
        gradient = _gradient(cases, weights, bias)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        move = RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weights = signs * np.maximum(least, signs * (weights - move[:-1]))
        bias -= move[-1]
    return weights, float(bias)


def _gradient(cases: Sequence[Case], weights: Vector, bias: float) -> Vector:
    total = np.append(SHRINKAGE * weights, 0.0)
    for rows, right, _group in cases:
        if len(rows):
            odds = np.exp(np.minimum(rows @ weights + bias, 50.0))
            chance = odds / (1.0 + odds.sum())
            target = chance * right / (chance @ right) if right.any() else np.zeros(len(right))
            total[:-1] += (chance - target) @ rows
            total[-1] += (chance - target).sum()
    return total / len(cases)


def _top(case: Case, weights: Vector, bias: float) -> tuple[float, bool]:
    rows, right, _group = case
    if not len(rows):
        return 0.0, False
    odds = np.exp(rows @ weights + bias)
    best = int(odds.argmax())
    return float(odds[best] / (1.0 + odds.sum())), bool(right[best])


def _report(answers: Sequence[tuple[float, bool]]) -> None:
    print(f"# held out: {len(answers)} reports", file=sys.stderr)
    for low in (0.0, 0.12, 0.3, 0.6, 0.8, 0.9):
        high = {0.0: 0.12, 0.12: 0.3, 0.3: 0.6, 0.6: 0.8, 0.8: 0.9, 0.9: 1.01}[low]
        inside = [(sure, good) for sure, good in answers if low <= sure < high]
        if inside:
            mean = sum(sure for sure, _good in inside) / len(inside)
            share = sum(good for _sure, good in inside) / len(inside)
            print(f"# said {mean:.2f}, right {share:.2f}, {len(inside)} answers", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
