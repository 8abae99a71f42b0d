"""`free` and `df`: tables whose header names the columns."""

from __future__ import annotations

from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader, Unread
from kb.checks.readers.sizes import GIB, read_size

_LITTLE_SHARE = 0.05
"""Share of the host's memory below which the OOM killer is near."""
_MUCH_SHARED, _MUCH_SHARED_SHARE = 10 * GIB, 0.25
"""Shared memory that is worth a word: bytes, and share of the host's memory."""
_SMALLEST_SHM = GIB
"""What one rank with workers needs of /dev/shm."""
_DOCKER_SHM = 64 << 20
_FULL_PERCENT = 90


def read_free(output: Output) -> Iterator[Found | Unread]:
    """Available and shared memory of the host."""
    header: list[str] = []
    for row, line in enumerate(output.lines):
        words = line.split()
        if words[:2] == ["total", "used"]:
            header = words
        elif words[:1] == ["Mem:"] and header:
            yield from _memory(dict(zip(header, words[1:], strict=False)), row)


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


def _unit(header: list[str]) -> int | None:
    """Bytes of a bare number below a header of `df`; None where it counts inodes."""
    if "Inodes" in header:
        return None
    blocks = next((word for word in header if word.endswith("-blocks")), "1K-blocks")
    size = read_size(blocks.removesuffix("-blocks"))
    return int(size) if size else 1 << 10


READERS: dict[str, Reader] = {
    "df-shm": read_shm,
    "free-h": read_free,
}
"""By the id of the check."""
