"""Fit the coefficients of the confidence: `python -m benchmarks.fit_confidence FILE.jsonl...`

Prints kb/diagnosis/confidence.toml; on stderr, how surely reports of incidents are answered that
were left out of the fit.
"""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.fusion import Answer, calibrate, held_out, read_samples
from kb.corpus.base import KnowledgeBase
from kb.diagnosis.features import FeatureRow, Model
from kb.settings import load_settings
from kb.verdict import ANSWER_AT

BINS = 10
HEAD = """\
# The table of features: `make confidence` fits the weights, the calibration and the bias again.
# The columns are explained in kb/diagnosis/features.py."""


def main(paths: Sequence[str]) -> None:
    """Fit on all, report on what was held out."""
    with KnowledgeBase.open(load_settings()) as knowledge:
        samples = read_samples(map(Path, paths), knowledge)
    _report(held_out(samples, calibrated=True))
    command = f"python -m benchmarks.fit_confidence {' '.join(paths)}"
    model = msgspec.structs.replace(calibrate(samples), command=command)
    print(to_toml(model), end="")


def to_toml(model: Model) -> str:
    """The table as confidence.toml holds it; columns with their default are left out."""
    fields = {**msgspec.structs.asdict(model)}
    rows = fields.pop("feature")
    lines = [HEAD, *(f"{name} = {json.dumps(value)}" for name, value in fields.items())]
    lines += ["feature = [", *(f"    {{{_columns(row)}}}," for row in rows), "]"]
    return "\n".join(lines) + "\n"


def _columns(row: FeatureRow) -> str:
    said = msgspec.structs.asdict(row)
    default = msgspec.structs.asdict(FeatureRow(row.name, math.nan))
    kept = {name: value for name, value in said.items() if name == "name" or value != default[name]}
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in kept.items())


def _report(answers: Sequence[Answer]) -> None:
    strangers = [answer for answer in answers if not answer.case.is_labelled]
    own = [answer for answer in answers if answer.case.is_labelled]
    wanted = [answer for answer in own if answer.case.relevant]
    others = [answer for answer in answers if not answer.case.relevant]
    first = sum(answer.position == 1 for answer in wanted) / len(wanted)
    _say(f"held out: {len(wanted)} reports, {len(others)} others; recall at 1 {first:.3f}")
    for bar in (0.5, 0.6, ANSWER_AT, 0.8, 0.9):
        answered = sum(one.confidence >= bar for one in wanted) / len(wanted)
        wrong = sum(one.confidence >= bar and one.position > 1 for one in wanted) / len(wanted)
        false = sum(one.confidence >= bar for one in others) / max(len(others), 1)
        _say(f"bar {bar}: answered {answered:.3f}, wrong {wrong:.3f}, false {false:.3f}")
    for world, inside in (("own reports", own), ("strangers", strangers)):
        _say(f"{world}: calibration error {_calibration_error(inside):.3f}")


def _calibration_error(answers: Sequence[Answer]) -> float:
    apart = 0.0
    for number in range(BINS):
        inside = [one for one in answers if min(int(one.confidence * BINS), BINS - 1) == number]
        if inside:
            said = sum(one.confidence for one in inside) / len(inside)
            right = sum(one.position == 1 for one in inside) / len(inside)
            apart += abs(said - right) * len(inside) / len(answers)
            _say(f"said {said:.2f}, right {right:.2f}, {len(inside)} answers")
    return apart


def _say(line: str) -> None:
    print(f"# {line}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
