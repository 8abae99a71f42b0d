"""Which remedies are shown most: `python -m benchmarks.most_shown`.

Diagnoses all reports of the repository, and counts which record leads; of equal ones those that
match more often come first. Prints the first thirty, the founding incidents among them:
kb/conversation/chinese holds them in Chinese. Takes a minute and a half.
"""

from __future__ import annotations

from collections import Counter

from benchmarks.quality import OWN
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.evaluate import read_cases
from kb.log import Log
from kb.settings import load_settings
from kb.verdict import Verdict

SHOWN = 30


def most_shown(knowledge: KnowledgeBase) -> list[tuple[str, int, int]]:
    """Ids, how often each leads, and how often it matches."""
    leads, matches = Counter[str](), Counter[str]()
    for path in OWN:
        for case in read_cases(path):
            diagnosis = diagnose(Log.from_text(case.text), knowledge)
            first = [match.incident.id for match in diagnosis.matches[:1]]
            leads.update(first)
            matches.update(first if diagnosis.verdict is Verdict.MATCH else [])
    order = sorted(leads, key=lambda name: (-leads[name], -matches[name], name))
    return [(name, leads[name], matches[name]) for name in order[:SHOWN]]


def main() -> None:
    """Count and print."""
    with KnowledgeBase.open(load_settings()) as knowledge:
        for name, leads, matches in most_shown(knowledge):
            print(f"{leads:3} {matches:3} {name}")


if __name__ == "__main__":
    main()
