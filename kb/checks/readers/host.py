"""Tables that the host's own programs print: modules, sockets, processes, Slurm's nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kb.checks.model import Found, Output, Reader, Unread
from kb.checks.readers.names import named

_MODULE = re.compile(r"^(\w{2,40}) +\d{1,12} +-?\d{1,6}(?: |$)")
_LICENSE = re.compile(r"^(?:NVIDIA|Proprietary)$")
_KERNEL = re.compile(r"^(\d{1,2})\.(\d{1,3})\.\d{1,4}\S*$")
_DKMS = re.compile(r"^nvidia/[\d.]+, (\S+), \S+: (installed|built|added)")
_LISTEN_HEADER = re.compile(r"^State\s+Recv-Q\s+Send-Q\s+Local Address:Port")
_CONNECTION = re.compile(r"^[A-Z][A-Z0-9-]+\s+\d+\s+\d+\s")
_AFFINITY = re.compile(r"pid (\d{1,10})'s current affinity list: (\S{1,300})")
_MASK = re.compile(r"pid (\d{1,10})'s current affinity mask: ([0-9a-f][0-9a-f,]{0,300})\s*$")
_QUOTA = re.compile(r"^(?:\S{0,200}cpu\.max[: ]{1,2})?(\d{3,12}) (100000)\s*$")
_NPROC = re.compile(
    r"^(?:(?:.{0,100}[$#>] ?)?nproc(?: --all)?[ \t]{0,8}[:=]?[ \t]{1,8})?(\d{1,4})\s*$"
)
_NPROC_TOLD = re.compile(
    r"\b(?:nproc|cpu_count\(\)|sched_getaffinity\(0\)\)?)[^\n]{0,30}?"
    r"(?:\b(?:says?|is|gives?|shows?|returns?|reports?|prints?|only|just)\b"
    r"|只有|是|为|显示|返回|输出|[=:：>])\s*(?:(?:only|just|只有|仅)\s*)?([12])(?![\d.%])(?! of\b)",
    re.IGNORECASE | re.ASCII,
)
_MAX_TOLD = 300
"""Characters of a line that somebody wrote."""
_LSCPU = re.compile(r"^CPU\(s\):\s+(\d{1,5})\s*$")
_JOB_CPUS = re.compile(r"\bNumCPUs=(\d{1,7}) NumTasks=(\d{1,7}) CPUs/Task=(\d{1,5}|N/A)")
_JOB_GPUS = re.compile(
    r"\bgres[/:]gpu(?:[:=][a-zA-Z]\w{0,40})?[:=](\d{1,6})\b|\bGRES=gpu(?::\w{1,40})?:(\d{1,6})"
)
_TASK = re.compile(r"^\S{1,100} procid=(\d{1,6}) .* cpus=(\d{1,5})\s*$")
_LOAD = re.compile(
    r"^(?:(\S{1,100}?):? +)?\s*\d\d:\d\d:\d\d up .{1,60}load average: (\d{1,7}\.\d\d),"
)
_NODE = re.compile(r"^c[rwxsStT-]{9}\S? +\d{1,4} .{1,100} /dev/(nvidia[\w-]{0,40})\s*$")
_COMPILERS = ("cicc", "ptxas", "nvcc", "ninja", "cc1plus", "cudafe++")
_HOST_PROGRAMS = re.compile(
    r"(?:falcon-sens|clamd|clamscan|freshclam|mdatp|wdavdaemon|osqueryd|auditd|splunkd|filebeat"
    r"|fluent-?bit|fluentd|telegraf|collectd|ds_agent|tanium|sophos|esets|cbagentd|updatedb"
    r"|kswapd|kcompactd|khugepaged|irqbalance|systemd-journal|rsyslogd|node_exporter"
    r"|dcgm-export|nv-hostengine|rngd|tuned)"
)
"""Beginnings of the names of programs that watch or serve a host."""
_CORE_PERCENT = 90.0
"""`top` shows so much, and more, for a program that uses a core."""
_FEW_CORES = 4
"""A rank with its workers and threads needs at least so many."""
_CORE_THREADS = 2
"""Processors of one core."""
_MUCH_LOAD = 2.0
"""Processes that want a processor, for each of them."""
_HUGE_LOAD = 512.0
"""More than most nodes have processors."""
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


def read_device_nodes(output: Output) -> Iterator[Found]:
    """`ls -l /dev/nvidia*`: the device of UVM, which CUDA needs, beside those of the driver."""
    nodes = {found[1]: row for row, line in enumerate(output.lines) if (found := _NODE.match(line))}
    uvm = [row for row, line in enumerate(output.lines) if "/dev/nvidia-uvm" in line]
    if uvm and "cannot access" in output.lines[uvm[0]]:
        text = f"/dev/nvidia-uvm is missing: {output.lines[uvm[0]].strip()}"
        yield Found("uvm-node-missing", text, uvm[0])
    elif "nvidiactl" in nodes and not uvm:
        text = "/dev/nvidiactl is there and /dev/nvidia-uvm is not: CUDA cannot start."
        yield Found("uvm-node-missing", text, nodes["nvidiactl"])


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
    """Cores of the ranks or of this shell, and the quota of the container."""
    yield from _one_core(output)
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
            text = f"The container may use {cpus:g} CPUs"
            text += f" for {ranks} processes." if ranks else "."
            yield Found("cpu-limit-container", text, row)
    for listed, pids in cores.items():
        count = _count(listed)
        if len(pids) > 1 and count is not None and count < _FEW_CORES * len(pids):
            text = f"Processes {named(pids)} share the {count} cores {listed}."
            yield Found("ranks-share-cores", text, rows[listed])
            return


def _one_core(output: Output) -> Iterator[Found]:
    for row, line in enumerate(output.lines):
        text = ""
        if found := _AFFINITY.search(line):
            if _is_one_core(found[2]):
                text = f"Process {found[1]} may use the processors {found[2]} only: one core."
        elif (found := _MASK.search(line)) and int(found[2].replace(",", ""), 16).bit_count() == 1:
            text = f"Process {found[1]} may use one processor only: its mask is {found[2]}."
        elif (found := _LSCPU.match(line)) and int(found[1]) == 1:
            text = "The machine has one processor."
        elif found := _nproc(line, output, row):
            text = f"This shell may use {found[1]} processor{'s' * (found[1] != '1')} only."
        if text:
            yield Found("core-rank-data-workers", text, row)
            return


def _nproc(line: str, output: Output, row: int) -> re.Match[str] | None:
    """One core, as `nproc` prints it or as somebody tells it."""
    printed = _NPROC.match(line)
    if printed and _is_few(printed[1], output, row):
        return printed
    return _NPROC_TOLD.search(line) if len(line) <= _MAX_TOLD else None


def _is_one_core(listed: str) -> bool:
    """Whether a list names one processor, or the two threads of a core, whose numbers lie far
    apart."""
    first, _, second = listed.partition(",")
    if not first.isdigit() or not (second or first).isdigit():
        return False
    return not second or abs(int(second) - int(first)) > _CORE_THREADS


def _is_few(number: str, output: Output, row: int) -> bool:
    """Whether a number is that of the processors of one core: it is the first line of what a
    command printed."""
    above = output.lines[row - 1] if row else ""
    is_first = not above.strip() or "nproc" in above or "nproc" in output.lines[row]
    return is_first and int(number) <= _CORE_THREADS


def read_load(output: Output) -> Iterator[Found]:
    """`uptime`: the load, against the processors where their number is shown."""
    shown = filter(None, map(_LSCPU.match, output.lines))
    cpus = next((int(found[1]) for found in shown), 0)
    for row, line in enumerate(output.lines):
        load = _LOAD.match(line)
        if load is None:
            continue
        if float(load[2]) > (_MUCH_LOAD * cpus or _HUGE_LOAD):
            host = f" of {load[1]}" if load[1] else ""
            of_cpus = f", with {cpus} processors" if cpus else ""
            yield Found("load-far-above", f"The load{host} is {load[2]}{of_cpus}.", row)
            return


def read_job(output: Output) -> Iterator[Found]:
    """`scontrol show job -d`, and what each task printed: tasks that have GPUs and one core."""
    gpus = 0
    for line in output.lines:
        for found in _JOB_GPUS.finditer(line):
            gpus = max(gpus, *(int(number) for number in found.groups() if number))
    for row, line in enumerate(output.lines):
        if (task := _TASK.match(line)) and int(task[2]) <= _FEW_CORES:
            yield Found("task-cpus", f"Task {task[1]} has {task[2]} processors.", row)
            return
        if gpus and (job := _JOB_CPUS.search(line)):
            cpus = int(job[1]) / max(1, int(job[2])) if job[3] == "N/A" else int(job[3])
            if cpus <= _CORE_THREADS and int(job[1]) <= _CORE_THREADS * gpus:
                text = f"The job has {job[1]} processors for {gpus} GPUs, {cpus:g} for each task."
                yield Found("task-cpus", text, row)
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
            if place <= _LEADING_ROWS and _takes_core(cells):
                text = f"{cells['COMMAND']} takes {cells['%CPU']} % of a core."
                yield Found("host-program-leads", text, row)
                return


def _takes_core(cells: Mapping[str, str]) -> bool:
    share = cells.get("%CPU", "")
    is_known = bool(_HOST_PROGRAMS.match(cells["COMMAND"])) and share.replace(".", "", 1).isdigit()
    return is_known and float(share) >= _CORE_PERCENT


READERS: dict[str, Reader] = {
    "cpu-affinity": read_affinity,
    "cpu-pressure": read_load,
    "dev-nvidia-nodes": read_device_nodes,
    "lsmod-peermem": read_peermem,
    "nvidia-kernel-module": read_kernel_module,
    "slurm-gpu-binding": read_job,
    "ss-listen": read_listeners,
    "top-threads": read_top,
}
"""By the id of the check."""
