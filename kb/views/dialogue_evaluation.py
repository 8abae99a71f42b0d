"""The terminal view of how well dialogues go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kb.evaluate.dialogues import DialogueRates, DialogueReport

_MAX_FAILED_SHOWN = 20
"""Turns; the others are in the JSON."""


def render_dialogues(report: DialogueReport) -> RenderableType:
    """Return the rates, and the turns that are not good."""
    return Group(*_parts(report))


def _parts(report: DialogueReport) -> Iterator[RenderableType]:
    groups = {"all": report.overall, **report.by_language, **report.by_opening}
    yield _rates(groups)
    lead, checks = report.lead, report.checks
    yield Text(
        f"The cause leads after the opening in {lead.at_opening:.3f} and at the end in"
        f" {lead.at_end:.3f} of the {lead.dialogues} dialogues that name one; where it leads, after"
        f" {lead.turns:.2f} turns."
    )
    if checks.dialogues:
        yield Text(
            f"Checks proposed until one that the user can do: {checks.chosen:.2f} as chosen,"
            f" {checks.fixed:.2f} in the playbook's order ({checks.dialogues} dialogues)."
        )
    yield Text(f"A reply takes {report.p50_ms:.0f} ms (p50), {report.p95_ms:.0f} ms (p95).\n")
    if report.failed:
        yield Text(f"Turns that are not good ({len(report.failed)})", "bold")
    for one in report.failed[:_MAX_FAILED_SHOWN]:
        reasons = [
            *(f"lacks {expression}" for expression in one.missing),
            *(f"has {expression}" for expression in one.forbidden),
            *([one.failure] if one.failure else []),
        ]
        yield Text(f"  {one.id} turn {one.turn}: {'; '.join(reasons)}")
    if len(report.failed) > _MAX_FAILED_SHOWN:
        yield Text("  All of them: --json", "dim")


def _rates(groups: Mapping[str, DialogueRates]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("dialogues", min_width=24)
    for column in ("number", "turns", "good", "openings", "whole"):
        table.add_column(column, justify="right")
    for name, rates in groups.items():
        shares = (rates.good, rates.openings, rates.whole)
        table.add_row(
            name, str(rates.dialogues), str(rates.turns), *(f"{share:.3f}" for share in shares)
        )
    table.caption = " "
    return table
