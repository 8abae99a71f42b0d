"""Choose the question that is expected to take away most uncertainty."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kb.incident import Incident
from kb.questions.belief import Belief, QuestionPlan
from kb.questions.environment import KnownEnvironment, environment_questions
from kb.questions.gain import could_change_order, expected_gain
from kb.questions.observe import is_printed, observations

MIN_GAIN_BITS = 0.03
"""Minimum expected gain of a question, in bits; one that promises less is not worth an answer."""

MAX_CANDIDATES_WEIGHED = 20
"""Number of most likely candidates that questions are about, as many as a conversation shows."""


def next_question(
    belief: Belief,
    incidents: Mapping[str, Incident],
    known: KnownEnvironment,
    settled_questions: Collection[str] = (),
) -> QuestionPlan | None:
    """The question with the largest expected gain among those that could change the order.

    `incidents` has the record of each share; `settled_questions` has the keys of questions that are
    not asked again.
    None when no answer would change the order.
    """
    likely = belief.narrowed(belief.order[:MAX_CANDIDATES_WEIGHED])
    if len(likely.shares) < 2:
        return None
    worthy = [
        inquiry
        for inquiry in _inquiries(likely, incidents, known)
        if inquiry.key not in settled_questions and could_change_order(likely, inquiry)
    ]
    best = max(worthy, key=lambda inquiry: expected_gain(likely, inquiry), default=None)
    return best if best and expected_gain(likely, best) >= MIN_GAIN_BITS else None


def _inquiries(
    belief: Belief, incidents: Mapping[str, Incident], known: KnownEnvironment
) -> Iterator[QuestionPlan]:
    candidates = [incidents[identifier] for identifier in belief.order]
    for inquiry in observations(candidates):
        if not is_printed(inquiry, known.printed):
            yield inquiry
    yield from environment_questions(belief, candidates, known)
