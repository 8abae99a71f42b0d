"""What the engine answers to each report of the repository, as it is recorded in
docs/quality/answers.json: a test fails when one of them changes, for the worse or the better.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from kb.evaluate import Outcome
from kb.evaluate.cases import AMBIGUOUS

RECORD = Path("docs/quality/answers.json")


class Answer(StrEnum):
    """What came of a report, from the best to the worst.

    A report that nothing known fits is `SILENT` or `FALSE`, any other one of the rest. No answer is
    better than a wrong one.
    """

    SILENT = "not answered, as nothing fits"
    RIGHT = "first, answered"
    FIRST = "first, not answered"
    AMONG_3 = "among 3, not answered"
    MISSED = "missed, not answered"
    WRONG_AMONG_3 = "among 3, another one answered"
    WRONG = "missed, another one answered"
    FALSE = "answered, though nothing fits"

    @classmethod
    def of(cls, outcome: Outcome) -> Answer:
        """Classify one outcome."""
        if not outcome.answerable:
            return cls.FALSE if outcome.is_answer else cls.SILENT
        if outcome.is_right:
            return cls.RIGHT if outcome.is_answer else cls.FIRST
        if outcome.position and outcome.position <= 3:
            return cls.WRONG_AMONG_3 if outcome.is_answer else cls.AMONG_3
        return cls.WRONG if outcome.is_answer else cls.MISSED


Answers = Mapping[str, Answer]
"""By the id of the report."""


def answers_of(outcomes: Iterable[Outcome]) -> Answers:
    """Classify outcomes; reports without a right answer are left out."""
    return {
        outcome.case.id: Answer.of(outcome)
        for outcome in outcomes
        if outcome.case.kind != AMBIGUOUS
    }


def recorded() -> Answers:
    """Read the record."""
    stored = json.loads(RECORD.read_text(encoding="utf-8"))
    return {identifier: Answer(answer) for identifier, answer in stored.items()}


def record(answers: Answers) -> None:
    """Write the record: a line a report, in the order of the ids."""
    text = json.dumps(answers, indent=0, sort_keys=True, ensure_ascii=False)
    RECORD.write_text(f"{text}\n", encoding="utf-8")


def changes(before: Answers, now: Answers) -> list[str]:
    """Say which answers are other ones than before, those that got worse first."""
    order = list(Answer)
    told = []
    for identifier in sorted(before.keys() | now.keys()):
        old, new = before.get(identifier), now.get(identifier)
        if old is None or new is None:
            told.append(f"{'added' if old is None else 'removed'}: {identifier}")
        elif old is not new:
            worse = order.index(new) > order.index(old)
            told.append(f"{'WORSE' if worse else 'better'}: {identifier}: {old} -> {new}")
    return sorted(told)
