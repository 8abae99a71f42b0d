"""The readers of the checks whose findings need more than a pattern, by the id of the check.

Only the modules of the outputs that are there are loaded: all of them would take a tenth of
the time of a cold answer.
"""

from __future__ import annotations

from importlib import import_module

from kb.checks.model import Reader

MODULES: dict[str, tuple[str, ...]] = {
    "cgroup-memory": ("values", "memory"),
    "chrony": ("values", "told"),
    "cpu-affinity": ("host",),
    "cpu-pressure": ("counters", "host"),
    "data-fingerprint": ("differences",),
    "df-disk-inodes": ("file_systems", "told"),
    "df-shm": ("memory",),
    "dev-nvidia-nodes": ("host",),
    "dmesg-oom-kill": ("values",),
    "dmesg-xid": ("sections",),
    "docker-inspect": ("values", "containers"),
    "docker-nvidia-runtime": ("values",),
    "ds-report": ("values",),
    "env-dump": (
        "values",
        "differences",
    ),
    "ethtool-link": ("ports", "told"),
    "ethtool-pause": ("counters",),
    "fi-info-efa": ("values",),
    "findmnt-quota": ("file_systems",),
    "flight-recorder-dump": ("matrices",),
    "free-h": ("memory", "told"),
    "ib-write-bw": ("rdma_bandwidth",),
    "ibstat": ("ports", "told"),
    "ibv-devinfo": ("ports", "differences"),
    "iostat": ("values",),
    "ip-addr": ("differences",),
    "kubectl-describe-node": ("sections", "containers", "told"),
    "kubectl-describe-pod": ("values", "containers"),
    "llama-offload": ("values",),
    "lsmod-peermem": ("host",),
    "mlnx-qos": ("differences",),
    "mtu-ping": ("ports",),
    "nccl-debug-channels": ("nccl_lines",),
    "nccl-debug-init-complete": ("nccl_lines",),
    "nccl-debug-net": ("nccl_lines",),
    "nccl-debug-nvls": ("values",),
    "nccl-debug-version": ("differences",),
    "nccl-ras": ("nccl_ras",),
    "nccl-tests": ("nccl_tests",),
    "nccl-watchdog-lines": ("watchdog",),
    "nfs-health": ("values",),
    "npu-smi": ("differences",),
    "nvbandwidth": ("matrices",),
    "nvidia-kernel-module": (
        "host",
        "values",
    ),
    "nvidia-smi": ("nvidia_smi",),
    "nvidia-smi-compute-apps": ("gpu_csv",),
    "nvidia-smi-mig": ("values",),
    "nvidia-smi-nvlink-e": ("counters",),
    "nvidia-smi-nvlink-s": ("sections",),
    "nvidia-smi-pcie-link": ("values", "told"),
    "nvidia-smi-q-performance": ("counters",),
    "nvidia-smi-query-gpu": ("gpu_csv", "told"),
    "nvidia-smi-topo": ("topology",),
    "param-checksum": ("differences",),
    "per-rank-timing": ("timing",),
    "perfquery": ("counters",),
    "pip-list": ("pip_list",),
    "process-count": ("differences",),
    "py-spy-all-ranks": ("stacks",),
    "rdma-statistic": ("counters",),
    "rocm-smi": ("values",),
    "sglang-server-info": ("values",),
    "show-gids": ("told",),
    "slurm-gpu-binding": ("host",),
    "ss-listen": ("host",),
    "step-time-breakdown": ("timing",),
    "storage-bench": ("values",),
    "sysctl-net-ports": ("values",),
    "systemctl-status": ("units", "told"),
    "top-threads": ("host",),
    "torch-collect-env": (
        "values",
        "differences",
    ),
    "torch-cuda-check": ("differences",),
    "torch-oom-message": ("torch_oom",),
    "torch-profiler": ("values",),
    "torchrun-error-summary": ("sections",),
    "triton-config": ("triton",),
    "triton-stats": ("triton", "values"),
    "vllm-metrics": ("counters",),
    "vllm-startup-log": ("values",),
}
"""The modules whose `READERS` read the output of a check."""


def readers_of(check: str) -> list[Reader]:
    """The readers of a check; none where its patterns say all."""
    modules = (import_module(f"{__name__}.{name}") for name in MODULES.get(check, ()))
    return [module.READERS[check] for module in modules]
