"""Ranks, hosts and places in words. Needs no terminal library, for notes and other faces."""

from __future__ import annotations

from collections.abc import Sequence

from kb.job import QuotedLine


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
