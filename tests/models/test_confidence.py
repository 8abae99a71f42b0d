"""The shipped coefficients are those that the shipped reports give."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis.features import Model, load_model

pytest.importorskip("sklearn", reason="needs the extra [models]")

from benchmarks.fusion import calibrate, read_samples

pytestmark = pytest.mark.slow
REPORTS = [
    *sorted(Path("benchmarks/reports").glob("*.jsonl")),
    Path("benchmarks/strangers/fit.jsonl"),
]


def test_fitting_again_gives_the_shipped_coefficients(knowledge: KnowledgeBase) -> None:
    shipped = load_model()
    assert shipped.command.split()[3:] == [path.as_posix() for path in REPORTS]
    fitted = calibrate(read_samples(REPORTS, knowledge))
    # Other processors sum in another order: the last digits of a cosine may differ.
    assert _numbers(fitted) == pytest.approx(_numbers(shipped), abs=0.05)


def _numbers(model: Model) -> dict[str, float]:
    weights = {row.name: row.weight for row in model.feature}
    return weights | {
        "slope": model.slope,
        "offset": model.offset,
        "top": model.top,
        "covered": model.covered,
        "bias": model.bias,
    }
