"""The terminal view of a job: who failed first, what the others did, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kb.job import Job, QuotedLine
from kb.views.job_names import clock, file_and_line, group_name, rank_and_host, without_time
from kb.views.prose import heading, indented

_MAX_CULPRITS_SHOWN, _MAX_GROUPS_SHOWN = 4, 4
"""With the timeline, all parts of a job fit on one screen."""
_MAX_LINE_CHARACTERS, _MAX_GROUP_CHARACTERS = 300, 120
"""Of a culprit's line, which may wrap, and of the line of a group, which fills about one row."""
_MOMENT_WIDTH = 60
"""Columns of a moment's name and text."""


def render_job(job: Job) -> Iterator[RenderableType]:
    """The parts of the view; none for a job without anything to tell."""
    if job.culprits:
        yield heading("First to fail" if job.failed else "Slow")
        yield from _culprits(job.culprits)
    if job.finding:
        yield indented(Text(_sentence(job.finding), "italic"))
    if job.others:
        yield heading("Other hosts" if job.others[0].hosts else "Other ranks")
        yield from _others(job)
    if job.earlier:
        yield heading("Earlier attempts failed with")
        yield from _culprits(job.earlier)
    if len(job.timeline) > 1:
        yield heading("Timeline")
        yield _timeline(job.timeline)


def _culprits(culprits: Sequence[QuotedLine]) -> Iterator[RenderableType]:
    for line in culprits[:_MAX_CULPRITS_SHOWN]:
        where = "  ".join(part for part in (file_and_line(line), line.time) if part)
        yield indented(Text.assemble((rank_and_host(line), "bold red"), ("  " + where, "dim")))
        if line.text:
            cut = line.text[:_MAX_LINE_CHARACTERS]
            text = line.text if cut == line.text else f"{cut} ..."
            yield Padding(Text(text, overflow="fold"), (0, 0, 0, 4))
    rest = len(culprits) - _MAX_CULPRITS_SHOWN
    if rest > 0:
        yield indented(Text(f"and {rest} more failed the same way", "dim"))


def _others(job: Job) -> Iterator[RenderableType]:
    for group in job.others[:_MAX_GROUPS_SHOWN]:
        who = group_name(group)
        yield indented(Text.assemble((who, "bold"), ": ", group.text[:_MAX_GROUP_CHARACTERS]))
    rest = sum(group.size for group in job.others[_MAX_GROUPS_SHOWN:])
    if rest:
        yield indented(Text(f"and {rest} more", "dim"))


def _timeline(moments: Iterable[QuotedLine]) -> RenderableType:
    rows = []
    for moment in moments:
        name = "" if moment.rank is None and moment.host is None else rank_and_host(moment)
        rows.append((clock(moment), name, without_time(moment)))
    names = max(len(name) for _time, name, _text in rows)
    table = Table.grid(padding=(0, 1))
    for time, name, text in rows:
        cut = text[: _MOMENT_WIDTH - names]
        table.add_row(f"  {time}", Text(name, "bold"), Text(cut, no_wrap=True))
    return table


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
