"""Who failed first, who is missing, what the others said, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import DataTable, Static

from kb.job import Job, Saying
from kb.views.job import folded, who
from tui.actions import Place, bindings
from tui.widgets.hints import Hints

Line = tuple[str | None, int]
"""A file of the log and a line in it."""


class _Row(msgspec.Struct, frozen=True):
    sign: str
    ranks: str
    host: str
    text: str
    line: Line | None = None


class RanksScreen(Screen[Line | None]):
    """The job in rows; ends with the line of the row that is picked."""

    BINDINGS = bindings(Place.RANKS)
    PLACES = (Place.RANKS,)

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job
        self._rows = [*_rows(job)]
        self._moments = [_moment(one) for one in job.timeline]

    def compose(self) -> ComposeResult:
        yield Static(_headline(self._job), classes="headline")
        with Vertical(classes="pane") as ranks:
            ranks.border_title = "Ranks"
            yield DataTable[Content](id="ranks", cursor_type="row", zebra_stripes=False)
        with Vertical(classes="pane", id="timeline-pane") as timeline:
            timeline.border_title = "Timeline"
            yield DataTable[Content](id="timeline", cursor_type="row")
        hints = Hints(id="hints")
        yield hints
        hints.show(Place.RANKS)

    def on_mount(self) -> None:
        """Fill the tables."""
        _fill(self.query_one("#ranks", DataTable), ("", "ranks", "host", "said"), self._rows)
        _fill(
            self.query_one("#timeline", DataTable), ("time", "rank", "host", "said"), self._moments
        )
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
                self.app.notify("The log has no line of it.")


def _fill(table: DataTable[Content], columns: Sequence[str], rows: Sequence[_Row]) -> None:
    table.add_columns(*columns)
    for row in rows:
        table.add_row(*(Content(cell) for cell in (row.sign, row.ranks, row.host, row.text)))


def _headline(job: Job) -> Content:
    size = f"{job.world_size} ranks" if job.world_size else "several ranks"
    kind = job.kind.value if job.kind else "no failure found"
    finding = f"{job.finding[0].upper()}{job.finding[1:]}." if job.finding else ""
    return Content.assemble((f"{size}, {kind}", "bold"), (f"  {finding}", "dim"))


def _rows(job: Job) -> Iterator[_Row]:
    first = "first" if job.failed else "slow"
    for said in job.culprits:
        yield _row(first, said)
    missing = _missing(job)
    if missing:
        yield _Row("silent", folded(missing), "", "no line of these ranks in the logs")
    for group in job.others:
        count = f" ({len(group.ranks)})" if len(group.ranks) > 1 else ""
        yield _Row("then", f"{folded(group.ranks)}{count}", "", group.text)
    for said in job.earlier:
        yield _row("attempt before", said)


def _missing(job: Job) -> list[int]:
    heard = {said.rank for said in job.culprits}
    heard |= {rank for group in job.others for rank in group.ranks}
    return [rank for rank in range(job.world_size or 0) if rank not in heard] if job.failed else []


def _row(sign: str, said: Saying) -> _Row:
    line = None if said.line is None else (said.file, said.line)
    rank = "?" if said.rank is None else str(said.rank)
    return _Row(sign, rank, said.host or "", said.text or said.file or "", line)


def _moment(said: Saying) -> _Row:
    text = (said.text or "").replace(said.time or "\0", "").strip()
    name = "" if said.rank is None and said.host is None else who(said)
    return msgspec.structs.replace(_row(said.time or "", said), ranks=name, host="", text=text)
