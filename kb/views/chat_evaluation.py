"""The terminal view of how many questions look-alikes take."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kb.evaluate.chat import ChatReport, GroupReport, Rates, SimulatedTalk

_MAX_QUOTE_CHARACTERS = 90
"""Of a line of a report: one row."""


def render_chat(report: ChatReport) -> RenderableType:
    """Return the rates, and the conversations that never got to the true record."""
    return Group(*_parts(report))


def _parts(report: ChatReport) -> Iterator[RenderableType]:
    yield Text(
        f"{report.groups} groups of look-alikes with {report.records} records;"
        f" {report.conversations} conversations. In {report.not_candidates} of them the correct"
        " record is not a candidate."
        f" {report.silent} more groups share a line that finds no record.\n"
    )
    yield _rates({"chosen by expected gain": report.chosen, "in fixed order": report.fixed})
    yield Text("Never first", "bold")
    for outcome in report.outcomes:
        yield from _lost(outcome)


def _rates(rows: dict[str, Rates]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("questions", min_width=24)
    for column in ("mean", "by group", "reached", "at start", "total asked"):
        table.add_column(column, justify="right")
    for name, rates in rows.items():
        table.add_row(
            name,
            f"{rates.mean:.2f}",
            f"{rates.mean_by_group:.2f}",
            f"{rates.reached:.3f}",
            f"{rates.at_start:.3f}",
            f"{rates.asked:.2f}",
        )
    table.caption = " "
    return table


def _lost(report: GroupReport) -> Iterator[Text]:
    lost = [talk for talk in report.chosen if talk.questions is None]
    if lost:
        yield Text(f"  {report.group.line.strip()[:_MAX_QUOTE_CHARACTERS]}", "dim")
    for talk in lost:
        yield Text(f"    {talk.record}: {_why(talk)}")


def _why(talk: SimulatedTalk) -> str:
    return f"{talk.asked} questions asked" if talk.candidate else "not among the candidates"
