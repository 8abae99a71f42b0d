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
from collections.abc import Mapping, Sequence

from msgspec.structs import astuple

from kb.diagnosis.features import Features, Model, PlaybookFeatures, load_model
from kb.playbook import Playbook, Share
from kb.questions import Belief

MAX_SCORE = 20.0
"""In log odds. A higher score changes no answer; `exp` of a much larger score overflows."""

_SPEAK_ALONE = ("strong_signatures", "weak_signatures")
_SPEAK_TOGETHER = ("coverage", "cosine")

PLAYBOOK_WEIGHTS = PlaybookFeatures(
    lines=2.8, named=2.2, contained=0.7, coverage=4.7, cosine=7.0, linked=2.5
)
PLAYBOOK_BIAS = -8.7
"""In log odds, fitted by `make playbook-weights`. None of the features leads to a playbook alone:
neither one line, nor a name, nor an incident that is likely and where its symptom is seen."""

UNSUPPORTED = 0.05
"""Share, of what all incidents leave, that an incident which a check names has at least before the
reading is weighed, 0 to 1: one reading then brings it into the list."""

CAUSE_WEIGHTS = {Share.OFTEN: 6.0, Share.SOMETIMES: 3.0, Share.RARE: 1.0}
"""Odds of the causes of a symptom: readers take "often" for some six in ten, "sometimes" for three,
"rare" for one."""
OTHER_CAUSES = 0.1
"""Share of the causes that a playbook does not name, 0 to 1."""


def confidences(
    candidates: Sequence[Features], model: Model | None = None, covered: float | None = None
) -> list[float]:
    """The probability of each candidate that it is the right answer. 0 to 1, sum at most 1.
    `covered` is the share of failures with a known incident; by default that of the model."""
    chosen = model or load_model()
    odds = [_odds(features, chosen) for features in candidates]
    total = 1.0 + sum(odds)
    shares = [value / total for value in odds]
    best = max(shares, default=0.0)
    if not best:
        return shares
    calibrated = _calibrated(best, chosen, covered or chosen.covered)
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


def weigh_readings(shares: Mapping[str, float], ratios: Mapping[str, float]) -> dict[str, float]:
    """The shares of incidents and playbooks after the outputs of checks were read (Bayes' rule),
    by id; they still leave the rest to "nothing known". `ratios` are those of the likelihoods.

    Shares that add up to more than 1, as those of several culprits of a job, go on doing so.
    """
    belief = Belief.of(shares)
    weighed = belief.weighed(ratios, nothing=1.0).shares
    return {name: share * belief.total for name, share in weighed.items()}


def belief_of_causes(
    playbook: Playbook, incidents: Mapping[str, float], ratios: Mapping[str, float]
) -> Belief:
    """The causes of a symptom by their keys, given that it is this symptom.

    As likely as an incident is, it is its causes; the rest is shared as the playbook says. `ratios`
    are those of the likelihoods of what was read, by `playbook:cause`.
    """
    causes = playbook.body.causes
    weights = {cause.key: CAUSE_WEIGHTS[cause.share] for cause in causes}
    whole = sum(weights.values()) / (1.0 - OTHER_CAUSES)
    usual = Belief.of({key: weight / whole for key, weight in weights.items()})
    read = {cause.key: ratios.get(f"{playbook.id}:{cause.key}", 1.0) for cause in causes}
    seen = usual.weighed(read, nothing=1.0).shares
    owners = {
        name: [cause.key for cause in causes if name in cause.incidents] for name in incidents
    }
    linked = {name: share for name, share in incidents.items() if owners[name]}
    left = 1.0 - min(sum(linked.values()), 1.0)
    shares = {key: share * left for key, share in seen.items()}
    for name, share in linked.items():
        whole = sum(seen[key] for key in owners[name])
        for key in owners[name]:
            shares[key] += share * seen[key] / whole
    return Belief.of(shares)


def _playbook_score(features: PlaybookFeatures) -> float:
    score: float = sum(map(operator.mul, astuple(PLAYBOOK_WEIGHTS), astuple(features)))
    return PLAYBOOK_BIAS + score


def _calibrated(best: float, model: Model, covered: float) -> float:
    log_odds = model.slope * _log_odds(best) + model.offset
    log_odds += _log_odds(covered) - _log_odds(model.covered)
    return model.top / (1.0 + math.exp(-log_odds))


def _log_odds(share: float) -> float:
    return math.log(share / (1.0 - share))


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
