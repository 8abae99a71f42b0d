"""What a question is worth before it is answered."""

from __future__ import annotations

import math

from kb.questions.belief import Belief, Option, QuestionPlan

MAX_REVERSIBLE_LEAD = 10.0
"""Ratio of two shares up to which one more answer puts the second record first, such as `yes` to
its own observation: 0.85 against 0.08."""


def expected_gain(belief: Belief, inquiry: QuestionPlan) -> float:
    """By how many bits the answer is expected to lower the entropy of the belief.

    The mutual information of answer and cause (Lindley, *On a Measure of the Information Provided
    by an Experiment*, 1956).
    """
    return sum(_gain(belief, option) for option in inquiry.options)


def _gain(belief: Belief, option: Option) -> float:
    """The contribution of one answer. Records without a likelihood for it count as one."""
    shares = belief.shares
    named = [(shares[i], under) for i, under in option.likelihoods.items() if i in shares]
    rest = belief.total - sum(share for share, _ in named)
    parts = [*named, (rest, option.otherwise)]
    chance = sum(share * under for share, under in parts)
    return sum(
        share * under * math.log2(under / chance) for share, under in parts if share > 0 < under
    )


def could_change_order(belief: Belief, inquiry: QuestionPlan) -> bool:
    """Whether some answer puts another record first, or so near that one more answer can."""
    first = belief.order[0]
    return any(_rival(belief, option, first) for option in inquiry.options)


def _rival(belief: Belief, option: Option, first: str) -> bool:
    left = belief.shares[first] * option.under(first)
    return any(
        share and share * option.under(identifier) * MAX_REVERSIBLE_LEAD >= left
        for identifier, share in belief.shares.items()
        if identifier != first
    )
