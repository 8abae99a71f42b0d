"""The terminal view of leads: below everything, and marked as what nobody reviewed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from kb.lead import Lead
from kb.verdict import percent
from kb.views.prose import heading, indented, link

_MAX_ALSO = 3
"""Other reports of the same case that are named; the JSON has all."""


def render_leads(leads: Sequence[Lead]) -> Iterator[RenderableType]:
    """Each lead: its title, how it ended in the words of who wrote it, what matches, its link."""
    if not leads:
        return
    yield heading("Leads from your own backlog (not reviewed by anybody)")
    for number, lead in enumerate(leads, 1):
        yield from _lead(number, lead)


def _lead(number: int, lead: Lead) -> Iterator[RenderableType]:
    yield indented(Text.assemble(f"{number}. ", (lead.title, "bold")))
    yield indented(
        Text(f"{percent(lead.score)} of such leads were the right report; {lead.standing}", "dim"),
        5,
    )
    yield indented(Text.assemble(("matches: ", "dim"), lead.quote), 5)
    if lead.fix:
        where = f" in {lead.fix_from}" if lead.fix_from else ""
        yield indented(Text.assemble((f"{lead.fix_by}{where}: ", "dim"), lead.fix), 5)
    if lead.url:
        yield indented(link(lead.url), 3)
    else:
        yield indented(Text(lead.where, "dim"), 5)
    if lead.also:
        more = f" and {len(lead.also) - _MAX_ALSO} more" if len(lead.also) > _MAX_ALSO else ""
        yield indented(Text(f"the same: {', '.join(lead.also[:_MAX_ALSO])}{more}", "dim"), 5)
