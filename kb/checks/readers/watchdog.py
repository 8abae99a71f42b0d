"""What the watchdogs of PyTorch's NCCL groups print, rank by rank."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from kb.checks.model import Found, Output, Reader
from kb.checks.readers.names import capital, ranks

_RANK = re.compile(r"\[?(?:PG (?:ID )?\S+(?: PG GUID \S+)? )?Rank (\d{1,6})\]", re.IGNORECASE)
_GROUP = re.compile(r"\[PG (?:ID )?(\d{1,6})(?: PG GUID (\S+?)(?:\(([^)]{0,100})\))?)? Rank")
_WORK = re.compile(r"WorkNCCL\(SeqNum=(\d{1,19}), OpType=(\w{1,60}), NumelIn=(\d{1,19})")
_STATUS = re.compile(
    r"last enqueued(?: NCCL)? work: (\d{1,19}), last completed(?: NCCL)? work: (-?\d{1,19})"
)
_WORLD = re.compile(
    r"\bWORLD_SIZE[=: ]+(\d{1,6})\b|\bworld[ _]size[=: ]+(\d{1,6})\b", re.IGNORECASE
)

_PAIRED = {"SEND", "RECV", "COALESCED", "UNKNOWN"}
"""Operations that need not be the same on both sides."""
_UNEVEN = "ALLTOALL"
"""Its ranks may send different numbers of elements."""


class Work(msgspec.Struct, frozen=True):
    """An operation that a rank waited for in vain."""

    sequence: str
    operation: str
    elements: str
    row: int


class Group(msgspec.Struct):
    """What the ranks of one process group said."""

    work: dict[int, Work]
    """By rank."""
    status: dict[int, tuple[int, int, int]]
    """Last enqueued, last completed and row, by rank."""


def read_watchdog(output: Output) -> Iterator[Found]:
    """Who waited, and who is behind."""
    groups: dict[str, Group] = {}
    world = 0
    for row, line in enumerate(output.lines):
        if size := _WORLD.search(line):
            world = max(world, int(size[1] or size[2]))
        rank, named = _RANK.search(line), _GROUP.search(line)
        if rank is None:
            continue
        group = groups.setdefault(_name(named), Group({}, {}))
        if work := _WORK.search(line):
            group.work.setdefault(int(rank[1]), Work(work[1], work[2], work[3], row))
        if status := _STATUS.search(line):
            enqueued, completed = map(int, status.groups())
            group.status.setdefault(int(rank[1]), (enqueued, completed, row))
    for name, group in groups.items():
        yield from _operations(group)
        yield from _states(group)
        yield from _silent(name, group, world)
        rows = [work.row for work in group.work.values()]
        rows += [row for *_counts, row in group.status.values()]
        if name and rows:
            text = f"The operation that timed out belongs to the sub-group {name}."
            yield Found("stuck-operation-belongs-sub", text, min(rows))


def _name(named: re.Match[str] | None) -> str:
    """Empty for the group of all ranks."""
    if named is None or named[1] == "0" or named[3] == "default_pg":
        return ""
    return named[3] or named[1]


def _operations(group: Group) -> Iterator[Found]:
    by_sequence: dict[str, list[tuple[int, Work]]] = {}
    for rank, work in group.work.items():
        if work.operation not in _PAIRED and not work.operation.startswith(_UNEVEN):
            by_sequence.setdefault(work.sequence, []).append((rank, work))
    for sequence, works in by_sequence.items():
        kinds = Counter((work.operation, work.elements) for _rank, work in works)
        common = kinds.most_common(1)[0][0]
        for rank, work in works:
            if (work.operation, work.elements) != common:
                text = (
                    f"At operation {sequence} rank {rank} issued {work.operation} of"
                    f" {work.elements} elements, the others {common[0]} of {common[1]}."
                )
                yield Found("ranks-issued-different-operations", text, work.row)
                return


def _states(group: Group) -> Iterator[Found]:
    if len(group.status) < 2:
        return
    enqueued = {rank: status[0] for rank, status in group.status.items()}
    least, most = min(enqueued.values()), max(enqueued.values())
    rows = {rank: status[2] for rank, status in group.status.items()}
    if least < most:
        behind = sorted(rank for rank, count in enqueued.items() if count == least)
        who = capital(ranks(behind))
        text = f"{who} stopped issuing work first, at {least}; others reached {most}."
        yield Found("rank-smallest-last-enqueued", text, rows[behind[0]])
    elif len({status[1] for status in group.status.values()}) == 1:
        text = (
            f"All {len(enqueued)} ranks that speak issued operation {most}, and none finished it."
        )
        yield Found("ranks-issued-operation-none", text, min(rows.values()))


def _silent(name: str, group: Group, world: int) -> Iterator[Found]:
    """The members of a sub-group are not known, so it is told for the group of all ranks only."""
    absent = [rank for rank in range(min(world, 100_000)) if rank not in group.work]
    if not name and group.work and absent and len(absent) < world:
        text = f"{capital(ranks(absent))} of {world} printed no time-out: the others waited."
        yield Found("ranks-print-line-waited", text, min(work.row for work in group.work.values()))


READERS: dict[str, Reader] = {
    "nccl-watchdog-lines": read_watchdog,
}
"""By the id of the check."""
