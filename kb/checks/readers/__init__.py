"""The readers of the checks whose findings need more than a pattern, by the id of the check."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kb.checks.model import Reader
from kb.checks.readers.counters import COUNTERS, read_counters
from kb.checks.readers.differences import DIFFERENCES, read_differences
from kb.checks.readers.gpu_csv import read_compute_apps, read_query_gpu
from kb.checks.readers.host import (
    read_affinity,
    read_kernel_module,
    read_listeners,
    read_peermem,
    read_top,
)
from kb.checks.readers.matrices import read_bandwidths, read_recorded_table
from kb.checks.readers.memory import read_free, read_shm
from kb.checks.readers.nccl_lines import read_channels, read_init, read_network
from kb.checks.readers.nccl_ras import read_ras
from kb.checks.readers.nccl_tests import read_nccl_tests
from kb.checks.readers.nvidia_smi import read_nvidia_smi
from kb.checks.readers.pip_list import read_pip_list
from kb.checks.readers.ports import read_ethtool, read_ibstat, read_ibv_devinfo, read_ping
from kb.checks.readers.sections import read_node, read_nvlinks, read_torchrun_summary, read_xids
from kb.checks.readers.stacks import read_stacks
from kb.checks.readers.timing import read_compute_times, read_step_times
from kb.checks.readers.topology import read_topology
from kb.checks.readers.torch_oom import read_torch_oom
from kb.checks.readers.values import COMPARISONS, read_values
from kb.checks.readers.watchdog import read_watchdog

_READERS: dict[str, Reader] = {
    "cpu-affinity": read_affinity,
    "df-shm": read_shm,
    "dmesg-xid": read_xids,
    "ethtool-link": read_ethtool,
    "flight-recorder-dump": read_recorded_table,
    "free-h": read_free,
    "ibstat": read_ibstat,
    "ibv-devinfo": read_ibv_devinfo,
    "kubectl-describe-node": read_node,
    "lsmod-peermem": read_peermem,
    "mtu-ping": read_ping,
    "nccl-debug-channels": read_channels,
    "nccl-debug-init-complete": read_init,
    "nccl-debug-net": read_network,
    "nccl-ras": read_ras,
    "nccl-tests": read_nccl_tests,
    "nccl-watchdog-lines": read_watchdog,
    "nvbandwidth": read_bandwidths,
    "nvidia-kernel-module": read_kernel_module,
    "nvidia-smi": read_nvidia_smi,
    "nvidia-smi-compute-apps": read_compute_apps,
    "nvidia-smi-nvlink-s": read_nvlinks,
    "nvidia-smi-query-gpu": read_query_gpu,
    "nvidia-smi-topo": read_topology,
    "per-rank-timing": read_compute_times,
    "pip-list": read_pip_list,
    "py-spy-all-ranks": read_stacks,
    "ss-listen": read_listeners,
    "step-time-breakdown": read_step_times,
    "top-threads": read_top,
    "torch-oom-message": read_torch_oom,
    "torchrun-error-summary": read_torchrun_summary,
}
"""Those that know one kind of output."""


def _all_readers() -> Iterator[tuple[str, Reader]]:
    yield from _READERS.items()
    for check, comparisons in COMPARISONS.items():
        yield check, partial(read_values, comparisons=comparisons)
    for check, counters in COUNTERS.items():
        yield check, partial(read_counters, counters=counters)
    for check, differences in DIFFERENCES.items():
        yield check, partial(read_differences, differences=differences)


def readers_of(check: str) -> list[Reader]:
    """The readers of a check; none where its patterns say all."""
    return _BY_CHECK.get(check, [])


_BY_CHECK: dict[str, list[Reader]] = {}
for _check, _reader in _all_readers():
    _BY_CHECK.setdefault(_check, []).append(_reader)
