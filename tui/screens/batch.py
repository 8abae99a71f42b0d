"""Many logs at once: a table that fills while they are read."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TypeVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, ProgressBar, Static
from textual.worker import get_current_worker

from kb.classify import Outcome, Result, Unit, classify_here, find_units
from kb.errors import KbError
from kb.settings import Settings
from kb.verdict import percent
from tui.actions import Place, bindings
from tui.widgets.hints import Hints

Item = TypeVar("Item")

_BATCH_SECONDS = 0.25
"""The table is redrawn this often while results arrive."""
_COLUMNS = ("log", "verdict", "incident", "confidence", "line")


class BatchScreen(Screen[Path | None]):
    """Classifies all files below a directory; ends with the one that is opened."""

    BINDINGS = bindings(Place.BATCH)
    PLACES = (Place.BATCH,)

    class Done(Message):
        """Some logs are classified."""

        def __init__(self, outcomes: Sequence[Outcome], total: int) -> None:
            super().__init__()
            self.outcomes, self.total = outcomes, total

    class Failed(Message):
        """Nothing can be classified."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(self, directory: Path, settings: Settings) -> None:
        super().__init__()
        self._directory, self._settings = directory, settings
        self._verdicts: Counter[str] = Counter()
        self._sorted_by = 0

    def compose(self) -> ComposeResult:
        yield Static(Content(f"Looking for logs below {self._directory}"), classes="headline")
        yield ProgressBar(show_eta=True)
        with Vertical(classes="pane") as pane:
            pane.border_title = "Logs"
            yield DataTable[Text](cursor_type="row")
        hints = Hints(id="hints")
        yield hints
        hints.show(Place.BATCH)

    def on_mount(self) -> None:
        """Begin."""
        table = self.query_one(DataTable)
        for name in _COLUMNS:
            table.add_column(name, key=name)
        self._classify()

    @work(thread=True, exclusive=True)
    def _classify(self) -> None:
        worker = get_current_worker()
        _prepare_for_processes()
        try:
            units = find_units([str(self._directory)], Unit.FILE)
            outcomes = classify_here(units, self._settings, os.cpu_count() or 1)
            for some in _batches(outcomes):
                if worker.is_cancelled:
                    return
                self.post_message(self.Done(some, len(units)))
        except KbError as error:
            self.post_message(self.Failed(str(error)))

    def on_batch_screen_done(self, event: Done) -> None:
        """Add the rows."""
        table = self.query_one(DataTable)
        for outcome in event.outcomes:
            table.add_row(*map(Text, _cells(outcome, self._directory)), key=outcome.path)
            self._verdicts[outcome.verdict if isinstance(outcome, Result) else "unreadable"] += 1
        self.query_one(ProgressBar).update(total=event.total, progress=table.row_count)
        counts = ", ".join(f"{count} {name}" for name, count in self._verdicts.most_common())
        said = f"{table.row_count} of {event.total} logs: {counts}"
        headline = Content(said if event.total else f"No logs found below {self._directory}")
        self.query_one(".headline", Static).update(headline)

    def on_batch_screen_failed(self, event: Failed) -> None:
        """Say why there is nothing to show."""
        self.query_one(".headline", Static).update(Content(event.reason))

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._sorted_by = (self._sorted_by + 1) % len(_COLUMNS)
        column = _COLUMNS[self._sorted_by]
        table = self.query_one(DataTable)
        table.sort(column, key=lambda cell: cell.plain, reverse=column == "confidence")
        self.query_one(".pane").border_subtitle = f"sorted by {column}"

    def on_data_table_row_selected(self) -> None:
        """Open the log."""
        self.action_open_result()

    def action_open_result(self) -> None:
        """Open the log of the selected row."""
        table = self.query_one(DataTable)
        if table.row_count:
            key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key
            self.dismiss(Path(key.value or ""))


def _prepare_for_processes() -> None:
    """Start the helper process of multiprocessing with the real stderr, because the app's is not a
    file."""
    with redirect_stderr(sys.__stderr__):
        resource_tracker.ensure_running()


def _cells(outcome: Outcome, directory: Path) -> tuple[str, ...]:
    name = os.path.relpath(outcome.path, directory)
    if not isinstance(outcome, Result):
        return (name, "unreadable", "", "", outcome.reason)
    sure = "" if outcome.confidence is None else f"{percent(outcome.confidence):>4}"
    text = outcome.main_line.text if outcome.main_line else ""
    return (name, outcome.verdict.value, outcome.incident or "", sure, text)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Collect rows for a quarter of a second, because drawing each row separately is too slow."""
    batch: list[Item] = []
    since = time.monotonic()
    for item in items:
        batch.append(item)
        if time.monotonic() - since > _BATCH_SECONDS:
            yield batch
            batch, since = [], time.monotonic()
    yield batch
