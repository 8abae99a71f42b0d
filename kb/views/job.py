"""The terminal view of a job: who failed first, what the others did, and when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kb.job import Job, Saying
from kb.views.prose import heading, indented

_MOST_CULPRITS = 4
_MOST_GROUPS = 4
_LONGEST = 300
_LONGEST_GROUP = 120
_MOMENT_WIDTH, _CLOCK_WIDTH = 60, 12
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d{1,3})?")


def render_job(job: Job) -> Iterator[RenderableType]:
    """The parts of the view; none for a job of which there is nothing to tell."""
    if job.culprits:
        yield heading("First to fail" if job.failed else "Slow")
        yield from _culprits(job.culprits)
    if job.finding:
        yield indented(Text(_sentence(job.finding), "italic"))
    if job.others:
        yield heading("The others")
        yield from _others(job)
    if job.earlier:
        yield heading("Earlier attempts failed with")
        yield from _culprits(job.earlier)
    if len(job.timeline) > 1:
        yield heading("Timeline")
        yield _timeline(job.timeline)


def who(said: Saying) -> str:
    """Rank and host as far as they are known: `rank 3 on node-0`."""
    rank = "" if said.rank is None else f"rank {said.rank}"
    return " on ".join(part for part in (rank, said.host) if part) or "a rank that is not named"


def place(said: Saying) -> str:
    """File and line as far as they are known."""
    if said.line is None:
        return said.file or ""
    return f"{said.file}:{said.line}" if said.file else f"line {said.line}"


def folded(numbers: Sequence[int]) -> str:
    """Ranks in order, runs folded: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _culprits(said: Sequence[Saying]) -> Iterator[RenderableType]:
    for one in said[:_MOST_CULPRITS]:
        where = "  ".join(part for part in (place(one), one.time) if part)
        yield indented(Text.assemble((who(one), "bold red"), ("  " + where, "dim")))
        if one.text:
            text = one.text if len(one.text) <= _LONGEST else one.text[:_LONGEST] + " ..."
            yield Padding(Text(text, overflow="fold"), (0, 0, 0, 4))
    if len(said) > _MOST_CULPRITS:
        yield indented(Text(f"and {len(said) - _MOST_CULPRITS} more in the same way", "dim"))


def _others(job: Job) -> Iterator[RenderableType]:
    for group in job.others[:_MOST_GROUPS]:
        count = len(group.ranks)
        some = folded(group.ranks)
        ranks = f"rank {some}" if count == 1 else f"{count} ranks ({some})"
        yield indented(Text.assemble((ranks, "bold"), ": ", group.text[:_LONGEST_GROUP]))
    rest = sum(len(group.ranks) for group in job.others[_MOST_GROUPS:])
    if rest:
        yield indented(Text(f"and {rest} more", "dim"))


def _timeline(moments: Iterable[Saying]) -> RenderableType:
    rows = []
    for one in moments:
        name = "" if one.rank is None and one.host is None else who(one)
        clock = _CLOCK.search(one.time or "")
        text = (one.text or "").replace(one.time or "", "").strip()
        rows.append((clock[0] if clock else one.time or "", name, text))
    names = max(len(name) for _time, name, _text in rows)
    table = Table.grid(padding=(0, 1))
    for time, name, text in rows:
        cut = text[: _MOMENT_WIDTH - names]
        table.add_row(f"  {time[:_CLOCK_WIDTH]}", Text(name, "bold"), Text(cut, no_wrap=True))
    return table


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
