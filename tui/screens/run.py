"""A command word by word, before it is run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from kb.errors import RunError
from kb.run import Plan
from kb.service.running import terms
from tui.screens.sheet import Sheet


class RunScreen(Sheet[Plan | None]):
    """Ends with the plan that the user agreed to, its placeholders filled in."""

    BINDINGS: ClassVar = [
        Binding("y", "agree", "yes"),
        Binding("n,escape", "decline", "no"),
        Binding("left,right", "app.focus_next", "other", show=False),
    ]
    AUTO_FOCUS = "Input, #no"

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog", can_focus=False) as dialog:
            dialog.border_title = "Run this here?"
            yield Static(Content("\n").join(_word_by_word(self._plan)), id="words")
            for word in self._plan.placeholders:
                yield Input(placeholder=f"{word} = ", id=f"value-{word}")
            yield Static(Content.styled(terms(), "dim"))
            yield Static(id="wrong")
            with Horizontal():
                yield Button("No (n)", id="no")
                yield Button("Yes, run it (y)", id="yes")

    @on(Input.Changed)
    def _typed(self) -> None:
        plan = self._filled()
        if plan:
            self.query_one("#words", Static).update(Content("\n").join(_word_by_word(plan)))

    @on(Input.Submitted)
    def _next(self) -> None:
        self.focus_next()

    def _filled(self) -> Plan | None:
        values = {box.id.removeprefix("value-"): box.value for box in self.query(Input) if box.id}
        wrong = self.query_one("#wrong", Static)
        try:
            plan = self._plan.filled(values)
        except RunError as error:
            wrong.update(Content(str(error)))
            return None
        wrong.update("")
        return plan

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """End with what was pressed."""
        if event.button.id == "yes":
            self.action_agree()
        else:
            self.action_decline()

    def action_agree(self) -> None:
        """Agree to this very run."""
        plan = self._filled()
        if plan:
            self.dismiss(plan)

    def action_decline(self) -> None:
        """Run nothing."""
        self.dismiss(None)


def _word_by_word(plan: Plan) -> Iterator[Content]:
    yield Content.styled(str(plan), "bold")
    yield Content("")
    for program in plan.programs:
        name, *arguments = program.words
        yield Content.assemble(("program   ", "dim"), name)
        for argument in arguments:
            yield Content.assemble(("argument  ", "dim"), argument)
