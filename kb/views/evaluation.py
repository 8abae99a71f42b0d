"""The terminal view of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kb.evaluate.jobs import JobReport
from kb.evaluate.measure import Miss, Ranking, Report

_MAX_QUOTE_CHARACTERS = 90
"""Of a line of a report: one row."""


def render(report: Report) -> RenderableType:
    """Return tables of rates, then the misses."""
    return Group(*_parts(report))


def render_jobs(report: JobReport) -> RenderableType:
    """Return the rates and a line a job."""
    table = _table(f"{report.jobs} jobs", "failed", "culprit", "line", "verdict", "advice")
    for outcome in report.outcomes:
        advice = "" if outcome.advice is None else _mark(outcome.advice)
        marks = (_mark(outcome.failed), _mark(outcome.culprit), _mark(outcome.line))
        table.add_row(f"{outcome.id} ({outcome.kind})", *marks, outcome.verdict, advice)
    rates = (
        f"failed or healthy {report.failed:.3f}, first culprit {report.culprit:.3f}, root line"
        f" {report.line:.3f}, all three {report.right:.3f}; {report.answered} answered,"
        f" {report.advice_right} with the correct remedy"
    )
    return Group(table, Text(rates))


def _mark(right: bool) -> str:
    return "ok" if right else "WRONG"


def _parts(report: Report) -> Iterator[RenderableType]:
    groups = {"all": report.overall, **report.by_kind, **report.by_language}
    yield _rankings("answerable reports", groups)
    yield _rankings("by system", report.by_system)
    yield _negatives(report)
    if report.remedy.reports:
        remedy = report.remedy
        yield Text(
            f"remedy at 1 {remedy.at_1:.3f}, in the top 3 {remedy.at_3:.3f} of {remedy.reports}"
            f" reports that name one; {remedy.held_by_matches:.3f} of the {remedy.matches} matches"
            " contain it\n"
        )
    yield _reliability(report)
    yield _coverage(report)
    yield from _misses("Misses", report.misses)
    yield from _misses("False matches: no known incident fits", report.false_matches)


def _rankings(title: str, groups: Mapping[str, Ranking]) -> Table:
    table = _table(title, "reports", "at 1", "at 3", "at 5", "MRR", "answered", "wrong")
    for name, rates in groups.items():
        shares = (rates.recall_at_1, rates.recall_at_3, rates.recall_at_5, rates.mrr)
        table.add_row(
            name,
            str(rates.reports),
            *(f"{share:.3f}" for share in (*shares, rates.answered, rates.wrong)),
        )
    return table


def _negatives(report: Report) -> Table:
    table = _table("unanswerable reports", "reports", "false matches", "rate")
    for name, rates in {"all": report.negatives, **report.negatives_by_kind}.items():
        table.add_row(name, str(rates.reports), str(rates.false_matches), f"{rates.rate:.3f}")
    return table


def _reliability(report: Report) -> Table:
    title = f"calibration error {report.calibration_error:.3f}; confidence of first matches"
    table = _table(title, "answers", "stated", "correct")
    for interval in report.reliability:
        table.add_row(
            f"{interval.low:.1f} to {interval.high:.1f}",
            str(interval.answers),
            f"{interval.said:.3f}",
            f"{interval.right:.3f}",
        )
    return table


def _coverage(report: Report) -> Table:
    """The curve at the bars that a reader thinks in."""
    title = f"minimum confidence; separation {report.separation:.3f}"
    table = _table(title, "coverage", "precision")
    for bar in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        point = next((point for point in report.coverage if point.confidence >= bar), None)
        if point:
            table.add_row(f"{bar:.1f}", f"{point.coverage:.3f}", f"{point.precision:.3f}")
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(title, min_width=24)
    for column in columns:
        table.add_column(column, justify="right")
    table.caption = " "
    return table


def _misses(title: str, misses: tuple[Miss, ...]) -> Iterator[Text]:
    if not misses:
        return
    yield Text(f"{title} ({len(misses)})", "bold")
    for miss in misses:
        place = f"at {miss.position}" if miss.position else "not shown"
        wanted = f"{' or '.join(miss.relevant)} {place}" if miss.relevant else "no answer expected"
        won = f"{miss.winner} {miss.confidence:.2f}" if miss.winner else "no incident"
        yield Text(f"{miss.id} ({miss.kind}, {miss.lang}): {wanted}; {miss.verdict}: {won}")
        for line in miss.why:
            yield Text(f"    {line[:_MAX_QUOTE_CHARACTERS]}", "dim")
