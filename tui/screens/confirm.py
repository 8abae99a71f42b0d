"""One question before something is lost."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from tui.screens.sheet import Sheet


class ConfirmScreen(Sheet[bool]):
    """Ends with True when the user agrees."""

    BINDINGS: ClassVar = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape", "answer(False)", "no"),
        Binding("left,right", "app.focus_next", "other", show=False),
    ]
    AUTO_FOCUS = "#no"

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._question)
            with Horizontal():
                yield Button("No, stay (n)", id="no")
                yield Button("Yes (y)", id="yes")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """End with what was pressed."""
        self.dismiss(event.button.id == "yes")

    def action_answer(self, agreed: bool) -> None:
        """End with what was said."""
        self.dismiss(agreed)


class LeaveScreen(ConfirmScreen):
    """The question whether to quit. To quit is an answer to it."""
