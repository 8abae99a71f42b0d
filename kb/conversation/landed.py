"""Whether a remedy took effect: most of what "did not help" never did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from index.tokens import tokenize
from kb.incident import Incident, Step
from kb.questions import Option, QuestionPlan, Topic
from kb.questions.observe import NO, YES
from kb.soft_breaks import join_soft_breaks

PERSISTS_IF_RIGHT = 0.3
"""Likelihood that the problem persists after a remedy of the right record took effect, as far as
the user can see: it may have been applied in the wrong place."""
TAKES_EFFECT = 0.3
"""Likelihood that a remedy which is said to have failed took effect at all: an option is given to
another container, a variable does not reach the ranks, an old process goes on."""

_CLAUSES = re.compile(r"(?<=[.;])\s+|, (?=and |with )")
_OBSERVED = re.compile(
    r"\b(?:shows?|prints?|reads|reports?|says|lists|returns|contains|names|is gone|are gone)\b"
)
_CODE = re.compile(r"`[^`]+`")


def effect_question(incident: Incident, number: int) -> QuestionPlan | None:
    """Asks for the observation that shows that a step took effect; None where the record has none.

    `number` is that of the step, from 1. `yes` lowers the record as far as the step can tell.
    """
    step = incident.body.fix[number - 1]
    seen = next(_observations(step, incident), None)
    if seen is None:
        return None
    yes = {incident.id: TAKES_EFFECT * PERSISTS_IF_RIGHT}
    no = {name: 1 - chance for name, chance in yes.items()}
    return QuestionPlan(
        topic=Topic.EFFECT,
        key=f"{incident.id}:{number}",
        text=f"Did it take effect? Then this holds: {seen}",
        options=(Option(YES, yes, TAKES_EFFECT), Option(NO, no, 1 - TAKES_EFFECT)),
        records=(incident.id,),
    )


def _observations(step: Step, incident: Incident) -> Iterator[str]:
    """Clauses about something to look at that the step changes: those of the step itself, then
    those by which the fix is verified."""
    changed = frozenset(tokenize(f"{step.text} {step.command or ''}"))
    for clause in (*_clauses(step.why or ""), *_clauses(incident.body.verify)):
        looks = _OBSERVED.search(clause) and _CODE.search(clause)
        if looks and not changed.isdisjoint(tokenize(clause)):
            yield f"{clause[0].upper()}{clause[1:].rstrip('.;,')}."


def _clauses(text: str) -> Sequence[str]:
    return [clause.strip() for clause in _CLAUSES.split(join_soft_breaks(text)) if clause.strip()]
