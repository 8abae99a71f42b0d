"""Write the figures of docs/quality.md: `make quality`, with [plots].

Asks the repository's own reports and, where it lies beside the checkout, the development set, and
holds the dialogues. Writes docs/quality/answers.json and docs/quality.json, which the tests compare
with, the curves and the tables. The ablation has a command of its own: it takes much longer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import dialogues, twins
from benchmarks.answers import answers_of, record
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.evaluate import Outcome, Report, measure, read_cases, run
from kb.evaluate.measure import Ranking
from kb.evaluate.plots import plots
from kb.files import write_whole
from kb.settings import load_settings

OWN = tuple(sorted(Path("benchmarks/reports").glob("*.jsonl")))
DEVELOPMENT = tuple(sorted(Path("../shared/eval").glob("*.jsonl")))
STRANGERS = {half: Path(f"benchmarks/strangers/{half}.jsonl") for half in ("read", "unread")}
PAGE = Path("docs/quality.md")
RECORDED = Path("docs/quality.json")
PLOTS = Path("docs/quality")


def ask(paths: Sequence[Path], knowledge: KnowledgeBase) -> tuple[list[Outcome], Report]:
    """Ask all reports of some files."""
    records, _problems = IncidentDirectories().load()
    systems = {record.id: record.header.systems[0] for record in records}
    cases = [case for path in paths for case in read_cases(path)]
    outcomes = list(run(cases, knowledge, systems.keys()))
    return outcomes, measure(outcomes, systems)


def guarded(report: Report) -> dict[str, float]:
    """The figures that must not get worse, with the numbers of reports behind them."""
    return {
        "reports": report.overall.reports,
        "recall_at_1": report.overall.recall_at_1,
        "recall_at_3": report.overall.recall_at_3,
        "negatives": report.negatives.reports,
        "false_matches": report.negatives.rate,
        "calibration_error": report.calibration_error,
    }


def in_the_wild(report: Report) -> dict[str, float]:
    """The figures of reports that nobody labelled with incidents: only the remedy tells."""
    return {
        "reports": report.remedy.reports,
        "remedy_at_1": report.remedy.at_1,
        "remedy_at_3": report.remedy.at_3,
        "matches": report.remedy.matches,
        "held_by_matches": report.remedy.held_by_matches,
        "calibration_error": report.calibration_error,
    }


def main() -> None:
    """Measure, then rewrite what is recorded, the curves and the generated parts of the page."""
    with KnowledgeBase.open(load_settings()) as knowledge:
        outcomes, own = ask(OWN, knowledge)
        record(answers_of(outcomes))
        reports = {"own": own}
        if DEVELOPMENT:
            _outcomes, reports["development"] = ask(DEVELOPMENT, knowledge)
        wild = {half: ask([path], knowledge)[1] for half, path in STRANGERS.items()}
        held = dialogues.hold_all(knowledge)
        apart = twins.held(knowledge, twins.all_twins())
    figures = json.loads(RECORDED.read_text(encoding="utf-8"))
    figures |= {name: guarded(report) for name, report in reports.items()}
    figures |= {f"strangers {half}": in_the_wild(report) for half, report in wild.items()}
    figures["dialogues"] = dialogues.guarded(held)
    figures["twins"] = twins.guarded(apart)
    RECORDED.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    for name, report in {**reports, "strangers": wild["unread"]}.items():
        for file, drawn in plots(report, kinds=("svg",)):
            if report.coverage or not file.startswith("coverage"):
                write_whole(PLOTS / name / file, drawn, shared=True)
    tables = {f"figures {name}": _figures(report) for name, report in reports.items()}
    tables["figures strangers"] = _strangers(wild)
    fill(
        PAGE,
        {**tables, "figures dialogues": dialogues.table(held), "figures twins": twins.table(apart)},
    )


def _figures(report: Report) -> str:
    groups = {"all": report.overall, **report.by_kind, **report.by_language}
    negatives = report.negatives
    return (
        "| reports | number | at 1 | at 3 | at 5 | MRR | answered | wrong |\n"
        "| --- | --: | --: | --: | --: | --: | --: | --: |\n"
        + "".join(_row(name, rates) for name, rates in groups.items())
        + f"\nOf {negatives.reports} unanswerable reports, {negatives.false_matches}"
        f" ({negatives.rate:.1%}) are answered. Calibration error {report.calibration_error:.3f},"
        f" separation {report.separation:.3f}.\n"
    )


def _strangers(wild: Mapping[str, Report]) -> str:
    head = (
        "| half | reports | remedy at 1 | remedy at 3 | matches | right | calibration error |\n"
        "| --- | --: | --: | --: | --: | --: | --: |\n"
    )
    return head + "".join(
        f"| {half} | {one.remedy.reports} | {one.remedy.at_1:.3f} | {one.remedy.at_3:.3f}"
        f" | {one.remedy.matches} | {one.remedy.held_by_matches:.3f}"
        f" | {one.calibration_error:.3f} |\n"
        for half, one in wild.items()
    )


def _row(name: str, rates: Ranking) -> str:
    shares = (rates.recall_at_1, rates.recall_at_3, rates.recall_at_5, rates.mrr)
    cells = " | ".join(f"{share:.3f}" for share in (*shares, rates.answered, rates.wrong))
    return f"| {name} | {rates.reports} | {cells} |\n"


def fill(page: Path, parts: Mapping[str, str]) -> None:
    """Put each part between its two comments; a part that is not given stays as it is."""
    text = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        between = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, count = between.subn(lambda found, new=part: f"{found[1]}\n{new}\n{found[2]}", text)
        if count != 1:
            raise SystemExit(f"{page} has no place for: {name}")
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
