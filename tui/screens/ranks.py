"""The ranks that failed first, those that are missing, what the others printed, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import DataTable, Static

from kb.job import Group, Job, QuotedLine
from kb.views.job_names import clock, group_name, rank_and_host, without_time
from tui.actions import Place, bindings
from tui.service_app import ServiceApp
from tui.widgets.hints import Hints

Line = tuple[str | None, int]
"""A file of the log and a line in it."""


class _Row(msgspec.Struct, frozen=True):
    sign: str
    name: str
    text: str
    line: Line | None = None


class RanksScreen(Screen[Line | None]):
    """The job in rows; ends with the line of the row that is picked."""

    app: ServiceApp
    BINDINGS = bindings(Place.RANKS)
    PLACES = (Place.RANKS,)

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job
        self._rows = [*_rows(job)]
        self._moments = [_moment(line) for line in job.timeline]

    def compose(self) -> ComposeResult:
        yield Static(_headline(self._job), classes="headline")
        with Vertical(classes="pane", id="ranks-pane") as ranks:
            ranks.border_title = "Ranks"
            yield DataTable[Text](
                id="ranks",
                cursor_type="row",
            )
        with Vertical(classes="pane", id="timeline-pane") as timeline:
            timeline.border_title = "Timeline"
            yield DataTable[Text](id="timeline", cursor_type="row")
        hints = Hints(id="hints")
        yield hints
        hints.show(Place.RANKS)

    def on_mount(self) -> None:
        """Fill the tables."""
        _fill(self.query_one("#ranks", DataTable), ("", "who", "said"), self._rows)
        _fill(self.query_one("#timeline", DataTable), ("time", "who", "said"), self._moments)
        self.query_one("#timeline-pane").display = len(self._moments) > 1

    def action_show_line(self) -> None:
        """Go to the line of the selected row."""
        self._pick()

    def on_data_table_row_selected(self) -> None:
        """Go to the line of the selected row."""
        self._pick()

    def _pick(self) -> None:
        table = self.focused
        if isinstance(table, DataTable):
            rows = self._rows if table.id == "ranks" else self._moments
            line = rows[table.cursor_row].line
            if line:
                self.dismiss(line)
            else:
                self.app.tell("There is no log line for this row.")


def _fill(table: DataTable[Text], columns: Sequence[str], rows: Sequence[_Row]) -> None:
    table.add_columns(*columns)
    for row in rows:
        table.add_row(*map(Text, (row.sign, row.name, row.text)))


def _headline(job: Job) -> Content:
    size = f"{job.world_size} ranks" if job.world_size else "several ranks"
    kind = job.kind.value if job.kind else "no failure found"
    finding = f"{job.finding[0].upper()}{job.finding[1:]}." if job.finding else ""
    return Content.assemble((f"{size}, {kind}", "bold"), (f"  {finding}", "dim"))


def _rows(job: Job) -> Iterator[_Row]:
    first = "first" if job.failed else "slow"
    for line in job.culprits:
        yield _row(first, line)
    missing = _missing(job)
    if missing:
        yield _Row("silent", group_name(Group(tuple(missing), "")), "printed no line in the logs")
    for group in job.others:
        place = None if group.line is None else (group.file, group.line)
        yield _Row("then", group_name(group), group.text, place)
    for line in job.earlier:
        yield _row("earlier attempt", line)


def _missing(job: Job) -> list[int]:
    seen = {line.rank for line in job.culprits}
    seen |= {rank for group in job.others for rank in group.ranks}
    return [rank for rank in range(job.world_size or 0) if rank not in seen] if job.failed else []


def _row(sign: str, quoted: QuotedLine) -> _Row:
    line = None if quoted.line is None else (quoted.file, quoted.line)
    return _Row(sign, rank_and_host(quoted), without_time(quoted) or quoted.file or "", line)


def _moment(quoted: QuotedLine) -> _Row:
    row = _row(clock(quoted), quoted)
    is_of_nobody = quoted.rank is None and quoted.host is None
    return msgspec.structs.replace(row, name="") if is_of_nobody else row
