"""The progress bar: how many are done, how fast, and how long it will take."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.0f}/s" if task.speed else "")


class Bar(Progress):
    """A bar on stderr; messages printed meanwhile appear above it."""

    def __init__(self, title: str) -> None:
        super().__init__(
            TextColumn(title),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._only = self.add_task(title, total=None)

    def show(self, done: int, total: int) -> None:
        """Draw how far it is."""
        self.update(self._only, completed=done, total=total)
