"""The terminal view of a record, and of the list of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kb.guides import Record
from kb.incident import Incident
from kb.views.guide import guide_parts
from kb.views.prose import heading, indented, link, prose, steps


def render(record: Record) -> RenderableType:
    """Return the whole record."""
    if isinstance(record, Incident):
        return Group(*_parts(record))
    return Group(*guide_parts(record))


def _parts(incident: Incident) -> Iterator[RenderableType]:
    header, body = incident.header, incident.body
    yield Text.assemble((header.id, "cyan"), f"  {header.kind}, {header.confidence}")
    yield Text(header.title, "bold")
    if header.caution:
        yield Text(f"Caution: {header.caution}", "yellow")
    for title, text in (
        ("Symptom", body.symptom),
        ("Environment", body.setting),
        ("Cause", body.cause),
    ):
        yield heading(title)
        yield indented(prose(text))
    yield heading("Fix")
    yield steps(body.fix)
    if header.fixed_in:
        yield heading("Fixed in")
        yield from (indented(Text(str(fix))) for fix in header.fixed_in)
    yield heading("Verify")
    yield indented(prose(body.verify))
    if body.prevention:
        yield heading("Prevention")
        yield indented(prose(body.prevention))
    if body.distinguish:
        yield heading("Distinguish")
        for item in body.distinguish:
            yield indented(Text.assemble((item.other, "cyan"), "\n", prose(item.question)))
    yield heading("Evidence")
    for block in body.evidence:
        if block.source:
            yield indented(Text(f"Source: {block.source}"))
        yield indented(Text(block.text + "\n", "dim", overflow="fold"))
    yield heading("References")
    yield from (link(url) for url in header.references)


def render_list(incidents: Sequence[Record]) -> RenderableType:
    """Return a table of ids and titles, by system."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(overflow="fold")
    for incident in incidents:
        kind = "" if incident.kind == "incident" else f"  ({incident.kind})"
        table.add_row(Text.assemble((incident.id, "cyan"), kind, "\n  ", incident.title))
    return table
