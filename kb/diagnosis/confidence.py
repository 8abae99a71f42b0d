"""The only module that computes confidence.

Each candidate gets a score that is linear in its features. The candidates of one question then
compete with each other and with "nothing known": `p = exp(s) / (1 + sum of all exp(s))` (a
conditional logit with a null alternative: McFadden, 1974). So probabilities add up to at most 1,
two look-alikes that fit equally well share it, and unrelated text without any evidence gets 0.
The probability of the first candidate is then calibrated on reports of held-out incidents (Platt
scaling: Platt, 1999); the others share the rest. A cause without a record may print the same
lines as a known one, so no confidence reaches 1.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from msgspec.structs import astuple

from kb.diagnosis.features import Features, Model, PlaybookFeatures, load_model

MAX_SCORE = 20.0
"""In log odds. A higher score changes no answer; `exp` of a much larger score overflows."""

_SPEAK_ALONE = ("strong_signatures", "weak_signatures")
_SPEAK_TOGETHER = ("coverage", "cosine")

PLAYBOOK_WEIGHTS = PlaybookFeatures(
    lines=2.9, named=3.0, contained=0.7, coverage=5.3, cosine=5.9, linked=2.7
)
PLAYBOOK_BIAS = -8.7
"""In log odds, fitted by `make playbook-weights`. None of the features leads to a playbook alone:
neither one line, nor a name, nor an incident that is likely and that its causes name."""


def confidences(candidates: Sequence[Features], model: Model | None = None) -> list[float]:
    """The probability of each candidate that it is the right answer. 0 to 1, sum at most 1."""
    chosen = model or load_model()
    odds = [_odds(features, chosen) for features in candidates]
    total = 1.0 + sum(odds)
    shares = [value / total for value in odds]
    best = max(shares, default=0.0)
    if not best:
        return shares
    calibrated = _calibrated(best, chosen)
    rest = (1.0 - calibrated) / (1.0 - best)
    first = shares.index(best)
    return [
        calibrated if position == first else min(share * rest, calibrated)
        for position, share in enumerate(shares)
    ]


def share_among_playbooks(playbooks: Sequence[PlaybookFeatures], left: float) -> list[float]:
    """What the incidents leave, `left` of 1, shared among the playbooks and "none of them"."""
    odds = [math.exp(min(_playbook_score(features), MAX_SCORE)) for features in playbooks]
    total = 1.0 + sum(odds)
    return [left * value / total for value in odds]


def _playbook_score(features: PlaybookFeatures) -> float:
    score: float = sum(map(operator.mul, astuple(PLAYBOOK_WEIGHTS), astuple(features)))
    return PLAYBOOK_BIAS + score


def _calibrated(best: float, model: Model) -> float:
    log_odds = model.slope * math.log(best / (1.0 - best)) + model.offset
    return 1.0 / (1.0 + math.exp(-log_odds))


def _odds(features: Features, model: Model) -> float:
    values = {row.name: row.value(features) for row in model.feature}
    if not _is_candidate(values):
        return 0.0
    score = model.bias + sum(row.weight * values[row.name] for row in model.feature)
    return math.exp(min(score, MAX_SCORE))


def _is_candidate(values: dict[str, float]) -> bool:
    """Whether there is any evidence for it: a signature, or words and meaning together."""
    return any(values[name] for name in _SPEAK_ALONE) or all(
        values[name] for name in _SPEAK_TOGETHER
    )
