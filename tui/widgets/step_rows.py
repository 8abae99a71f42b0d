"""Rows of what is to be done: steps of a fix, and the check to run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from kb.soft_breaks import join_soft_breaks
from tui.prose import heading, inline
from tui.tasks import heading_of

if TYPE_CHECKING:
    from kb.check import Cost
    from kb.conversation.next_step import Task
    from kb.diagnosis import NextCheck
    from kb.incident import Step

_MINUTE_SECONDS = 60


class StepRow(Horizontal):
    """One step: its tick, its sentence, its command and why."""

    def __init__(self, place: int, step: Step, done: bool, *, of: str = "") -> None:
        super().__init__()
        self.place, self.content, self.done = place, step, done
        self.current = False
        self._of = of

    def compose(self) -> ComposeResult:
        yield Static(self._mark(), classes="mark")
        with Vertical():
            yield Static(inline(self.content.text))
            if self.content.command:
                yield Static(Content(self.content.command), classes="command")
            if self.content.why:
                yield Static(inline(self.content.why), classes="why")
            if self._of:
                yield Static(Content.assemble(("of ", "dim"), (self._of, "$primary")))

    def is_shown_in(self, pane: Widget) -> bool:
        """Whether the command, or else the sentence, is in the visible part of a pane."""
        shown = [*self.query(".command"), *self.query("Vertical > Static")]
        return bool(shown) and pane.content_region.overlaps(shown[0].region)

    def refresh_mark(self) -> None:
        """Draw the tick and the pointer again."""
        self.set_class(self.done, "done")
        self.set_class(self.current, "current")
        for mark in self.query(".mark").results(Static):
            mark.update(self._mark())

    def _mark(self) -> Content:
        pointer = "▸" if self.current else " "
        return Content(f"{pointer} [{'x' if self.done else ' '}] {self.place + 1}.")


class CheckRow(StepRow):
    """A check to run: its title, its command, where it runs, and what it is for."""

    def __init__(self, task: NextCheck) -> None:
        from kb.incident import Step

        step = Step(task.check.title, task.command.run, task.command.language)
        super().__init__(0, step, done=False)
        self._check = task

    def compose(self) -> ComposeResult:
        header = self._check.check.header
        yield Static(self._mark(), classes="mark")
        with Vertical():
            yield Static(Content.styled(self._check.check.title, "bold"))
            yield Static(Content(self._check.command.run), classes="command")
            yield from _named("Separates", "; ".join(header.tells_apart))
            yield from _named("Why", join_soft_breaks(self._check.why))
            yield from _named("Where", header.where)
            yield from _named("Risk", f"{header.cost.risk.in_words}, {_duration(header.cost)}")
            yield from _named("Note", self._check.command.note or "")
            yield from _named("Caution", header.caution or "")

    def _mark(self) -> Content:
        return Content("▸" if self.current else " ")


def _named(name: str, text: str) -> Iterator[Widget]:
    if text:
        yield Static(Content.assemble((f"{name}: ", "dim"), inline(text)))


def _duration(cost: Cost) -> str:
    if cost.seconds < _MINUTE_SECONDS:
        return f"about {cost.seconds} s"
    return f"about {round(cost.seconds / _MINUTE_SECONDS)} min"


def task_rows(task: Task, done: Collection[tuple[str, int]]) -> Iterator[Widget]:
    """What to do first, as one row below its heading."""
    from kb.diagnosis import NextCheck

    yield Static(heading(heading_of(task)))
    if isinstance(task, NextCheck):
        yield CheckRow(task)
    else:
        place = task.number - 1
        yield StepRow(place, task.step, (task.incident.id, place) in done, of=task.incident.id)
