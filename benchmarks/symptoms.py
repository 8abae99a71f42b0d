"""How often a report that no record covers leads to the right playbook: `python -m
benchmarks.symptoms`.

The reports are those of benchmarks/reports/negatives.jsonl that tell of a failure; symptoms.jsonl
says which playbooks are right. Prints those that lead elsewhere, then the share with a right one
first, and among the first two.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchmarks.questions import Asked, tell
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.evaluate import read_cases
from kb.log import Log
from kb.settings import load_settings

LABELS = Path(__file__).with_suffix(".jsonl")
REPORTS = Path(__file__).with_name("reports") / "negatives.jsonl"

FIRST = 2
"""Number of playbooks that a person in a hurry reads."""


class _Label(msgspec.Struct, frozen=True):
    report: str
    right: tuple[str, ...]


def labels() -> Mapping[str, tuple[str, ...]]:
    """The right playbooks by id of the report."""
    lines = LABELS.read_bytes().splitlines()
    read = [msgspec.json.decode(line, type=_Label) for line in lines]
    return {label.report: label.right for label in read}


def ask(knowledge: KnowledgeBase) -> list[Asked]:
    """Which playbooks each of the labelled reports leads to."""
    right = labels()
    return [
        Asked(
            case.id,
            frozenset(right[case.id]),
            tuple(
                match.playbook.id
                for match in diagnose(Log.from_text(case.text), knowledge).playbooks
            ),
        )
        for case in read_cases(REPORTS)
        if case.id in right
    ]


def main() -> None:
    """Ask all and print the table."""
    with KnowledgeBase.open(load_settings()) as knowledge:
        tell(ask(knowledge), "reports", FIRST)


if __name__ == "__main__":
    main()
