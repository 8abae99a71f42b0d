"""Tables that the host's own programs print: modules, sockets, processes, Slurm's nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader, Unread
from kb.checks.readers.names import named

_MODULE = re.compile(r"^(\w{2,40}) +\d{1,12} +-?\d{1,6}(?: |$)")
_LICENSE = re.compile(r"^(?:NVIDIA|Proprietary)$")
_KERNEL = re.compile(r"^(\d{1,2})\.(\d{1,3})\.\d{1,4}\S*$")
_DKMS = re.compile(r"^nvidia/[\d.]+, (\S+), \S+: (installed|built|added)")
_LISTEN_HEADER = re.compile(r"^State\s+Recv-Q\s+Send-Q\s+Local Address:Port")
_CONNECTION = re.compile(r"^[A-Z][A-Z0-9-]+\s+\d+\s+\d+\s")
_AFFINITY = re.compile(r"pid (\d{1,10})'s current affinity list: (\S{1,300})")
_QUOTA = re.compile(r"^(\d{3,12}) (100000)$")
_COMPILERS = ("cicc", "ptxas", "nvcc", "ninja", "cc1plus", "cudafe++")
_FEW_CORES = 4
"""A rank with its workers and threads needs at least so many."""
_LEADING_ROWS = 3


def _modules(output: Output) -> dict[str, int]:
    found = ((_MODULE.match(line), row) for row, line in enumerate(output.lines))
    return {match[1]: row for match, row in found if match}


def read_peermem(output: Output) -> Iterator[Found]:
    """`lsmod`: a NIC without the module that lets it read GPU memory."""
    modules = _modules(output)
    proprietary = any(map(_LICENSE.match, output.lines))
    old = any(
        (int(kernel[1]), int(kernel[2])) < (5, 12)
        for kernel in map(_KERNEL.match, output.lines)
        if kernel
    )
    missing = not {"nvidia_peermem", "nv_peer_mem"} & modules.keys()
    if "mlx5_ib" in modules and missing and (proprietary or old):
        text = "mlx5_ib is loaded and nvidia_peermem is not: no GPUDirect RDMA."
        yield Found("no-gpudirect-rdma", text, modules["mlx5_ib"])


def read_kernel_module(output: Output) -> Iterator[Found]:
    """Modules of the driver, and the kernel that they are built for."""
    modules = _modules(output)
    if "nvidia" in modules and "nvidia_uvm" not in modules:
        text = "The module nvidia is loaded and nvidia_uvm is not: CUDA cannot start."
        yield Found("cuda-needs-nvidia-uvm", text, modules["nvidia"])
    running = [kernel[0] for kernel in map(_KERNEL.match, output.lines) if kernel]
    built = {
        match[1]: row
        for row, line in enumerate(output.lines)
        if (match := _DKMS.match(line)) and match[2] == "installed"
    }
    if running and built and running[0] not in built:
        text = f"The driver is built for {named(list(built))}, and {running[0]} runs."
        yield Found("dkms-built-kernel", text, next(iter(built.values())))


def read_listeners(output: Output) -> Iterator[Found]:
    """`ss -l`: a table without a line."""
    headers = [row for row, line in enumerate(output.lines) if _LISTEN_HEADER.match(line)]
    if headers and not any(map(_CONNECTION.match, output.lines)):
        yield Found("nobody-listens", "Nobody listens: the table is empty.", headers[0])


def read_affinity(output: Output) -> Iterator[Found]:
    """Cores of the ranks, and the quota of the container."""
    cores: dict[str, list[str]] = {}
    rows: dict[str, int] = {}
    quotas: list[tuple[float, int]] = []
    for row, line in enumerate(output.lines):
        if found := _AFFINITY.search(line):
            pids = cores.setdefault(found[2], [])
            if found[1] not in pids:
                pids.append(found[1])
            rows[found[2]] = row
        elif quota := _QUOTA.match(line):
            quotas.append((int(quota[1]) / int(quota[2]), row))
    ranks = sum(map(len, cores.values()))
    for cpus, row in quotas:
        if cpus < _FEW_CORES * max(1, ranks):
            text = f"The container may use {cpus:g} CPUs for {ranks} processes."
            yield Found("cpu-limit-container", text, row)
    for listed, pids in cores.items():
        count = _count(listed)
        if len(pids) > 1 and count is not None and count < _FEW_CORES * len(pids):
            text = f"Processes {named(pids)} share the {count} cores {listed}."
            yield Found("ranks-share-cores", text, rows[listed])
            return


def _count(listed: str) -> int | None:
    """How many cores `0-3,8` names."""
    count = 0
    for part in listed.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return None
        count += int(last or first) - int(first) + 1
    return count


def read_top(output: Output) -> Iterator[Found | Unread]:
    """`top`: programs that lead the list."""
    header: list[str] = []
    place = 0
    for row, line in enumerate(output.lines):
        words = line.split()
        if words[:1] == ["PID"] and "COMMAND" in words:
            header, place = words, 0
            if "%CPU" not in header:
                yield Unread("the column %CPU of top", row)
        elif header and len(words) >= len(header) and words[0].isdigit():
            place += 1
            cells = dict(zip(header, words, strict=False))
            if place <= _LEADING_ROWS and cells["COMMAND"] in _COMPILERS:
                text = f"{cells['COMMAND']} leads the list: kernels are being compiled."
                yield Found("kernels-being-compiled", text, row)
                return


READERS: dict[str, Reader] = {
    "cpu-affinity": read_affinity,
    "lsmod-peermem": read_peermem,
    "nvidia-kernel-module": read_kernel_module,
    "ss-listen": read_listeners,
    "top-threads": read_top,
}
"""By the id of the check."""
