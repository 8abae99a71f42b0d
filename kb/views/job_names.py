"""Ranks, hosts and places in words. Needs no terminal library, for notes and other faces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.job import Group, QuotedLine

_MAX_HOSTS_NAMED = 6
"""They fit on one line of a terminal."""
_CLOCK = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d{1,3})?")
_MAX_TIME_CHARACTERS = 12
"""Of a time, `03:04:05.678`, and of one that is no clock."""


def rank_and_host(line: QuotedLine) -> str:
    """Rank and host as far as they are known: `rank 3 on node-0`."""
    rank = "" if line.rank is None else f"rank {line.rank}"
    return " on ".join(part for part in (rank, line.host) if part) or "an unnamed rank"


def file_and_line(line: QuotedLine) -> str:
    """File and line as far as they are known."""
    if line.line is None:
        return line.file or ""
    return f"{line.file}:{line.line}" if line.file else f"line {line.line}"


def clock(line: QuotedLine) -> str:
    """When it was printed, in one form for all lines of a job, mostly without the day."""
    found = _CLOCK.search(line.time or "")
    return (found[0].replace(",", ".") if found else line.time or "")[:_MAX_TIME_CHARACTERS]


def without_time(line: QuotedLine) -> str:
    """What it says."""
    text = line.text or ""
    return (text.replace(line.time, "", 1) if line.time else text).strip()


def folded_ranks(ranks: Sequence[int]) -> str:
    """Ranks in order, runs folded: `0-3, 7`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def group_name(group: Group) -> str:
    """The ranks or hosts of a group: `3 ranks (0-1, 3)`."""
    if not group.hosts:
        some = folded_ranks(group.ranks)
        return f"rank {some}" if group.size == 1 else f"{group.size} ranks ({some})"
    rest = group.size - _MAX_HOSTS_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(group.hosts[:_MAX_HOSTS_NAMED]) + more
