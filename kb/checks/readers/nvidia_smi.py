"""The table of `nvidia-smi`: two rows a GPU, and the processes below."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kb.checks.model import Found, Output, Reader, Unread

_NAME = re.compile(r"\|\s+(\d{1,3})\s+\S.*\|\s*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:")
_VALUES = re.compile(r"\|.*/.*\|.*MiB\s*/.*\|.*\|")
_PERCENT = re.compile(r"(\d{1,3})%")
_POWER = re.compile(r"(\d{1,5})W\s*/\s*(\d{1,5})W")
_MEMORY = re.compile(r"(\d{1,8})MiB\s*/\s*(\d{1,8})MiB")
_PROCESS = re.compile(r"\|\s+\d{1,3}\s+\S+\s+\S+\s+\d{1,10}\s+\S+\s")

_BUSY_PERCENT = 99
_SPIN_POWER_SHARE = 0.35
"""A kernel that only polls draws at most so much of the power limit."""
_HELD_MIB = 1_000
"""More than the driver itself holds of an idle GPU."""


class Gpu(msgspec.Struct, frozen=True):
    """One GPU; None is what could not be read."""

    index: str
    row: int
    percent: int | None
    watt: tuple[int, int] | None
    """Drawn, and the limit."""
    mib: tuple[int, int] | None
    """Used, and all."""

    @property
    def spins(self) -> bool:
        """It is busy at a power at which nothing is computed."""
        if self.percent is None or self.watt is None:
            return False
        return self.percent >= _BUSY_PERCENT and self.watt[0] <= _SPIN_POWER_SHARE * self.watt[1]


def read_nvidia_smi(output: Output) -> Iterator[Found | Unread]:
    """Use, power and memory of the GPUs, one against the others."""
    gpus = list(_gpus(output))
    for gpu in gpus:
        columns = {"GPU-Util": gpu.percent, "Pwr:Usage/Cap": gpu.watt, "Memory-Usage": gpu.mib}
        unread = [name for name, value in columns.items() if value is None]
        if unread:
            yield Unread(f"{', '.join(unread)} of GPU {gpu.index}", gpu.row)
    spinning = [gpu for gpu in gpus if gpu.spins]
    if spinning:
        watt = spinning[0].watt or (0, 0)
        text = (
            f"{_named(spinning)} at {spinning[0].percent} % with {watt[0]} of {watt[1]} W:"
            " a kernel spins and waits, nothing is computed."
        )
        yield Found("nccl-polling-kernel-spins", text, spinning[0].row)
    busy = [gpu for gpu in gpus if gpu.percent is not None and gpu.percent >= _BUSY_PERCENT]
    idle = [gpu for gpu in gpus if gpu.percent == 0]
    if idle and len(busy) > len(idle):
        text = f"{_named(idle)} at 0 % while {_named(busy)} stand at 100 %: look at its rank."
        yield Found("rank-gpu-not-collective", text, idle[0].row)
    held = [gpu for gpu in idle if gpu.mib and gpu.mib[0] >= _HELD_MIB]
    if held and _lists_no_process(output):
        used = f"{(held[0].mib or (0,))[0]} MiB"
        text = f"{_named(held)} holds {used} although no process is listed."
        yield Found("memory-held-although-nothing", text, held[0].row)


def _gpus(output: Output) -> Iterator[Gpu]:
    index = None
    for row, line in enumerate(output.lines):
        if named := _NAME.match(line):
            index = named[1]
        elif index is not None and _VALUES.match(line):
            cells = line.split("|")
            percent = _PERCENT.search(cells[3])
            yield Gpu(
                index,
                row,
                int(percent[1]) if percent else None,
                _pair(_POWER, cells[1]),
                _pair(_MEMORY, cells[2]),
            )
            index = None


def _pair(expression: re.Pattern[str], cell: str) -> tuple[int, int] | None:
    match = expression.search(cell)
    return (int(match[1]), int(match[2])) if match else None


def _lists_no_process(output: Output) -> bool:
    titles = [row for row, line in enumerate(output.lines) if line.startswith("| Processes:")]
    below = output.lines[titles[-1] :] if titles else ()
    closed = any(line.startswith("+") for line in below)
    return closed and not any(_PROCESS.match(line) for line in below)


def _named(gpus: list[Gpu]) -> str:
    return f"GPU{'s' if len(gpus) > 1 else ''} {', '.join(gpu.index for gpu in gpus)}"


READERS: dict[str, Reader] = {
    "nvidia-smi": read_nvidia_smi,
}
"""By the id of the check."""
