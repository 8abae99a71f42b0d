"""Fit the weights by which playbooks share what the incidents leave.

`python -m benchmarks.fit_playbooks REPORTS.jsonl...` prints PLAYBOOK_WEIGHTS and PLAYBOOK_BIAS of
kb/diagnosis/confidence.py, and the share of texts with a right playbook first and among the first
two. Right are the playbooks of the symptoms of a right incident of the report. Each report is read
twice: as it is, and as if no record covered it, with the right incidents left out. Of the reports
in benchmarks/symptoms.jsonl, which no record covers, people said which playbooks are right;
healthy logs and everyday questions have none. The short questions are those of
benchmarks/questions.jsonl.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from benchmarks.questions import QUESTIONS, Asked
from benchmarks.symptoms import labels
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import weigh
from kb.diagnosis.features import PlaybookFeatures
from kb.diagnosis.playbooks import playbook_features
from kb.evaluate import read_cases
from kb.evidence import collect
from kb.log import Log
from kb.settings import load_settings

NO_SYMPTOM = ("healthy", "prose")
"""Kinds of reports without a label in which nothing failed; the others are failures."""

UNCOVERED = 2 / 3
"""Share of real reports that no record covers."""

SHRINKAGE = 1e-3
STEPS = 1500
RATE = 0.05
"""Of the gradient descent (Adam), which ends far below the second digit."""

Matrix = NDArray[np.float64]


class Sample(msgspec.Struct, frozen=True):
    """A text with what speaks for each playbook."""

    set: str
    """Each set of texts counts as much as the others."""
    features: list[tuple[float, ...]]
    right: list[bool]
    """None of them: no playbook is right."""


def main(paths: Sequence[str]) -> None:
    """Fit on all."""
    with KnowledgeBase.open(load_settings()) as knowledge:
        samples = list(read_samples(list(map(Path, paths)), knowledge))
    rows = np.array([sample.features for sample in samples])
    right = np.array([sample.right for sample in samples], dtype=float)
    weights, bias = fit(rows, right, _shares(samples))
    named = zip(PlaybookFeatures.__struct_fields__, weights, strict=True)
    print(", ".join(f"{name}={weight:.1f}" for name, weight in named), f"bias={bias:.1f}")
    order = np.argsort(-(rows @ weights), axis=1)
    hits = np.take_along_axis(right, order, axis=1)
    for name in dict.fromkeys(sample.set for sample in samples):
        chosen = hits[[sample.set == name and any(sample.right) for sample in samples]]
        if len(chosen):
            first, two = chosen[:, 0].mean(), chosen[:, :2].any(1).mean()
            print(f"{name}: {len(chosen)}, right first {first:.3f}, among the first two {two:.3f}")


def read_samples(paths: Sequence[Path], knowledge: KnowledgeBase) -> Iterator[Sample]:
    """What the engine makes of reports, labelled symptoms and short questions."""
    symptoms = labels()
    for case in (case for path in paths for case in read_cases(path)):
        right = set(_naming(case.relevant, knowledge))
        if right:
            yield _sample("covered", case.text, right, knowledge)
            yield _sample("uncovered", case.text, right, knowledge, case.relevant)
        elif case.id in symptoms:
            yield _sample("symptoms", case.text, set(symptoms[case.id]), knowledge)
        elif case.kind in NO_SYMPTOM:
            yield _sample("none", case.text, set(), knowledge)
    for line in QUESTIONS.read_bytes().splitlines():
        asked = msgspec.json.decode(line, type=Asked)
        yield _sample("questions", asked.text, set(asked.right), knowledge)


def _shares(samples: Sequence[Sample]) -> Matrix:
    """How much each sample counts: sets alike, but for a report that is read twice."""
    counts = Counter(sample.set for sample in samples)
    parts = {"covered": 1 - UNCOVERED, "uncovered": UNCOVERED}
    shares = np.array([parts.get(one.set, 1.0) / counts[one.set] for one in samples])
    return shares / shares.sum()


def _naming(incidents: Sequence[str], knowledge: KnowledgeBase) -> Iterator[str]:
    """The playbooks of what is seen where one of them happens."""
    for incident in filter(None, map(knowledge.incident, incidents)):
        yield from knowledge.guides.symptoms_of(incident)


def _sample(
    name: str,
    text: str,
    right: set[str],
    knowledge: KnowledgeBase,
    left_out: Container[str] = (),
) -> Sample:
    evidence = collect(Log.from_text(text).blocks(), knowledge.signatures, knowledge.markers)
    known = [one for one in weigh(evidence, knowledge) if one.incident.id not in left_out]
    return Sample(
        name,
        [astuple(one) for one in playbook_features(evidence, known, knowledge)],
        [playbook.id in right for playbook in knowledge.guides.playbooks],
    )


def fit(rows: Matrix, right: Matrix, shares: Matrix) -> tuple[Matrix, float]:
    """Weights, at least 0, and bias that maximise the likelihood of the right playbooks.

    `rows`: (samples, playbooks, features); `right`: (samples, playbooks), 1 for the right ones;
    `shares`: how much each sample counts.
    """
    values = np.append(np.ones(rows.shape[2]), -5.0)
    mean, square = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, STEPS + 1):
        slope = _slope(rows, right, shares, values)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        way = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
        values = values - RATE * way
        values[:-1] = np.maximum(values[:-1], 0.0)
    return values[:-1], float(values[-1])


def _slope(rows: Matrix, right: Matrix, shares: Matrix, values: Matrix) -> Matrix:
    """Of the loss, by weights and bias."""
    weights, bias = values[:-1], values[-1]
    odds = np.exp(rows @ weights + bias)
    said = odds / (1.0 + odds.sum(1, keepdims=True))
    wanted = odds * right
    wanted = wanted / np.maximum(wanted.sum(1, keepdims=True), 1e-300)
    off = (said - wanted) * shares[:, None]
    return np.append(np.einsum("np,npf->f", off, rows) + 2 * SHRINKAGE * weights, off.sum())


if __name__ == "__main__":
    main(sys.argv[1:])
