"""The selected incident: how sure, why, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Markdown, Static

from kb.verdict import percent
from tui.prose import heading, inline
from tui.widgets.match_list import bar

if TYPE_CHECKING:
    from kb.diagnosis import Match, Why
    from kb.incident import Incident, Step

_BAR_CELLS = 20
"""Columns of the bar of a confidence."""
_MAX_QUOTE_CHARACTERS = 300
"""Of a line of evidence, which may wrap."""


class Detail(VerticalScroll):
    """Shows one match, or a sentence where there is none."""

    step = 0
    """Place of the current step in the fix."""

    async def show(self, match: Match, done: Collection[int]) -> None:
        """Show a match with the steps that are done."""
        self.border_title = "Incident"
        self.step = next((n for n in range(len(match.incident.body.fix)) if n not in done), 0)
        await self._replace(_parts(match, done))
        self._mark_current()

    async def show_state(self, title: str, markdown: str) -> None:
        """Show what there is to say where nothing matches."""
        self.border_title = title
        await self._replace([Markdown(markdown, open_links=False)])

    async def show_record(self, incident: Incident) -> None:
        """Show a record that is read for its own sake."""
        await self._replace(_record_parts(incident))

    @property
    def steps(self) -> list[StepRow]:
        """The rows of the fix."""
        return list(self.query(StepRow))

    def go_to_step(self, place: int) -> None:
        """Make another step the current one and bring it into view."""
        rows = self.steps
        if rows:
            self.step = max(0, min(place, len(rows) - 1))
            self._mark_current()
            first = self.query_one("#fix-heading") if self.step == 0 else rows[self.step]
            first.scroll_visible(animate=False)

    def tick(self, done: Collection[int]) -> None:
        """Show which steps are done."""
        for row in self.steps:
            row.done = row.place in done
            row.refresh_mark()
        heads = self.query("#fix-heading").results(Static)
        for head in heads:
            head.update(_fix_heading(len(done), len(self.steps)))

    def _mark_current(self) -> None:
        for row in self.steps:
            row.current = row.place == self.step
            row.refresh_mark()

    async def _replace(self, parts: Iterable[Widget]) -> None:
        async with self.batch():
            await self.remove_children()
            await self.mount_all(parts)
        self.scroll_home(animate=False)


class StepRow(Horizontal):
    """One step: its tick, its sentence, its command and why."""

    def __init__(self, place: int, step: Step, done: bool) -> None:
        super().__init__()
        self.place, self.content, self.done = place, step, done
        self.current = False

    def compose(self) -> ComposeResult:
        yield Static(self._mark(), classes="mark")
        with Vertical():
            yield Static(inline(self.content.text))
            if self.content.command:
                yield Static(Content(self.content.command), classes="command")
            if self.content.why:
                yield Static(inline(self.content.why), classes="why")

    def refresh_mark(self) -> None:
        """Draw the tick and the pointer again."""
        self.set_class(self.done, "done")
        self.set_class(self.current, "current")
        for mark in self.query(".mark").results(Static):
            mark.update(self._mark())

    def _mark(self) -> Content:
        pointer = "▸" if self.current else " "
        return Content(f"{pointer} [{'x' if self.done else ' '}] {self.place + 1}.")


def _parts(match: Match, done: Collection[int]) -> Iterator[Widget]:
    incident = match.incident
    yield Static(
        Content.assemble(
            (f"{percent(match.confidence)} ", "bold"),
            bar(match.confidence, _BAR_CELLS),
            "  ",
            (incident.id, "$primary"),
        ),
        classes="summary",
    )
    yield from _title(incident)
    yield Static(heading("Why", "e: show in the log"), classes="heading")
    yield from _why(match.why)
    yield from _body(incident, done)


def _record_parts(incident: Incident) -> Iterator[Widget]:
    about = f"  {incident.kind}, {incident.header.confidence}"
    yield Static(Content.assemble((incident.id, "$primary"), (about, "dim")))
    yield from _title(incident)
    yield from _body(incident, ())
    evidence = incident.body.evidence_text
    yield Static(heading("Evidence"), classes="heading")
    yield Static(Content(evidence), classes="quote")


def _title(incident: Incident) -> Iterator[Widget]:
    yield Static(Content.styled(incident.title, "bold"), classes="summary")
    if incident.header.caution:
        caution = Content.assemble(("Caution: ", "bold"), inline(incident.header.caution))
        yield Static(caution, classes="caution")


def _why(lines: Sequence[Why]) -> Iterator[Widget]:
    for number, why in enumerate(lines, 1):
        line = why.line
        where = f"{line.file}:{line.number}" if line.file else f"line {line.number}"
        times = f", {line.count} times" if line.count > 1 else ""
        text = line.text.strip()
        quote = (
            text if len(text) <= _MAX_QUOTE_CHARACTERS else text[:_MAX_QUOTE_CHARACTERS] + " ..."
        )
        head = Content.assemble(
            (f"[{number}] ", "bold $accent"), (f"{where}{times}  by {why.by}", "dim")
        )
        yield Static(head, classes="where")
        yield Static(Content(quote), classes="quote")


def _body(incident: Incident, done: Collection[int]) -> Iterator[Widget]:
    body, header = incident.body, incident.header
    yield _markdown(("Symptom", body.symptom), ("Environment", body.setting), ("Cause", body.cause))
    yield Static(_fix_heading(len(done), len(body.fix)), classes="heading", id="fix-heading")
    for place, step in enumerate(body.fix):
        yield StepRow(place, step, place in done)
    yield _markdown(
        ("Fixed in", "\n".join(f"- {fix}" for fix in header.fixed_in)),
        ("Verify", body.verify),
        ("Prevention", body.prevention),
        ("References", "\n".join(f"- <{url}>" for url in header.references)),
    )


def _markdown(*sections: tuple[str, str | None]) -> Markdown:
    text = "\n\n".join(f"## {title}\n\n{content}" for title, content in sections if content)
    return Markdown(text, open_links=False)


def _fix_heading(done: int, steps: int) -> Content:
    return heading("Fix", f"{done} of {steps} done")
