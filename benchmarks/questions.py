"""How often a short question leads to the right playbook.

`python -m benchmarks.questions [FILE.jsonl...]`: each line holds a `text` as people type it and the
ids that are `right`, of playbooks or incidents. Prints the questions that lead elsewhere, then the
share with a right one first, and among the first three of what is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, diagnose
from kb.log import Log
from kb.settings import load_settings

QUESTIONS = Path(__file__).with_suffix(".jsonl")

FIRST = 3
"""Number of answers that a person reads."""


class Asked(msgspec.Struct, frozen=True):
    """A question and what it was answered."""

    text: str
    right: frozenset[str]
    answers: tuple[str, ...] = ()
    """Ids, most likely first."""

    def is_right(self, first: int) -> bool:
        """Whether a right one is among the first."""
        return not self.right.isdisjoint(self.answers[:first])


def ask(paths: Sequence[Path], knowledge: KnowledgeBase) -> list[Asked]:
    """Ask all questions of some files."""
    questions = [
        msgspec.json.decode(line, type=Asked)
        for path in paths
        for line in path.read_bytes().splitlines()
    ]
    return [
        msgspec.structs.replace(
            one, answers=tuple(_answers(diagnose(Log.from_text(one.text), knowledge)))
        )
        for one in questions
    ]


def share(asked: Sequence[Asked], first: int) -> float:
    """The share of questions with a right one among the first. 0 to 1."""
    return sum(one.is_right(first) for one in asked) / len(asked)


def _answers(diagnosis: Diagnosis) -> Iterator[str]:
    shown = [(match.confidence, match.incident.id) for match in diagnosis.matches]
    shown += [(match.confidence, match.playbook.id) for match in diagnosis.playbooks]
    yield from (identifier for _confidence, identifier in sorted(shown, reverse=True))


def tell(asked: Sequence[Asked], what: str, first: int) -> None:
    """Print those without a right one among the first, then the shares."""
    for one in asked:
        if not one.is_right(first):
            right = ", ".join(sorted(one.right))
            print(f"{one.text}: {', '.join(one.answers[:first])}; right: {right}")
    print(
        f"{len(asked)} {what}: a right one first {share(asked, 1):.0%},"
        f" among the first {first} {share(asked, first):.0%}"
    )


def main(paths: Sequence[Path]) -> None:
    """Print the table."""
    with KnowledgeBase.open(load_settings()) as knowledge:
        tell(ask(paths, knowledge), "questions", FIRST)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or [QUESTIONS])
