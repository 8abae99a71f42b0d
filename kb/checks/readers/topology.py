"""The matrix of `nvidia-smi topo -m`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader, Unread

_GPU = re.compile(r"GPU\d{1,3}")
_NIC = re.compile(r"(?:NIC\d{1,3}|mlx\d\S*)")
_NVLINK = re.compile(r"NV(\d{1,3})")
_LINK = re.compile(r"X|NV\d{1,3}|SYS|NODE|PHB|PXB|PIX")
_FAR = {"SYS", "NODE", "PHB"}
"""Ways over which NCCL does not choose GPUDirect RDMA by itself."""


def read_topology(output: Output) -> Iterator[Found | Unread]:
    """NVLinks between the GPUs, and their ways to the network."""
    columns: list[str] = []
    links: dict[tuple[str, str], str] = {}
    rows: dict[str, int] = {}
    for row, line in enumerate(output.lines):
        words = line.split()
        if not words:
            continue
        if (len(words) > 1 and words[0] == "GPU0" and _GPU.fullmatch(words[1])) or words[:2] == [
            "GPU0",
            "CPU",
        ]:
            columns = [word for word in words if _GPU.fullmatch(word) or _NIC.fullmatch(word)]
        elif _GPU.fullmatch(words[0]) and columns:
            rows[words[0]] = row
            for column, cell in zip(columns, words[1:], strict=False):
                if not _LINK.fullmatch(cell):
                    yield Unread(f"the link `{cell}` between {words[0]} and {column}", row)
                elif column != words[0]:
                    links[words[0], column] = cell
    yield from _numa(output, rows)
    yield from _nvlinks({pair: cell for pair, cell in links.items() if _GPU.match(pair[1])}, rows)
    yield from _network({pair: cell for pair, cell in links.items() if _NIC.match(pair[1])}, rows)


def _nvlinks(links: dict[tuple[str, str], str], rows: dict[str, int]) -> Iterator[Found]:
    counts = {
        pair: int(match[1]) if (match := _NVLINK.fullmatch(cell)) else 0
        for pair, cell in links.items()
    }
    most = max(counts.values(), default=0)
    for (gpu, other), count in counts.items():
        if count < most:
            text = (
                f"{gpu} and {other} have {count or 'no'} NVLinks ({links[gpu, other]}), other pairs"
                f" have {most}."
            )
            yield Found("nvlinks-missing", text, rows[gpu])
            return


def _network(links: dict[tuple[str, str], str], rows: dict[str, int]) -> Iterator[Found]:
    if links and set(links.values()) <= _FAR:
        ways = ", ".join(sorted(set(links.values())))
        text = f"No GPU has a NIC at PIX or PXB (only {ways}): GPUDirect RDMA is not chosen."
        yield Found("gpudirect-rdma-not-chosen", text, min(rows.values()))


def _numa(output: Output, rows: dict[str, int]) -> Iterator[Found]:
    """The last of the columns that are no links is the NUMA node, or the last but one, where the
    driver names the node of the GPU's own memory too."""
    places = {}
    for gpu, row in rows.items():
        cells = [word for word in output.lines[row].split()[1:] if not _LINK.fullmatch(word)]
        if len(cells) >= 2:
            places[gpu] = cells[1]
    unknown = [gpu for gpu, place in places.items() if not place.isdigit()]
    if unknown and len(unknown) == len(places):
        text = f"No GPU has a NUMA node of its own ({places[unknown[0]]}): the topology is hidden."
        yield Found("topology-information-missing", text, rows[unknown[0]])


READERS: dict[str, Reader] = {
    "nvidia-smi-topo": read_topology,
}
"""By the id of the check."""
