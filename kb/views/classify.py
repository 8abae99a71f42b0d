"""The table and the CSV of a run over many units."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from index.progress import Notify, silent_notify
from kb.classify import Cluster, Result, ResultRow, Summary
from kb.containment import surviving
from kb.log.clean import strip_controls
from kb.verdict import Verdict
from kb.views.prose import heading

_FILE_WIDTH = 100
"""Columns of a report that is written to a file."""
_MAX_TEMPLATE_CHARACTERS = 300
"""Of the template of a cluster, which may wrap; a template can be as long as a line."""
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r]")
"""How a cell begins that a spreadsheet takes for a formula: some skip white space, and some with an
East Asian locale take full-width signs."""


def render(summary: Summary, notify: Notify = silent_notify) -> RenderableType:
    """Return the counts for a terminal. A row that cannot be shown is told and left out."""
    return Group(*_parts(summary, notify))


def to_text(summary: Summary, notify: Notify = silent_notify) -> bytes:
    """Return the counts as plain text, likewise."""
    console = Console(file=io.StringIO(), width=_FILE_WIDTH, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(render(summary, notify))
    lines = strip_controls(capture.get()).split("\n")
    return ("\n".join(line.rstrip() for line in lines)).encode()


def to_csv(summary: Summary, notify: Notify = silent_notify) -> bytes:
    """Return a line for each unit, with the columns of the JSONL, likewise."""
    rows = surviving(
        summary.results,
        lambda result: _csv_line(_cells(result)),
        lambda result: f"{result.path}: no row",
        notify,
    )
    return b"".join([_csv_line(ResultRow.__struct_fields__), *rows])


def _csv_line(cells: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return strip_controls(text.getvalue()).encode()


def _cells(result: Result) -> tuple[object, ...]:
    return tuple(map(_inert, msgspec.structs.astuple(result.row())))


def _inert(cell: object) -> object:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _parts(summary: Summary, notify: Notify) -> Iterator[RenderableType]:
    yield _verdicts(summary)
    if summary.incidents:
        yield heading("Incidents")
        yield _incidents(summary)
    if summary.clusters:
        yield heading("Unknown, grouped by message")
        yield from surviving(summary.clusters, _cluster, lambda one: f"{one.id}: no row", notify)


def _verdicts(summary: Summary) -> Text:
    counts = ", ".join(f"{summary.verdicts[verdict]} {verdict}" for verdict in Verdict)
    unreadable = f", {len(summary.unreadable)} unreadable" if summary.unreadable else ""
    return Text(f"{len(summary.results)} classified: {counts}{unreadable}", "bold")


def _incidents(summary: Summary) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for _column in ("match", "possible"):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("match", "dim"), Text("possible", "dim"), "")
    for name, sure, perhaps in summary.incidents:
        table.add_row(str(sure), str(perhaps), Text(name, "cyan"))
    if summary.follow_on:
        table.add_row("0", str(summary.follow_on), "(only follow-on errors)")
    return table


def _cluster(cluster: Cluster) -> RenderableType:
    """How many, what they say, and where to look."""
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True, min_width=5)
    table.add_column(overflow="fold")
    table.add_row(str(len(cluster.members)), Text(cluster.template[:_MAX_TEMPLATE_CHARACTERS]))
    places = ", ".join(result.path for result in cluster.examples)
    hosts = f"; on {', '.join(cluster.hosts)}" if cluster.hosts else ""
    table.add_row("", Text(f"{cluster.id}: {places}{hosts}", "dim"))
    return table
