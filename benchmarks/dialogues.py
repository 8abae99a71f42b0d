"""The scripted dialogues of the repository: `make quality` holds them and records their figures.

Those who wrote them had seen neither the tool nor its records. More than half rest on a public
thread that was resolved (`source`), the others on experience.
"""

from __future__ import annotations

from pathlib import Path

from kb.corpus.base import KnowledgeBase
from kb.evaluate.dialogues import (
    DialogueRates,
    DialogueReport,
    hold,
    measure_dialogues,
    read_scripts,
)

SCRIPTS = tuple(sorted(Path("benchmarks/dialogues").glob("*.jsonl")))


def hold_all(knowledge: KnowledgeBase) -> DialogueReport:
    """Say all of them, and measure."""
    scripts = [script for path in SCRIPTS for script in read_scripts(path)]
    return measure_dialogues([hold(script, knowledge) for script in scripts])


def guarded(report: DialogueReport) -> dict[str, float]:
    """The figures that must not get worse, with the numbers behind them."""
    return {
        "dialogues": report.overall.dialogues,
        "turns": report.overall.turns,
        "good": report.overall.good,
        "openings": report.overall.openings,
        "whole": report.overall.whole,
    }


def table(report: DialogueReport) -> str:
    """The figures as Markdown."""
    groups = {"all": report.overall, **report.by_language, **report.by_opening}
    lead, checks = report.lead, report.checks
    return (
        "| dialogues | number | turns | good | good openings | wholly good |\n"
        "| --- | --: | --: | --: | --: | --: |\n"
        + "".join(_row(name, rates) for name, rates in groups.items())
        + f"\nThe cause leads after the opening in {lead.at_opening:.1%} and at the end in"
        f" {lead.at_end:.1%}; where it leads, after {lead.turns:.2f} turns. Until a check whose"
        f" output the user has, {checks.chosen:.2f} are proposed, and {checks.fixed:.2f} in the"
        f" order of the playbook ({checks.dialogues} dialogues).\n"
    )


def _row(name: str, rates: DialogueRates) -> str:
    shares = f"{rates.good:.1%} | {rates.openings:.1%} | {rates.whole:.1%}"
    return f"| {name} | {rates.dialogues} | {rates.turns} | {shares} |\n"
