"""The sentence with which PyTorch says that a GPU's memory is used up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader
from kb.checks.readers.sizes import GIB, gib, read_size

_SIZE = r"(\d[\d.]{0,12} [KMGT]?i?B)"
_PARTS = {
    "asked": re.compile(rf"Tried to allocate {_SIZE}"),
    "total": re.compile(rf"total capacity of {_SIZE}|; {_SIZE} total capacity"),
    "free": re.compile(rf"of which {_SIZE} is free|; {_SIZE} free"),
    "process": re.compile(rf"this process has {_SIZE} memory in use"),
    "allocated": re.compile(rf"Of the allocated memory {_SIZE}|; {_SIZE} already allocated"),
    "unused": re.compile(rf"and {_SIZE} is reserved by PyTorch but unallocated"),
    "reserved": re.compile(rf"; {_SIZE} reserved in total by PyTorch"),
}
_OTHER = re.compile(rf"Process \d{{1,10}} has {_SIZE} memory in use")

_HUGE = 8 * GIB
"""An allocation of so much at once is one tensor."""
_SIZEABLE_SHARE = 0.1
"""Of the GPU's memory."""
_OUTSIDE = 3 * GIB
"""CUDA's context and the libraries take less in most jobs."""


def read_torch_oom(output: Output) -> Iterator[Found]:
    """Who holds the memory that was missing."""
    for row, line in enumerate(output.lines):
        sizes = {name: size for name, part in _PARTS.items() if (size := _size(part, line))}
        total, asked = sizes.get("total"), sizes.get("asked")
        if total:
            yield from _other_processes(line, total, row)
        if total and asked:
            yield from _huge(asked, sizes.get("free", 0), total, row)
            yield from _fragmented(sizes, asked, total, row)
        yield from _outside(sizes, row)


def _size(part: re.Pattern[str], line: str) -> float | None:
    match = part.search(line)
    return read_size(next(filter(None, match.groups()))) if match else None


def _huge(asked: float, free: float, total: float, row: int) -> Iterator[Found]:
    if asked >= _HUGE and free >= _SIZEABLE_SHARE * total:
        text = (
            f"One tensor of {gib(asked)} was asked for while {gib(free)} of {gib(total)} is free."
        )
        yield Found("huge-tensor", text, row)


def _other_processes(line: str, total: float, row: int) -> Iterator[Found]:
    others = [read_size(size) or 0 for size in _OTHER.findall(line)]
    if sum(others) >= _SIZEABLE_SHARE * total:
        who = "1 other process holds" if len(others) == 1 else f"{len(others)} other processes hold"
        text = f"{who} {gib(sum(others))} of the GPU's {gib(total)}."
        yield Found("processes-sit-gpu", text, row)


def _fragmented(sizes: dict[str, float], asked: float, total: float, row: int) -> Iterator[Found]:
    unused = sizes.get("unused", 0)
    finding = "memory-reserved-pieces-not"
    if "reserved" in sizes:
        unused = sizes["reserved"] - sizes.get("allocated", 0)
        finding = "numbers-wording-2"
    if unused > asked and unused > _SIZEABLE_SHARE * total:
        text = (
            f"{gib(unused)} is reserved in pieces, none of which holds the {gib(asked)} asked for."
        )
        yield Found(finding, text, row)


def _outside(sizes: dict[str, float], row: int) -> Iterator[Found]:
    if "process" not in sizes or "allocated" not in sizes:
        return
    outside = sizes["process"] - sizes["allocated"] - sizes.get("unused", 0)
    if outside > _OUTSIDE and "unused" in sizes:
        text = f"{gib(outside)} of this process lies outside of PyTorch's allocator."
        yield Found("gigabytes-outside-allocator", text, row)


READERS: dict[str, Reader] = {
    "torch-oom-message": read_torch_oom,
}
"""By the id of the check."""
