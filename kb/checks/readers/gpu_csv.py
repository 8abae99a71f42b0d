"""`nvidia-smi --query-...=... --format=csv`: rows of values with commas between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

import msgspec

from kb.checks.model import Found, Output, Reader, Unread

_ROW = re.compile(r"^(?:\S+ )?(\d{1,3}), (.+)$")
_HEADER = re.compile(r"^(?:timestamp, )?index, ")
_UNIT = re.compile(r"\s*\[[^]]{1,10}\]$")
_REASONS = re.compile(r"0x[0-9a-fA-F]{16}$")
_CLOCK = re.compile(r"(\d{1,5}) MHz$")
_PERCENT = re.compile(r"(\d{1,3}) %$")
_UNREAD = re.compile(r"\[(?!N/A|Not Supported)[^]]{1,60}\]$|ERR!")
_APPLICATION = re.compile(r"^(GPU-[0-9a-f-]{36}), (\d{1,10}), ([^,]{1,200}), (\d{1,7}) MiB")

_SLOWDOWNS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""By the bit in the reasons for which the clocks are low."""
_SLOW_SHARE = 0.75
"""Of the median clock of the busy GPUs: below it one of them sets the pace."""
_BUSY_PERCENT = 50
_CONTEXT_MIB = 1_500
"""A CUDA context alone takes less."""
_MODEL_FACTOR = 4
"""So many times more memory than a context has the process that the GPU belongs to."""


class Row(msgspec.Struct, frozen=True):
    """The values of one GPU."""

    index: str
    row: int
    cells: dict[str, str]
    """By the name of the column; by its number where no header is there."""

    def first(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        """The first cell that an expression matches from its beginning."""
        return next(filter(None, map(expression.match, self.cells.values())), None)


def read_query_gpu(output: Output) -> Iterator[Found | Unread]:
    """Reasons for low clocks, and a GPU that is slower than the others."""
    rows = list(_rows(output))
    for one in rows:
        unread = {name: cell for name, cell in one.cells.items() if _UNREAD.search(cell)}
        if unread:
            said = ", ".join(f"{name} (`{cell}`)" for name, cell in unread.items())
            yield Unread(f"{said} of GPU {one.index}", one.row)
    for one in rows:
        reasons = one.first(_REASONS)
        bits = int(reasons[0], 16) if reasons else 0
        said = ", ".join(name for bit, name in _SLOWDOWNS.items() if bits & bit)
        if said:
            text = f"The clocks of GPU {one.index} are held down: {said}."
            yield Found("bits-0x1-idle-0x2", text, one.row)
            break
    clocks = [
        (int(clock[1]), one) for one in rows if _is_busy(one) and (clock := one.first(_CLOCK))
    ]
    middle = median([clock for clock, _one in clocks]) if len(clocks) > 2 else 0
    slow = [pair for pair in clocks if pair[0] < _SLOW_SHARE * middle]
    if slow:
        speed, one = slow[0]
        text = f"GPU {one.index} runs at {speed} MHz, the others at about {middle:.0f}."
        yield Found("slow-gpu-sets-pace", text, one.row)


def _is_busy(one: Row) -> bool:
    percent = one.first(_PERCENT)
    return percent is None or int(percent[1]) >= _BUSY_PERCENT


def _rows(output: Output) -> Iterator[Row]:
    names: list[str] = []
    for row, line in enumerate(output.lines):
        if _HEADER.match(line):
            names = [_UNIT.sub("", name) for name in line.split(", ")]
            names = names[names.index("index") + 1 :]
        elif found := _ROW.match(line):
            cells = found[2].split(", ")
            columns = (
                names
                if len(names) == len(cells)
                else [f"column {n + 2}" for n in range(len(cells))]
            )
            yield Row(found[1], row, dict(zip(columns, cells, strict=True)))


def read_compute_apps(output: Output) -> Iterator[Found]:
    """Small processes beside the one that a GPU belongs to."""
    sizes: dict[str, list[tuple[int, str, int]]] = {}
    for row, line in enumerate(output.lines):
        if found := _APPLICATION.match(line):
            sizes.setdefault(found[1], []).append((int(found[4]), found[2], row))
    for gpu, processes in sizes.items():
        largest = max(processes)[0]
        small = [one for one in processes if one[0] <= min(_CONTEXT_MIB, largest / _MODEL_FACTOR)]
        if small:
            pids = ", ".join(pid for _size, pid, _row in small)
            text = (
                f"On {gpu[:12]} process {pids} holds only a CUDA context ({small[0][0]} MiB) beside"
                f" one of {largest} MiB."
            )
            yield Found("ranks-opened-cuda-context", text, small[0][2])
            return


READERS: dict[str, Reader] = {
    "nvidia-smi-compute-apps": read_compute_apps,
    "nvidia-smi-query-gpu": read_query_gpu,
}
"""By the id of the check."""
