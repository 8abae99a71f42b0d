"""What `kb diff` prints: plain lines that can be pasted into a review."""

from __future__ import annotations

from collections.abc import Iterator

from kb.contribute.diff import Comparison, Move, Rank
from kb.log.clean import strip_controls

_MAX_QUOTE_CHARACTERS = 90
"""Of a line of a log: one row."""


def diff_lines(comparison: Comparison) -> Iterator[str]:
    """The evidence blocks that rank differently, worse ones first, and a summary."""
    for move in comparison.moves:
        yield from map(strip_controls, _move(move))
        yield ""
    yield from _summary(comparison)


def _move(move: Move) -> Iterator[str]:
    yield f"{_verdict(move)}: {move.incident}"
    yield f"  | {move.line[:_MAX_QUOTE_CHARACTERS]}"
    yield f"  before  {_rank(move.before)}"
    yield f"  after   {_rank(move.after)}"


def _verdict(move: Move) -> str:
    if move.before is None or move.after is None:
        return "new" if move.before is None else "gone"
    return "worse" if move.is_worse else "better"


def _rank(rank: Rank | None) -> str:
    if rank is None:
        return "no such evidence"
    if rank.confidence is None:
        return "recognised" if rank.position else "not recognised"
    if rank.position == 1:
        bar = "" if rank.is_answer else ", below the match threshold"
        return f"position 1, {rank.confidence:.0%}{bar}"
    behind = f"; `{rank.first}` is first" if rank.first else ""
    place = f"position {rank.position}, {rank.confidence:.0%}" if rank.position else "not shown"
    return place + behind


def _summary(comparison: Comparison) -> Iterator[str]:
    kinds = {
        "added": comparison.added,
        "changed": comparison.changed,
        "removed": comparison.removed,
    }
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in kinds.items())
    worse = sum(move.is_worse for move in comparison.moves)
    moved = sum(None not in (move.before, move.after) for move in comparison.moves)
    yield f"records: {counts}"
    yield f"evidence: {comparison.asked} blocks searched, {moved} rank differently, {worse} worse"
