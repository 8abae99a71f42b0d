"""Choose the question that is expected to take away most uncertainty."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kb.incident import Incident
from kb.questions.belief import Belief, QuestionPlan
from kb.questions.environment import KnownEnvironment, surroundings
from kb.questions.gain import could_change_order, expected_gain
from kb.questions.observe import is_printed, observations

LEAST_GAIN = 0.03
"""In bits. A question that promises less is not asked."""

MOST_WEIGHED = 20
"""Number of most likely candidates that questions are about."""


def next_question(
    belief: Belief,
    incidents: Mapping[str, Incident],
    known: KnownEnvironment,
    asked: Collection[str] = (),
) -> QuestionPlan | None:
    """The question with the largest expected gain among those that could change the order.

    `incidents` has the record of each share; `asked` are the keys of what was asked already.
    None when no answer would change the order.
    """
    likely = belief.narrowed(belief.order[:MOST_WEIGHED])
    if len(likely.shares) < 2:
        return None
    worthy = [
        inquiry
        for inquiry in _inquiries(likely, incidents, known)
        if inquiry.key not in asked and could_change_order(likely, inquiry)
    ]
    best = max(worthy, key=lambda inquiry: expected_gain(likely, inquiry), default=None)
    return best if best and expected_gain(likely, best) >= LEAST_GAIN else None


def _inquiries(
    belief: Belief, incidents: Mapping[str, Incident], known: KnownEnvironment
) -> Iterator[QuestionPlan]:
    candidates = [incidents[identifier] for identifier in belief.order]
    for inquiry in observations(candidates):
        if not is_printed(inquiry, known.printed):
            yield inquiry
    yield from surroundings(belief, candidates, known)
