"""What a team's grades say: how often an answer was right, how many cases have a record, and from
which confidence on at most one match in twenty was wrong.

The intervals are those of Wilson (1927), which hold for few cases and for shares near 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from kb.audit.grades import Grade, Graded
from kb.verdict import Verdict

_Z_OF_95_PERCENT = 1.96
"""Standard deviations on both sides of the mean that hold 95 % of a normal distribution."""

MAX_WRONG_SHARE = 0.05
"""Of the answers above the bar: one in twenty."""
MIN_ANSWERS_ABOVE_BAR = 20
"""With fewer, no share tells one in twenty from none."""


class Share(msgspec.Struct, frozen=True):
    """A share of some cases, and the interval that holds it with 95 % confidence, 0 to 1."""

    hits: int
    cases: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """0 where there are no cases."""
        return self.hits / self.cases if self.cases else 0.0


class Reliability(msgspec.Struct, frozen=True):
    """The figures of an audit."""

    matches: Share
    """Matches that led to what helped."""
    harmful: Share
    """Matches of the right area with the wrong diagnosis."""
    covered: Share
    """Cases whose record was shown first."""
    bar: float | None
    """The lowest confidence from which on at most one answer in twenty was wrong; None while no
    confidence is known to be such a bar."""
    above_bar: int
    """Answers on which the bar rests; without one, all answers with an incident."""


def reliability(cases: Sequence[Graded]) -> Reliability:
    """Count the grades."""
    matches = [one for one in cases if one.verdict is Verdict.MATCH]
    bar, above = _bar([one for one in cases if one.record])
    return Reliability(
        matches=_share(sum(one.grade.is_good for one in matches), len(matches)),
        harmful=_share(sum(one.grade is Grade.AREA for one in matches), len(matches)),
        covered=_share(sum(one.is_covered for one in cases), len(cases)),
        bar=bar,
        above_bar=above,
    )


def _share(hits: int, cases: int) -> Share:
    if not cases:
        return Share(0, 0, 0.0, 1.0)
    z = _Z_OF_95_PERCENT
    share = hits / cases
    middle = share + z * z / (2 * cases)
    spread = z * math.sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    whole = 1 + z * z / cases
    low, high = (middle - spread) / whole, (middle + spread) / whole
    return Share(hits, cases, max(0.0, low), min(1.0, high))


def _bar(answers: Sequence[Graded]) -> tuple[float | None, int]:
    """The bar and the number of answers at or above it."""
    surest = sorted(answers, key=lambda one: -one.confidence)
    best: tuple[float | None, int] = (None, len(answers))
    wrong = 0
    for number, one in enumerate(surest, 1):
        wrong += not one.grade.is_good
        ends_here = number == len(surest) or surest[number].confidence < one.confidence
        if ends_here and number >= MIN_ANSWERS_ABOVE_BAR and wrong <= MAX_WRONG_SHARE * number:
            best = (one.confidence, number)
    return best
