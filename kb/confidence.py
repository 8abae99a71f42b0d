"""The one place where confidence is made.

Each candidate gets a score that is linear in what speaks for it. The candidates of one question
then compete with each other and with "nothing known": `p = exp(s) / (1 + sum of all exp(s))`
(a conditional logit with a null alternative: McFadden, 1974). So probabilities add up to at most
1, two look-alikes that fit equally well share, and foreign text, for which nothing speaks, gets 0.
What the first one gets is then set to how often such an answer was right on reports of incidents
held out of the fit (Platt scaling: Platt, 1999); the others share the rest. A cause that has no
record yet may print what a known one prints, so no confidence reaches 1.

The weights lie in confidence.toml, with the command that fitted them.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec


class Signs(msgspec.Struct, frozen=True):
    """What speaks for one candidate, and what against. None is negative."""

    strong: float = 0.0
    """Strong signatures seen, each divided by the number of records that have it."""
    weak: float = 0.0
    """Weak signatures seen, likewise."""
    coverage: float = 0.0
    """Share of the query's words, by rarity, that the record has. 0 to 1."""
    mass: float = 0.0
    """Weight of all the query's words that the record has (1 = one rare word)."""
    line: float = 0.0
    """Weight of the words of the query's best line that the record has (1 = one rare word)."""
    meaning: float = 0.0
    """Cosine of the nearest passages. 0 to 1."""
    systems: float = 0.0
    """Systems that the log speaks of and the record is about, by rarity (1 = of this alone)."""
    size: float = 0.0
    """Distinct lines that were searched, as a logarithm: many lines share words with anything."""
    unsigned: float = 0.0
    """1 when a program's output holds none of the signatures that the record declares. Who asks in
    words quotes no signature, so there it is 0."""
    calm: float = 0.0
    """1 when no line of a log shows a failure: many a hang prints none, but most such logs are
    healthy."""
    calm_progress: float = 0.0
    """1 when, besides, what the program was started for goes on to the end of the log."""
    codes: float = 0.0
    """1 when the log states an exact code that the record's evidence states as well."""
    conflict: float = 0.0
    """1 when an exact code in the log differs from the record's: error 802 is not error 803."""


AGAINST = frozenset({"size", "unsigned", "calm", "calm_progress", "conflict"})
"""The signs that speak against a candidate."""


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Coefficients of the score. All weights are at least 0, but for those of `AGAINST`."""

    command: str
    slope: float
    offset: float
    """Of the calibration, in log odds."""
    bias: float
    strong: float
    weak: float
    coverage: float
    mass: float
    line: float
    meaning: float
    systems: float
    size: float
    unsigned: float
    calm: float
    calm_progress: float
    codes: float
    conflict: float


ANSWER_AT = 0.72
"""From this confidence on an incident is shown as a match; below, as possible. See docs/quality.md
for what another bar would cost."""

SHOW_AT = 0.10
"""Below this confidence of the first incident none is shown: nothing known fits."""

SHOW_CALM_AT = 0.60
"""The same for a log that shows no failure and goes on to its end: it is healthy until then."""

SHOW_ALSO_AT = 0.02
"""Below this confidence an incident is not shown behind the first one."""

_MOST_STRONG = 2.0
_MOST_WEAK = 3.0
_MOST_MASS = 30.0
_MOST_LINE = 8.0
_MOST_SYSTEMS = 2.0
_FOREIGN_MEANING = 0.30
_FOREIGN_COVERAGE = 0.15
_FEW_WORDS = 4.0
_HIGHEST_SCORE = 20.0
_SUREST = 0.99


@cache
def load_model() -> Model:
    """Read the shipped coefficients."""
    text = files("kb").joinpath("confidence.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Model)


def features(signs: Signs) -> tuple[float, ...]:
    """The signs as the score sees them, in the order of `Model`: saturated, and without the part
    that foreign text reaches as well."""
    return (
        min(signs.strong, _MOST_STRONG),
        min(signs.weak, _MOST_WEAK),
        _covered(signs),
        min(signs.mass, _MOST_MASS) / _MOST_MASS,
        min(signs.line, _MOST_LINE) / _MOST_LINE,
        max(0.0, signs.meaning - _FOREIGN_MEANING) / (1 - _FOREIGN_MEANING),
        min(signs.systems, _MOST_SYSTEMS) / _MOST_SYSTEMS,
        signs.size,
        signs.unsigned,
        signs.calm,
        signs.calm_progress,
        signs.codes,
        signs.conflict,
    )


def _covered(signs: Signs) -> float:
    """The covered share above what foreign text reaches. All of two or three words is little."""
    share = max(0.0, signs.coverage - _FOREIGN_COVERAGE) / (1 - _FOREIGN_COVERAGE)
    return share * signs.mass / (signs.mass + _FEW_WORDS)


def confidences(candidates: Sequence[Signs], model: Model | None = None) -> list[float]:
    """The probability of each candidate that it is the right answer. 0 to 1, sum at most 1."""
    chosen = model or load_model()
    odds = [_odds(signs, chosen) for signs in candidates]
    total = 1.0 + sum(odds)
    shares = [value / total for value in odds]
    best = max(shares, default=0.0)
    if not best:
        return shares
    said = _calibrated(best, chosen)
    rest = (1.0 - said) / (1.0 - best)
    first = shares.index(best)
    return [
        said if place == first else min(share * rest, said) for place, share in enumerate(shares)
    ]


def _calibrated(best: float, model: Model) -> float:
    log_odds = model.slope * math.log(best / (1.0 - best)) + model.offset
    return 1.0 / (1.0 + math.exp(-log_odds))


def _odds(signs: Signs, model: Model) -> float:
    values = features(signs)
    strong, weak, coverage, meaning = values[0], values[1], values[2], values[5]
    if not (strong or weak or (coverage and meaning)):
        return 0.0
    score = model.bias + sum(w * v for w, v in zip(weights(model), values, strict=True))
    return math.exp(min(score, _HIGHEST_SCORE))


def percent(confidence: float) -> str:
    """A confidence as people read it; none is a certainty."""
    return f"{min(confidence, _SUREST):.0%}"


def weights(model: Model) -> tuple[float, ...]:
    """The weights in the order of `features`."""
    return tuple(getattr(model, name) for name in Signs.__struct_fields__)
