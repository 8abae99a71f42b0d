"""Many logs at once: a table that fills while they are read, with the worst on top."""

from __future__ import annotations

import glob
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

from kb.classify import (
    Outcome,
    Result,
    Summary,
    Unit,
    classify_here,
    find_units,
    suggest_jobs,
)
from kb.errors import KbError
from kb.settings import Settings
from kb.verdict import Verdict, percent
from tui.actions import Place, bindings
from tui.widgets.hints import Hints

Item = TypeVar("Item")

_BATCH_SECONDS = 0.25
"""The table is redrawn this often while results arrive."""
_COLUMNS = ("verdict", "sure", "log", "incident", "line")
_UNREADABLE = "unreadable"
_WORST_FIRST = (Verdict.MATCH, Verdict.POSSIBLE, Verdict.UNKNOWN, _UNREADABLE, Verdict.HEALTHY)
"""What one can do something about comes first."""
_INCIDENTS_SHARE = 0.15
"""Rows of the screen in which incidents are counted, above the table."""
_MIN_PATH_COLUMNS, _PATH_SHARE = 16, 0.25
"""Columns of a path: a share of the screen, so that the name of the incident is not cut."""


class BatchScreen(Screen[Path | None]):
    """Classifies what is below a directory; ends with the log or job that is opened."""

    BINDINGS = bindings(Place.BATCH)
    PLACES = (Place.BATCH,)

    class Found(Message):
        """So many units are to be classified."""

        def __init__(self, unit: Unit, total: int) -> None:
            super().__init__()
            self.unit, self.total = unit, total

    class Done(Message):
        """Some logs are classified."""

        def __init__(self, unit: Unit, outcomes: Sequence[Outcome]) -> None:
            super().__init__()
            self.unit, self.outcomes = unit, outcomes

    class Failed(Message):
        """Nothing can be classified."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(self, directory: Path, settings: Settings) -> None:
        super().__init__()
        self._directory, self._settings = directory, settings
        self._outcomes: list[Outcome] = []
        self._total = 0
        self._unit: Unit | None = None
        """None until it is seen whether these are jobs."""
        self._sorted_by: str | None = None
        """A column; None for the worst first."""

    def compose(self) -> ComposeResult:
        yield Static(Content(f"Looking for logs below {self._directory}"), classes="headline")
        yield ProgressBar(show_eta=True)
        yield Static(id="incidents", classes="headline")
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
        self._classify(self._unit)

    @work(thread=True, exclusive=True)
    def _classify(self, unit: Unit | None) -> None:
        """Classify each unit; by job, if nobody has said otherwise and several ranks write into one
        directory."""
        worker = get_current_worker()
        _prepare_for_processes()
        try:
            directory = str(self._directory)
            units = find_units([directory], Unit.FILE)
            jobs = suggest_jobs([directory], units)
            unit = unit or (Unit.JOB if jobs else Unit.FILE)
            if unit is Unit.JOB:
                units = find_units([jobs or f"{glob.escape(directory)}/*"], Unit.JOB)
            self.post_message(self.Found(unit, len(units)))
            outcomes = classify_here(units, self._settings, os.cpu_count() or 1)
            for some in _batches(outcomes):
                if worker.is_cancelled:
                    return
                self.post_message(self.Done(unit, some))
        except KbError as error:
            self.post_message(self.Failed(str(error)))

    def on_batch_screen_found(self, event: Found) -> None:
        """Begin with an empty table."""
        self._unit, self._total = event.unit, event.total
        self._outcomes = []
        self.query_one(DataTable).clear()
        self._tell()

    def on_batch_screen_done(self, event: Done) -> None:
        """Add the rows."""
        if event.unit is not self._unit:
            return
        table = self.query_one(DataTable)
        columns = max(_MIN_PATH_COLUMNS, int(_PATH_SHARE * self.size.width))
        for outcome in event.outcomes:
            cells = _cells(outcome, self._directory, columns)
            table.add_row(*map(Text, cells), key=outcome.path)
        self._outcomes.extend(event.outcomes)
        self._sort()
        self._tell()

    def _tell(self) -> None:
        done = len(self._outcomes)
        verdicts = Counter(map(_verdict, self._outcomes))
        counts = ", ".join(f"{verdicts[name]} {name}" for name in _WORST_FIRST if verdicts[name])
        units = "jobs" if self._unit is Unit.JOB else "logs"
        said = f"{done} of {self._total} {units}: {counts}"
        headline = said if self._total else f"No logs found below {self._directory}"
        self.query_one(".headline", Static).update(Content(headline))
        self.query_one("#incidents", Static).update(Content("\n".join(self._incidents())))
        self.query_one(".pane").border_title = units.capitalize()
        self.query_one(ProgressBar).update(total=self._total, progress=done)

    def _incidents(self) -> Iterator[str]:
        """How many units each incident has, the surest first."""
        results = (outcome for outcome in self._outcomes if isinstance(outcome, Result))
        found = Summary(tuple(results), (), ()).incidents
        rows = int(_INCIDENTS_SHARE * self.size.height)
        for name, sure, perhaps in found[:rows]:
            yield f"{sure:>4} match {perhaps:>4} possible  {name}"
        if len(found) > rows:
            yield f"  and {len(found) - rows} more incidents"

    def on_batch_screen_failed(self, event: Failed) -> None:
        """Say why there is nothing to show."""
        self.query_one(".headline", Static).update(Content(event.reason))

    def action_sort(self) -> None:
        """Sort by the next column, and after the last one by what is worst."""
        orders = (None, *_COLUMNS)
        self._sorted_by = orders[(orders.index(self._sorted_by) + 1) % len(orders)]
        self.query_one(".pane").border_subtitle = (
            f"sorted by {self._sorted_by}" if self._sorted_by else "worst first"
        )
        self._sort()

    def _sort(self) -> None:
        table = self.query_one(DataTable)
        if self._sorted_by is None:
            table.sort("verdict", "sure", key=_badness)
        else:
            by = self._sorted_by
            table.sort(by, key=lambda cell: cell.plain, reverse=by == "sure")

    def action_change_unit(self) -> None:
        """Classify again, by job or by file."""
        if self._unit is not None:
            self._classify(Unit.FILE if self._unit is Unit.JOB else Unit.JOB)

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


def _verdict(outcome: Outcome) -> str:
    return outcome.verdict.value if isinstance(outcome, Result) else _UNREADABLE


def _badness(cells: tuple[Text, Text]) -> tuple[int, float]:
    verdict, sure = (cell.plain for cell in cells)
    return _WORST_FIRST.index(verdict), -float(sure.strip(" %") or 0)


def _cells(outcome: Outcome, directory: Path, columns: int) -> tuple[str, ...]:
    name = _shortened(os.path.relpath(outcome.path, directory), columns)
    if not isinstance(outcome, Result):
        return (_UNREADABLE, "", name, "", outcome.reason)
    sure = "" if outcome.confidence is None else f"{percent(outcome.confidence):>4}"
    text = outcome.main_line.text if outcome.main_line else ""
    return (outcome.verdict.value, sure, name, outcome.incident or "", text)


def _shortened(path: str, columns: int) -> str:
    """A path with its middle left out: its beginning names the job, its end the file."""
    if len(path) <= columns:
        return path
    end = (columns - 1) // 2
    return f"{path[: columns - 1 - end]}…{path[-end:]}"


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
