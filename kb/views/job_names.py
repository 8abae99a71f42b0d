"""Ranks, hosts and places in words. Needs no terminal library, for notes and other faces."""

from __future__ import annotations

from collections.abc import Sequence

from kb.job import Group, QuotedLine

_MAX_HOSTS_NAMED = 6
"""They fit on one line of a terminal."""


def rank_and_host(line: QuotedLine) -> str:
    """Rank and host as far as they are known: `rank 3 on node-0`."""
    rank = "" if line.rank is None else f"rank {line.rank}"
    return " on ".join(part for part in (rank, line.host) if part) or "an unnamed rank"


def file_and_line(line: QuotedLine) -> str:
    """File and line as far as they are known."""
    if line.line is None:
        return line.file or ""
    return f"{line.file}:{line.line}" if line.file else f"line {line.line}"


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
