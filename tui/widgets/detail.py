"""The selected incident: how sure, why, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Markdown, Static

from kb.verdict import percent
from tui.prose import heading, inline
from tui.titles import UNCUT, told_apart
from tui.widgets.match_list import bar
from tui.widgets.step_rows import StepRow, task_rows

if TYPE_CHECKING:
    from kb.diagnosis import Match, Why
    from kb.incident import Incident
    from tui.case import Case

_BAR_CELLS = 20
"""Columns of the bar of a confidence."""
_MAX_QUOTE_CHARACTERS = 300
"""Of a line of evidence, which may wrap."""


class Detail(VerticalScroll):
    """Shows one match, what to do first, or a sentence where there is nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Scroll down", show=False),
        Binding("k", "scroll_up", "Scroll up", show=False),
        Binding("g", "scroll_home", "First line", show=False),
        Binding("G", "scroll_end", "Last line", show=False),
    ]

    step = 0
    """Place of the current step in the fix."""
    _is_picked = False
    """Whether the user went to it."""
    _is_coming = False
    """Whether it is being brought into view."""

    class StepChanged(Message):
        """Another step is the current one."""

    async def show(self, match: Match, done: Collection[int]) -> None:
        """Show a match with the steps that are done."""
        self.border_title = "Incident"
        await self._replace(_parts(match, done))
        self._begin_at(next((row.place for row in self.rows if not row.done), 0))

    async def show_overview(self, case: Case, explained: str) -> None:
        """Show what to do first where no incident is sure, and the candidates, told apart."""
        self.border_title = "What to do" if case.look or case.matches else "No match"
        await self._replace(_overview(case, explained))
        self._begin_at(next((row.place for row in self.rows), 0))

    async def show_record(self, incident: Incident) -> None:
        """Show a record that is read for its own sake."""
        await self._replace(_record_parts(incident))

    @property
    def rows(self) -> list[StepRow]:
        """The rows of the steps, in their order."""
        return list(self.query(StepRow))

    @property
    def shows_step(self) -> bool:
        """Whether the current step is on the screen, with its command."""
        row = self._current
        return row is not None and (self._is_coming or row.is_shown_in(self))

    def bring_step(self) -> None:
        """Bring the current step into view."""
        if self._current:
            self._is_coming = True
            self._current.scroll_visible(animate=False, immediate=True)
            self.call_after_refresh(self.call_after_refresh, self._come)

    def _come(self) -> None:
        self._is_coming = False

    def go_to_step(self, by: int) -> None:
        """Make another step the current one and bring it into view. The first is picked first."""
        places = [row.place for row in self.rows]
        if self.step not in places:
            return
        wanted = places.index(self.step) + (by if self._is_picked else 0)
        self._pick(places[max(0, min(wanted, len(places) - 1))])

    def _begin_at(self, place: int) -> None:
        self.step, self._is_picked = place, False
        self._mark_current()

    def _pick(self, place: int) -> None:
        self.step, self._is_picked = place, True
        self._mark_current()
        self.bring_step()

    def tick(self, done: Collection[int]) -> None:
        """Show which steps are done, and go to the next one that is not."""
        for row in self.rows:
            row.done = row.place in done
            row.refresh_mark()
        for head in self.query("#fix-heading").results(Static):
            head.update(_fix_heading(len(done), len(self.rows)))
        left = [row.place for row in self.rows if row.place not in done and row.place > self.step]
        if self.step in done and left:
            self._pick(left[0])

    @property
    def _current(self) -> StepRow | None:
        return next((row for row in self.rows if row.place == self.step), None)

    def _mark_current(self) -> None:
        for row in self.rows:
            row.current = row.place == self.step
            row.set_class(self._is_picked and row.current, "picked")
            row.refresh_mark()
        self.post_message(self.StepChanged())

    async def _replace(self, parts: Iterable[Widget]) -> None:
        async with self.batch():
            await self.remove_children()
            await self.mount_all(parts)
        self.scroll_home(animate=False)


def _overview(case: Case, explained: str) -> Iterator[Widget]:
    if case.look:
        yield from task_rows(case.look, case.done)
    question = case.conversation.question
    if question and not case.look:
        yield Static(heading("Tell kb", "by its number, or with t in your words"))
        yield Static(inline(question.text), classes="where")
    if case.matches:
        yield Static(heading("Candidates", "]: read the next one"), classes="heading")
        told = told_apart([match.incident.title for match in case.matches], UNCUT)
        for match, title in zip(case.matches, told, strict=True):
            yield from _candidate(match, title)
    if explained:
        yield Markdown(explained, open_links=False)


def _candidate(match: Match, title: str) -> Iterator[Widget]:
    share = (f"{percent(match.confidence):>4} ", "bold")
    yield Static(Content.assemble(share, (match.incident.id, "$primary")))
    first = inline(match.incident.body.fix[0].text)
    yield Static(Content.assemble(f"{title}\n", ("then: ", "dim"), first), classes="quote")


def _parts(match: Match, done: Collection[int]) -> Iterator[Widget]:
    """What to do first stands above why, and everything else below."""
    incident = match.incident
    first, *others = (
        StepRow(place, step, place in done) for place, step in enumerate(incident.body.fix)
    )
    yield Static(
        Content.assemble(
            (f"{percent(match.confidence)} ", "bold"),
            bar(match.confidence, _BAR_CELLS),
            "  ",
            (incident.id, "$primary"),
        ),
        classes="summary",
    )
    yield Static(Content.styled(incident.title, "bold"))
    yield Static(_fix_heading(len(done), len(incident.body.fix)), id="fix-heading")
    yield first
    yield Static(heading("Why", "e: show in the log"))
    yield from _why(match.why)
    if others:
        yield Static(heading("Then"), classes="heading")
        yield from others
    yield from _caution(incident)
    yield from _about(incident)
    yield from _afterwards(incident)


def _record_parts(incident: Incident) -> Iterator[Widget]:
    about = f"  {incident.kind}, {incident.header.confidence}"
    yield Static(Content.assemble((incident.id, "$primary"), (about, "dim")))
    yield Static(Content.styled(incident.title, "bold"))
    yield from _caution(incident)
    yield from _about(incident)
    yield Static(heading("Fix"), classes="heading")
    yield from (StepRow(place, step, done=False) for place, step in enumerate(incident.body.fix))
    yield from _afterwards(incident)
    yield Static(heading("Evidence"), classes="heading")
    yield Static(Content(incident.body.evidence_text), classes="quote")


def _caution(incident: Incident) -> Iterator[Widget]:
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


def _about(incident: Incident) -> Iterator[Widget]:
    body = incident.body
    yield _markdown(("Symptom", body.symptom), ("Environment", body.setting), ("Cause", body.cause))


def _afterwards(incident: Incident) -> Iterator[Widget]:
    body, header = incident.body, incident.header
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
