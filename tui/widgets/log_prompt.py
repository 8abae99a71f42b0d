"""The line below a log in which somebody types what to look for, or which lines to see."""

from __future__ import annotations

from textual.binding import Binding
from textual.message import Message
from textual.widgets import Input


class LogPrompt(Input):
    """Is there only while something is typed into it."""

    BINDINGS = [Binding("escape", "leave", show=False)]  # noqa: RUF012  as in the library

    class Left(Message):
        """It was given up."""

    def open(self) -> None:
        """Ask for something."""
        self.display = True
        self.focus()

    def action_leave(self) -> None:
        """Give way to the log."""
        self.display = False
        self.post_message(self.Left())
