"""`free` and `df`: tables whose header names the columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader, Unread
from kb.checks.readers.sizes import GIB, gib, read_size

_LITTLE_SHARE = 0.05
"""Share of the host's memory below which the OOM killer is near."""
_MUCH_SHARED, _MUCH_SHARED_SHARE = 10 * GIB, 0.25
"""Shared memory that is worth a word: bytes, and share of the host's memory."""
_SMALLEST_SHM = GIB
"""What one rank with workers needs of /dev/shm."""
_MEMINFO = re.compile(r"^(MemTotal|MemAvailable|Shmem):\s+(\d{1,15}) kB\s*$")
_MOUNTED = re.compile(
    r"^(?:\S{1,60} on )?/dev/shm (?:type tmpfs|\s*\S{1,60}\s+tmpfs)\s.*\bsize=(\d{1,15}[kmgKMG]?)\b"
)
_NEAR = 0.9
"""Share of a limit from which on it is nearly reached."""
_CGROUP_NUMBER = re.compile(r"^(max|\d{5,20})\s*$")
_DOCKER_SHM = 64 << 20
_FULL_PERCENT = 90


def read_free(output: Output) -> Iterator[Found | Unread]:
    """Available and shared memory of the host."""
    header: list[str] = []
    yield from _meminfo(output)
    for row, line in enumerate(output.lines):
        words = line.split()
        if words[:2] == ["total", "used"]:
            header = words
        elif words[:1] == ["Mem:"] and header:
            yield from _memory(dict(zip(header, words[1:], strict=False)), row)


def _meminfo(output: Output) -> Iterator[Found]:
    """`/proc/meminfo`, by the same bars."""
    found = [
        (match, row) for row, line in enumerate(output.lines) if (match := _MEMINFO.match(line))
    ]
    sizes = {match[1]: (int(match[2]) << 10, row) for match, row in found}
    total, _row = sizes.get("MemTotal", (0, 0))
    available, row = sizes.get("MemAvailable", (total, 0))
    if available < _LITTLE_SHARE * total:
        text = f"Only {gib(available)} of {gib(total)} host memory is available."
        yield Found("host-memory-almost-exhausted", text, row)
    shared, row = sizes.get("Shmem", (0, 0))
    if total and shared >= max(_MUCH_SHARED, _MUCH_SHARED_SHARE * total):
        text = f"{gib(shared)} of memory is shared (tmpfs, /dev/shm) and cannot be dropped."
        yield Found("shared-memory", text, row)


def _memory(cells: dict[str, str], row: int) -> Iterator[Found | Unread]:
    # `free` without -h prints KiB. A unit that -m or -g chose is not printed; shares do not need it
    values = {name: read_size(cell, 1 << 10) for name, cell in cells.items()}
    total, available = values.get("total"), values.get("available")
    if total is None or available is None:
        yield Unread("the column available of free", row)
    elif available < _LITTLE_SHARE * total:
        text = f"Only {cells['available']} of {cells['total']} host memory is available."
        yield Found("host-memory-almost-exhausted", text, row)
    shared = values.get("shared")
    if shared is None or total is None or cells["shared"].isdigit():
        return
    if shared >= max(_MUCH_SHARED, _MUCH_SHARED_SHARE * total):
        text = f"{cells['shared']} of memory is shared (tmpfs, /dev/shm) and cannot be dropped."
        yield Found("shared-memory", text, row)


def read_shm(output: Output) -> Iterator[Found | Unread]:
    """What is left of /dev/shm."""
    unit: int | None = 1 << 10
    for row, line in enumerate(output.lines):
        if (mounted := _MOUNTED.match(line)) and mounted[1] != "65536k":
            size = read_size(mounted[1].upper())
            if size is not None and size < _SMALLEST_SHM:
                text = f"The size of /dev/shm is {mounted[1]}: too little for ranks."
                yield Found("tight-several-ranks-workers", text, row)
        words = line.split()
        if words[:1] == ["Filesystem"]:
            unit = _unit(words)
        if len(words) < 6 or words[-1] != "/dev/shm":  # noqa: S108  it is read of, not written to
            continue
        if unit is None:
            continue
        size, available = read_size(words[-5], unit), read_size(words[-3], unit)
        if size is None or available is None or not words[-2].rstrip("%").isdigit():
            yield Unread(f"the sizes `{words[-5]}` and `{words[-3]}` of /dev/shm", row)
        elif (
            size != _DOCKER_SHM
            and available < _SMALLEST_SHM
            and int(words[-2].rstrip("%")) < _FULL_PERCENT
        ):
            text = f"{words[-3]} of {words[-5]} is left in /dev/shm: too little for ranks."
            yield Found("tight-several-ranks-workers", text, row)


def read_cgroup(output: Output) -> Iterator[Found]:
    """`cat memory.max memory.current`: the limit, and what is used of it, without a name. What is
    used is never more than the limit."""
    found = [
        (match[1], row)
        for row, line in enumerate(output.lines)
        if (match := _CGROUP_NUMBER.match(line))
    ]
    if len(found) == len(("limit", "used")) and all(value != "max" for value, _row in found):
        used, limit = sorted(int(value) for value, _row in found)
        if used > _NEAR * limit:
            text = f"{gib(used)} of {gib(limit)} of the cgroup are in use."
            yield Found("near-limit", text, found[-1][1])


def _unit(header: list[str]) -> int | None:
    """Bytes of a bare number below a header of `df`; None where it counts inodes."""
    if "Inodes" in header:
        return None
    blocks = next((word for word in header if word.endswith("-blocks")), "1K-blocks")
    size = read_size(blocks.removesuffix("-blocks"))
    return int(size) if size else 1 << 10


READERS: dict[str, Reader] = {
    "cgroup-memory": read_cgroup,
    "df-shm": read_shm,
    "free-h": read_free,
}
"""By the id of the check."""
