"""Fit the coefficients of the confidence: `python -m benchmarks.fit_confidence FILE.jsonl...`

Prints kb/confidence.toml; on stderr, how surely reports of incidents are answered that were left
out of the fit.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fusion import NAMES, Answer, fit, held_out, read_samples
from kb.confidence import ANSWER_AT
from kb.knowledge import Knowledge
from kb.settings import load_settings

BINS = 10


def main(paths: Sequence[str]) -> None:
    """Fit on all, report on what was held out."""
    with Knowledge.open(load_settings()) as knowledge:
        samples = read_samples(map(Path, paths), knowledge)
    _report(held_out(samples))
    weights = fit(samples)
    print(f'command = "python -m benchmarks.fit_confidence {" ".join(paths)}"')
    print(f"bias = {weights.bias:.3f}")
    for name, weight in zip(NAMES, weights.values, strict=True):
        print(f"{name} = {weight:.3f}")


def _report(answers: Sequence[Answer]) -> None:
    wanted = [answer for answer in answers if answer.case.relevant]
    others = [answer for answer in answers if not answer.case.relevant]
    first = sum(answer.position == 1 for answer in wanted) / len(wanted)
    answered = sum(answer.confidence >= ANSWER_AT for answer in wanted) / len(wanted)
    false = sum(answer.confidence >= ANSWER_AT for answer in others) / max(len(others), 1)
    _say(f"held out: recall at 1 {first:.3f}, answered {answered:.3f}, false matches {false:.3f}")
    apart = 0.0
    for number in range(BINS):
        inside = [one for one in answers if min(int(one.confidence * BINS), BINS - 1) == number]
        if inside:
            said = sum(one.confidence for one in inside) / len(inside)
            right = sum(one.position == 1 for one in inside) / len(inside)
            apart += abs(said - right) * len(inside) / len(answers)
            _say(f"said {said:.2f}, right {right:.2f}, {len(inside)} answers")
    _say(f"calibration error {apart:.3f}")


def _say(line: str) -> None:
    print(f"# {line}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
