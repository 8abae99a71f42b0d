"""Findings that one line decides, by a comparison of the values in it; or with those of a line that
stands elsewhere in the output, such as a limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from kb.checks.model import Found, Output, Reader

_SMALL_CACHE_GIB = 2.0
_SMALL_REST_GB = 1.5
"""Room below which a server runs out of memory under load."""
_FEW_TOKENS = 2_048
_FEW_BLOCKS = 128
"""Of 16 tokens each, as vLLM makes them."""
_FEW_REQUESTS = 2.0
"""Of the full length: with less, requests that are long wait for one another."""
_SLOW_LOAD_SECONDS = 180.0
_CLOCK_OFF_SECONDS = 1.0
_FEW_PORTS = 5_000
_STEAL_PERCENT = 5.0
_FABRIC_COMPLETED = "3"
_BUSY_PERCENT = 99
_SPIN_SHARE = 0.35
"""A kernel that only polls draws at most so much of the power limit."""
_NEAR = 0.9
"""Share of a limit from which on it is nearly reached."""
_SLOW_MB_PER_SECOND = 100.0
_SLOW_NFS_MS = 100.0
_PER_SECOND = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_LOADED_MODULE = re.compile(r"^NVRM version: NVIDIA UNIX .{0,60}?(\d{3}\.\d{1,4}(?:\.\d{1,4})?)")
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d{3}\.\d{1,4}(?:\.\d{1,4})?)")
_FIRST_DRIVERS = {"11": 450, "12": 525, "13": 580}
"""By the CUDA major of a build of PyTorch: the first driver branch that runs it."""


class Comparison(msgspec.Struct, frozen=True):
    """A finding of a check, and when a line shows it."""

    finding: str
    expression: re.Pattern[str]
    """Every group is a value; all of them are given to `holds` and to the text."""
    holds: Callable[..., bool]
    text: str
    """With `{0}`, `{1}` for the values."""
    given: re.Pattern[str] | None = None
    """Of another line, whose groups stand in front: the first one of the output."""


COMPARISONS: dict[str, tuple[Comparison, ...]] = {
    "vllm-startup-log": (
        Comparison(
            "no-room-cache-weights",
            re.compile(r"Available KV cache memory: (-?\d{1,6}(?:\.\d{1,6})?) GiB"),
            lambda room: float(room) < _SMALL_CACHE_GIB,
            "Only {0} GiB is left for the KV cache after the weights.",
        ),
        Comparison(
            "no-room-cache-weights",
            re.compile(
                r"model weights take (\d[\d.]{0,9})GiB;.{0,90} activation peak memory takes"
                r" (\d[\d.]{0,9})GiB;.{0,60} for KV Cache is (-?\d{1,6}(?:\.\d{1,6})?)GiB"
            ),
            lambda _weights, _peak, room: float(room) < _SMALL_CACHE_GIB,
            "The weights take {0} GiB and the activations {1}: {2} GiB is left for the KV cache.",
        ),
        Comparison(
            "no-room-cache-weights",
            re.compile(r"^the rest of the memory reserved for KV Cache is (-?\d{1,6}\.\d{1,6})GiB"),
            lambda room: float(room) < _SMALL_CACHE_GIB,
            "{0} GiB is left for the KV cache.",
        ),
        Comparison(
            "no-room-cache-weights",
            re.compile(r"# (?:GPU|CUDA|cuda) blocks: (\d{1,9})\b"),
            lambda blocks: int(blocks) < _FEW_BLOCKS,
            "The KV cache has {0} blocks only.",
        ),
        Comparison(
            "no-room-cache-weights",
            re.compile(r"GPU KV cache size: ([\d,]{1,15}) tokens"),
            lambda tokens: int(tokens.replace(",", "") or 0) < _FEW_TOKENS,
            "The KV cache holds {0} tokens only.",
        ),
        Comparison(
            "few-full-requests",
            re.compile(
                r"Maximum concurrency for ([\d,]{1,15}) tokens per request: (\d{1,9}\.\d{1,6})x"
            ),
            lambda _tokens, requests: 1 <= float(requests) < _FEW_REQUESTS,
            "The cache holds {1} requests of the full length of {0} tokens: a second one waits.",
        ),
        Comparison(
            "cache-cannot-hold-request",
            re.compile(
                r"Maximum concurrency for ([\d,]{1,15}) tokens per request: (\d[\d.]{0,12})x"
            ),
            lambda _tokens, requests: float(requests) < 1,
            "The cache holds {1} requests of the full length of {0} tokens: less than one.",
        ),
        Comparison(
            "slow-weights",
            re.compile(
                r"Model loading took \d[\d.]{0,12} Gi?B and (\d{1,9}(?:\.\d{1,9})?) seconds"
            ),
            lambda seconds: float(seconds) >= _SLOW_LOAD_SECONDS,
            "Loading the weights took {0} s.",
        ),
        Comparison(
            "slow-weights",
            re.compile(r"Loading (?:model )?weights took (\d{1,9}(?:\.\d{1,9})?) seconds"),
            lambda seconds: float(seconds) >= _SLOW_LOAD_SECONDS,
            "Reading the weights took {0} s.",
        ),
    ),
    "sglang-server-info": (
        Comparison(
            "little-left-activations-graphs",
            re.compile(r"available_gpu_mem=(\d{1,6}(?:\.\d{1,6})?) GB"),
            lambda room: float(room) < _SMALL_REST_GB,
            "Only {0} GB is left for activations and graphs.",
        ),
        Comparison(
            "little-left-activations-graphs",
            re.compile(
                r"(Memory pool end|Capture \w{3,4} graph begin)\..{0,60}?"
                r"\bavail mem=(-?\d{1,6}(?:\.\d{1,6})?) GB"
            ),
            lambda _stage, room: float(room) < _SMALL_REST_GB,
            "Only {1} GB is left behind the memory pool ({0}).",
        ),
        Comparison(
            "no-room-pool",
            re.compile(
                r"Load weight end\..{0,120}?\bavail mem=(-?\d{1,6}(?:\.\d{1,6})?) GB,"
                r" mem usage=(\d{1,6}(?:\.\d{1,6})?) GB"
            ),
            lambda room, _used: float(room) < _SMALL_CACHE_GIB,
            "The weights take {1} GB, and {0} GB is left for the pool.",
        ),
    ),
    "llama-offload": (
        Comparison(
            "no-layer-gpu",
            re.compile(r"\boffloaded 0/(\d{1,4}) layers to GPU"),
            lambda _layers: True,
            "None of the {0} layers is on the GPU.",
        ),
        Comparison(
            "no-layer-gpu",
            re.compile(r"^(\S{1,100})\s+[0-9a-f]{12}\s+[\d.]{1,9} [KMGT]?B\s+100% CPU\b"),
            lambda _model: True,
            "{0} runs on the CPU alone.",
        ),
        Comparison(
            "part-gpu",
            re.compile(r"\boffloaded (\d{1,4})/(\d{1,4}) layers to GPU"),
            lambda some, layers: 0 < int(some) < int(layers),
            "{0} of {1} layers are on the GPU, and the CPU computes the others.",
        ),
        Comparison(
            "part-gpu",
            re.compile(
                r"^(\S{1,100})\s+[0-9a-f]{12}\s+[\d.]{1,9} [KMGT]?B\s+(\d{1,3})%/\d{1,3}% CPU/GPU\b"
            ),
            lambda _model, _share: True,
            "{1} % of {0} lies in host memory, and the CPU computes that part.",
        ),
        Comparison(
            "all-on-gpu",
            re.compile(r"\boffloaded (\d{1,4})/(\d{1,4}) layers to GPU"),
            lambda some, layers: int(some) == int(layers) > 0,
            "All {1} layers are on the GPU.",
        ),
        Comparison(
            "all-on-gpu",
            re.compile(r"^(\S{1,100})\s+[0-9a-f]{12}\s+[\d.]{1,9} [KMGT]?B\s+100% GPU\b"),
            lambda _model: True,
            "{0} is on the GPU as a whole.",
        ),
    ),
    "chrony": (
        Comparison(
            "node-clock-off-s",
            re.compile(r"System time +: (\d{1,12}(?:\.\d{1,12})?) seconds (slow|fast)"),
            lambda seconds, _way: float(seconds) > _CLOCK_OFF_SECONDS,
            "The clock of this node is {0} s {1}.",
        ),
    ),
    "nvidia-smi-mig": (
        Comparison(
            "mode-change-waits-gpu",
            re.compile(r"^(\d{1,3}), (Enabled|Disabled), (Enabled|Disabled)\b"),
            lambda _gpu, current, pending: current != pending,
            "MIG of GPU {0} is {1} and becomes {2} at the next reset.",
        ),
    ),
    "nvidia-smi-pcie-link": (
        Comparison(
            "link-trained-fewer-lanes",
            re.compile(r"^(\d{1,3}), \d, \d, (\d{1,2}), (\d{1,2})\s*$"),
            lambda _gpu, width, most: int(width) < int(most),
            "The PCIe link of GPU {0} has {1} of {2} lanes.",
        ),
    ),
    "sysctl-net-ports": (
        Comparison(
            "ephemeral-ports",
            re.compile(r"ip_local_port_range = (\d{1,5})\s+(\d{1,5})"),
            lambda low, high: int(high) - int(low) < _FEW_PORTS,
            "There are few ephemeral ports: {0} to {1}.",
        ),
    ),
    "kubectl-describe-pod": (
        Comparison(
            "137-kill-139-segv",
            re.compile(r"Exit Code: +(\d{1,3})\b"),
            lambda code: int(code) != 0,
            "A container ended with exit code {0}.",
        ),
    ),
    "iostat": (
        Comparison(
            "steal-hypervisor-gives-cpu",
            re.compile(r"^\s+(?:\d{1,3}\.\d{1,2}\s+){4}(\d{1,3}\.\d{1,2})\s+\d{1,3}\.\d{1,2}\s*$"),
            lambda steal: float(steal) > _STEAL_PERCENT,
            "The hypervisor takes {0} % of the CPU.",
        ),
    ),
    "cgroup-memory": (
        Comparison(
            "near-limit",
            re.compile(r"^(?:\S{0,200}/)?memory\.(?:current|usage_in_bytes): ?(\d{1,20})\s*$"),
            lambda most, used: int(used) > _NEAR * int(most),
            "{1} of {0} bytes of the cgroup are in use.",
            given=re.compile(r"^(?:\S{0,200}/)?memory\.(?:max|limit_in_bytes): ?(\d{1,20})\s*$"),
        ),
        Comparison(
            "thread-limit",
            re.compile(r"^pids\.current: (\d{1,10})"),
            lambda most, used: int(used) > _NEAR * int(most),
            "{1} of {0} threads and processes of the cgroup are in use.",
            given=re.compile(r"^pids\.max: (\d{1,10})"),
        ),
    ),
    "dmesg-oom-kill": (
        Comparison(
            "whole-host",
            re.compile(
                r"oom-kill:constraint=CONSTRAINT_(?:NONE|CPUSET|MEMORY_POLICY)\b"
                r".*\btask=([^,]{1,60}),pid=(\d{1,10})"
            ),
            lambda _task, _pid: True,
            "The memory of the host was used up, not that of a cgroup; {0} (pid {1}) was killed.",
        ),
        Comparison(
            "workers-killed",
            re.compile(
                r"Killed process \d{1,10} \((pt_data_worker|ray::[^)]{1,60}|VLLM[^)]{1,60})\)"
            ),
            lambda _name: True,
            "A worker was killed: {0}.",
        ),
    ),
    "docker-inspect": (
        Comparison(
            "64-mb-default",
            re.compile(r"\bshm=67108864\b.*\bipc=(\w*)"),
            lambda ipc: ipc != "host",
            "The shared memory of the container has 64 MB, and its ipc is {0}.",
        ),
    ),
    "docker-nvidia-runtime": (
        Comparison(
            "not-registered",
            re.compile(r"^ *Runtimes: (.{1,300})$"),
            lambda names: "nvidia" not in names,
            "Docker knows these runtimes only: {0}.",
        ),
    ),
    "ds-report": (
        Comparison(
            "toolkit-cuda-major-torch",
            re.compile(r"nvcc version \.+ (\d{1,3})\."),
            lambda torch, toolkit: torch != toolkit,
            "torch is built for CUDA {0}, and nvcc is of CUDA {1}.",
            given=re.compile(r"torch version \.+ \S+\+cu(\d\d)\d"),
        ),
    ),
    "env-dump": (
        Comparison(
            "nccl-bootstrap-uses-interface",
            re.compile(
                r"^NCCL_SOCKET_IFNAME==?((?:lo|docker|virbr|br-|veth|cni|flannel)\S{0,40})$"
            ),
            lambda _interface: True,
            "NCCL is told to use {0}, which other hosts do not reach.",
        ),
    ),
    "nfs-health": (
        Comparison(
            "slow-server",
            re.compile(r"\(\d[\d.]{0,8}%\)\s+(\d{1,9}\.\d{1,6})\s+(\d{1,9}\.\d{1,6})"),
            lambda _answer, whole: float(whole) > _SLOW_NFS_MS,
            "An operation takes {1} ms, {0} ms of them at the server.",
        ),
    ),
    "nvidia-kernel-module": (
        Comparison(
            "loaded-module-installed-libraries",
            _LIBRARY,
            lambda loaded, library: loaded != library,
            "The loaded module is {0}, and the libraries are {1}.",
            given=_LOADED_MODULE,
        ),
        Comparison(
            "versions-agree",
            _LIBRARY,
            lambda loaded, library: loaded == library,
            "The loaded module and the libraries are both {0}.",
            given=_LOADED_MODULE,
        ),
    ),
    "nccl-debug-nvls": (
        Comparison(
            "gb200-gb300-racks-gpus",
            re.compile(
                r"MNNVL busId (\S{1,20}) fabric UUID \S{1,60} cliqueId \S{1,20} state (\d)\b"
            ),
            lambda _gpu, state: state != _FABRIC_COMPLETED,
            "GPU {0} has not joined the fabric: its state is {1}, not 3.",
        ),
    ),
    "rocm-smi": (
        Comparison(
            "busy-waiting",
            re.compile(
                r"^(\d{1,3}) .{1,60}?\s(\d{1,4}\.\d)W\s.{1,90}?\s(\d{1,4}\.\d)W"
                r"\s+\d{1,3}%\s+(\d{1,3})%"
            ),
            lambda _gpu, watt, limit, percent: (
                int(percent) >= _BUSY_PERCENT and float(watt) <= _SPIN_SHARE * float(limit)
            ),
            "GPU {0} is busy to {3} % at {1} of {2} W: it waits, nothing is computed.",
        ),
    ),
    "storage-bench": (
        Comparison(
            "slow",
            re.compile(r"copied, \S{1,20} s, (\d{1,9}(?:\.\d{1,6})?) ([kM])B/s$"),
            lambda rate, unit: unit == "k" or float(rate) < _SLOW_MB_PER_SECOND,
            "One stream writes or reads {0} {1}B/s.",
        ),
    ),
    "torch-collect-env": (
        Comparison(
            "driver-branch-older-cuda",
            re.compile(r"^Nvidia driver version: (\d{3})"),
            lambda cuda, driver: int(driver) < _FIRST_DRIVERS.get(cuda, 0),
            "PyTorch is built for CUDA {0}, and the driver is {1}.",
            given=re.compile(r"^CUDA used to build PyTorch: (\d{2})\."),
        ),
        Comparison(
            "nvcc-path-cuda-major",
            re.compile(r"^CUDA runtime version: (\d{1,2})\.\d"),
            lambda built, found: built != found,
            "PyTorch is built for CUDA {0}, and the toolkit on PATH is of CUDA {1}.",
            given=re.compile(r"^CUDA used to build PyTorch: (\d{2})\."),
        ),
    ),
    "fi-info-efa": (
        Comparison(
            "plugin-runs-tcp",
            re.compile(r"NET/OFI Selected [Pp]rovider is (tcp|sockets)\b"),
            lambda _provider: True,
            "The network plugin runs over {0}, not over RDMA.",
        ),
    ),
    "torch-profiler": (
        Comparison(
            "gpu-at-work",
            re.compile(r"^Self CUDA time total: (\d{1,9}(?:\.\d{1,6})?)(us|ms|s)\s*$"),
            lambda host, unit, gpu, other: (
                float(gpu) * _PER_SECOND[other] >= float(host) * _PER_SECOND[unit]
            ),
            "The kernels take {2}{3}, the host {0}{1}: the GPU does not wait for the host.",
            given=re.compile(r"^Self CPU time total: (\d{1,9}(?:\.\d{1,6})?)(us|ms|s)\s*$"),
        ),
    ),
    "triton-stats": (
        Comparison(
            "batches",
            re.compile(
                r'^nv_inference_exec_count\{(?:.{0,200},)?model="([^"]{1,100})"[^}]*\} (\d{1,18})'
            ),
            lambda model, many, other, runs: model == other and 0 < 2 * int(runs) <= int(many),
            "{0}: {1} inferences in {3} executions.",
            given=re.compile(
                r'^nv_inference_count\{(?:.{0,200},)?model="([^"]{1,100})"[^}]*\} (\d{1,18})'
            ),
        ),
    ),
}
"""By the id of the check."""


def read_values(output: Output, comparisons: tuple[Comparison, ...]) -> Iterator[Found]:
    """Each finding at the first line that shows it."""
    for one in comparisons:
        given = _given(output, one)
        if given is None:
            continue
        for row, line in enumerate(output.lines):
            match = one.expression.search(line)
            if match and one.holds(*given, *match.groups()):
                yield Found(one.finding, one.text.format(*given, *match.groups()), row)
                break


def _given(output: Output, one: Comparison) -> tuple[str, ...] | None:
    if one.given is None:
        return ()
    found = filter(None, map(one.given.search, output.lines))
    return next((match.groups() for match in found), None)


READERS: dict[str, Reader] = {
    check: partial(read_values, comparisons=comparisons)
    for check, comparisons in COMPARISONS.items()
}
"""By the id of the check."""
