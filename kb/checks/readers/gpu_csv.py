"""`nvidia-smi --query-...=... --format=csv`: rows of values with commas between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

import msgspec

from kb.checks.model import Found, Output, Reader, Unread

_ROW = re.compile(r"^(?:(\S{1,100}?)(?:: ?| ))?(\d{1,3}), (.+)$")
_FIRST = re.compile(r"^(?:(\S{1,100}?): ?)?(.+)$")
"""A row that does not begin with the number of the GPU."""
_STAMP = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}, ")
_NAME = (
    r"(?:timestamp|index|count|name|uuid|serial|pstate|driver_version|vbios_version|fan\.speed"
    r"|gpu_(?:name|uuid|bus_id|serial)|pci\.bus_id|persistence_mode|compute_mode"
    r"|(?:temperature|utilization|memory|power|clocks|enforced|ecc)\.[\w.]{2,60}"
    r"|clocks_(?:event|throttle)_reasons\.\w{2,40})(?: \[[^]]{1,10}\])?"
)
_HEADER = re.compile(
    rf"^(?:(\S{{1,100}}?): ?)?({_NAME}(?:, [\w.]{{2,60}}(?: \[[^]]{{1,10}}\])?){{1,40}})\s*$"
)
_UNIT = re.compile(r"\s*\[[^]]{1,10}\]$")
_REASONS = re.compile(r"0x[0-9a-fA-F]{16}$")
_CLOCK = re.compile(r"(\d{1,5}) MHz$")
_MEMORY = re.compile(r"(\d{1,8}) MiB$")
_NUMBER = re.compile(r"(\d{1,8})(?:\.\d{1,6})?(?: (?:MHz|MiB|W|%))?$")
_NO_SPEED = re.compile(r"\bmem|\bmax\b|\bmemory\b|\bvideo\b|\bapplications\b")
"""Clocks that do not follow the load of the GPU's cores."""
_HELD_DOWN = re.compile(
    r"^clocks_(?:event|throttle)_reasons\."
    r"(hw_slowdown|hw_thermal_slowdown|hw_power_brake_slowdown|sw_thermal_slowdown)$"
)
_PERCENT = re.compile(r"(\d{1,3}) %$")
_UNREAD = re.compile(r"\[(?!N/A|Not Supported|GPU is lost|GPU requires reset)[^]]{1,60}\]$|ERR!")
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
_HELD_MIB = 1_000
"""More than the driver itself holds of an idle GPU."""
_CONTEXT_MIB = 1_500
"""A CUDA context alone takes less."""
_MODEL_FACTOR = 4
"""So many times more memory than a context has the process that the GPU belongs to."""


class Row(msgspec.Struct, frozen=True):
    """The values of one GPU."""

    gpu: str
    """`3`, or `3 of node-0` where the host stands in front."""
    row: int
    cells: dict[str, str]
    """By the name of the column; by its number where no header is there."""

    def first(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        """The first cell that an expression matches from its beginning."""
        return next(filter(None, map(expression.match, self.cells.values())), None)

    def number(self, column: str, expression: re.Pattern[str]) -> int | None:
        """What stands in a column; without its name, the first value of that unit."""
        cell = self.cells.get(column)
        if cell is None and any("." in name for name in self.cells):
            return None
        found = self.first(expression) if cell is None else _NUMBER.match(cell)
        return int(found[1]) if found else None


def read_query_gpu(output: Output) -> Iterator[Found | Unread]:
    """Reasons for low clocks, a GPU that is slower than the others, and memory that is held."""
    rows = list(_rows(output))
    for one in rows:
        unread = {name: cell for name, cell in one.cells.items() if _UNREAD.search(cell)}
        if unread:
            said = ", ".join(f"{name} (`{cell}`)" for name, cell in unread.items())
            yield Unread(f"{said} of GPU {one.gpu}", one.row)
    for find in (_held_down, _slow, _limited, _held):
        yield from find(rows)


def _held_down(rows: list[Row]) -> Iterator[Found]:
    for one in rows:
        reasons = one.first(_REASONS)
        bits = int(reasons[0], 16) if reasons else 0
        said = [name for bit, name in _SLOWDOWNS.items() if bits & bit]
        said += [
            named[1].replace("_", " ")
            for name, cell in one.cells.items()
            if cell == "Active" and (named := _HELD_DOWN.match(name))
        ]
        if said:
            text = f"The clocks of GPU {one.gpu} are held down: {', '.join(said)}."
            yield Found("bits-0x1-idle-0x2", text, one.row)
            return


def _slow(rows: list[Row]) -> Iterator[Found]:
    clocks: dict[str, list[tuple[int, Row]]] = {}
    for one in rows:
        for column, speed in _clocks_of(one) if _is_busy(one) else ():
            clocks.setdefault(column, []).append((speed, one))
    for found in clocks.values():
        middle = median([speed for speed, _one in found])
        slow = [pair for pair in found if len(found) > 2 and pair[0] < _SLOW_SHARE * middle]
        if slow:
            speed, one = slow[0]
            text = f"GPU {one.gpu} runs at {speed} MHz, the others at about {middle:.0f}"
            is_known = one.number("utilization.gpu", _PERCENT) is not None
            text += "." if is_known else "; whether it is busy is not shown."
            yield Found("slow-gpu-sets-pace", text, one.row)
            return


def _clocks_of(one: Row) -> Iterator[tuple[str, int]]:
    for column, cell in one.cells.items():
        value = _NUMBER if column.startswith("clocks.") else _CLOCK
        if not _NO_SPEED.search(column) and (found := value.match(cell)):
            yield column, int(found[1])


def _limited(rows: list[Row]) -> Iterator[Found]:
    for column in ("power.limit", "enforced.power.limit"):
        cells = [(_NUMBER.match(one.cells.get(column, "")), one) for one in rows]
        limits = [(int(found[1]), one) for found, one in cells if found]
        most = max((limit for limit, _one in limits), default=0)
        low = [pair for pair in limits if pair[0] < _SLOW_SHARE * most]
        if low and 2 * len(low) < len(limits):
            watt, one = low[0]
            text = f"The power of GPU {one.gpu} is limited to {watt} W, that of others to {most} W."
            yield Found("power-limit-lower", text, one.row)
            return


def _held(rows: list[Row]) -> Iterator[Found]:
    """Memory of an idle GPU, beside others that are empty."""
    values = [
        (one, one.number("memory.used", _MEMORY), one.number("utilization.gpu", _PERCENT))
        for one in rows
    ]
    known = [(one, mib, busy) for one, mib, busy in values if mib is not None and busy is not None]
    held = [(one, mib) for one, mib, busy in known if mib >= _HELD_MIB and busy == 0]
    empty = [one for one, mib, _busy in known if mib < _HELD_MIB]
    if held and empty and len(held) + len(empty) == len(rows):
        one, mib = held[0]
        text = f"GPU {one.gpu} is idle and holds {mib} MiB, and GPU {empty[0].gpu} is empty."
        yield Found("memory-held-idle", text, one.row)


def _is_busy(one: Row) -> bool:
    percent = one.number("utilization.gpu", _PERCENT)
    return percent is None or percent >= _BUSY_PERCENT


def _rows(output: Output) -> Iterator[Row]:
    names: list[str] = []
    count = 0
    for row, line in enumerate(output.lines):
        if header := _HEADER.match(line):
            names, count = [_UNIT.sub("", name) for name in header[2].split(", ")], 0
        elif found := _row(line, names, count, row):
            count += 1
            yield found


def _row(line: str, names: list[str], count: int, row: int) -> Row | None:
    """The values of a line; `names` are those of the columns, and `count` is how many rows of the
    table stand above."""
    stamp = _STAMP.match(line)
    bare = line[stamp.end() :] if stamp and "timestamp" not in names else line
    numbered = _ROW.match(bare)
    whole = _FIRST.match(bare)
    if numbered and (not names or names[0] == "index"):
        host, text = numbered[1], f"{numbered[2]}, {numbered[3]}"
        columns = names or ["index"]
    elif whole and (names or _has_values(whole[2])):
        host, text, columns = whole[1], whole[2], names
    else:
        return None
    cells = text.strip().split(", ")
    if names and len(names) != len(cells):
        return None
    columns = columns + [f"column {n + 1}" for n in range(len(columns), len(cells))]
    values = dict(zip(columns, cells, strict=True))
    index = values.pop("index", str(count))
    return Row(f"{index} of {host}" if host else index, row, values)


def _has_values(text: str) -> bool:
    cells = text.strip().split(", ")
    return sum(1 for cell in cells if _NUMBER.match(cell) and " " in cell) > 1


def read_compute_apps(output: Output) -> Iterator[Found]:
    """Small processes beside the one that a GPU belongs to, or one process on each."""
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
    if len(sizes) > 1 and all(len(processes) == 1 for processes in sizes.values()):
        text = f"{len(sizes)} GPUs have one process each."
        yield Found("one-process-each", text, next(iter(sizes.values()))[0][2])


READERS: dict[str, Reader] = {
    "nvidia-smi-compute-apps": read_compute_apps,
    "nvidia-smi-query-gpu": read_query_gpu,
}
"""By the id of the check."""
