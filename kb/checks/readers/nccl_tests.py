"""The table of nccl-tests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader, Unread

_SIZE_ROW = re.compile(
    r"^\s+(\d{1,15})\s+\d{1,15}\s+[a-z]\w*\s+(?:[a-z]\w*\s+)?(-?\d[\d.]{0,12}\s+\d.+)$"
)
_RANK = re.compile(r"^#\s+Rank\s+(\d{1,6})\s.*\bon\s+(\S+)\s+device\s+\d+\s+\[\S+\]\s+(.+)$")
_HEADER = re.compile(r"^# nThread \d")

_LARGE = 100_000_000
"""Bytes from which on the bandwidth counts, not the latency."""
_SLOW_GB_PER_SECOND = 20.0
"""Less than any class of NVLink or of several fast NICs; what TCP or one PCIe hop gives."""
_CLASSES = (("H100 80GB HBM3", 360.0), ("H200", 360.0), ("A100-SXM", 230.0), ("H800", 150.0))
"""Bus bandwidth in GB/s of one node, by the name of its GPU."""
_FAR_BELOW = 0.5
_BUS_COLUMN = 2


def read_nccl_tests(output: Output) -> Iterator[Found | Unread]:
    """The bandwidth of the largest size, against what the GPUs can do."""
    largest: tuple[int, float, int] | None = None
    hosts: set[str] = set()
    gpus: set[str] = set()
    ranks: list[tuple[int, int]] = []
    headers = 0
    for row, line in enumerate(output.lines):
        headers += bool(_HEADER.match(line))
        if rank := _RANK.match(line):
            ranks.append((int(rank[1]), row))
            hosts.add(rank[2])
            gpus.add(rank[3].strip())
        elif sizes := _SIZE_ROW.match(line):
            cells = sizes[2].split()
            cells = cells[len(cells) % 2 :]  # releases before 2.11 print no root
            speed = _number(cells[_BUS_COLUMN]) if len(cells) > _BUS_COLUMN else None
            if speed is None:
                yield Unread(f"the bus bandwidth of {sizes[1]} bytes", row)
            elif int(sizes[1]) >= (largest[0] if largest else _LARGE):
                largest = int(sizes[1]), speed, row
    if largest:
        yield from _slow(largest, hosts, gpus)
    if headers > 1 and len(ranks) >= headers and not any(rank for rank, _row in ranks):
        text = f"{headers} processes ran, each of them alone as rank 0."
        yield Found("process-runs-alone", text, ranks[-1][1])


def _slow(largest: tuple[int, float, int], hosts: set[str], gpus: set[str]) -> Iterator[Found]:
    size, speed, row = largest
    expected = [rate for name, rate in _CLASSES for gpu in gpus if name in gpu]
    bar = _FAR_BELOW * expected[0] if expected and len(hosts) == 1 else _SLOW_GB_PER_SECOND
    if speed < bar:
        text = f"The bus bandwidth is {speed:.1f} GB/s at {size} bytes."
        if expected and len(hosts) == 1:
            text = text[:-1] + f"; such a node does about {expected[0]:.0f}."
        yield Found("slow-path", text, row)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


READERS: dict[str, Reader] = {
    "nccl-tests": read_nccl_tests,
}
"""By the id of the check."""
