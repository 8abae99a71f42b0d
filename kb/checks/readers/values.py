"""Findings that one line decides, by a comparison of the values in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from kb.checks.model import Found, Output

_SMALL_CACHE_GIB = 2.0
_SMALL_REST_GB = 1.5
"""Room below which a server runs out of memory under load."""
_SLOW_LOAD_SECONDS = 180.0
_CLOCK_OFF_SECONDS = 1.0
_FEW_PORTS = 5_000
_STEAL_PERCENT = 5.0


class Comparison(msgspec.Struct, frozen=True):
    """A finding of a check, and when a line shows it."""

    finding: str
    expression: re.Pattern[str]
    """Every group is a value; all of them are given to `holds` and to the text."""
    holds: Callable[..., bool]
    text: str
    """With `{0}`, `{1}` for the values."""


COMPARISONS: dict[str, tuple[Comparison, ...]] = {
    "vllm-startup-log": (
        Comparison(
            "no-room-cache-weights",
            re.compile(r"Available KV cache memory: (-?\d{1,6}(?:\.\d{1,6})?) GiB"),
            lambda room: float(room) < _SMALL_CACHE_GIB,
            "Only {0} GiB is left for the KV cache after the weights.",
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
            re.compile(r"Model loading took \d[\d.]{0,12} GiB and (\d{1,9}(?:\.\d{1,9})?) seconds"),
            lambda seconds: float(seconds) >= _SLOW_LOAD_SECONDS,
            "Loading the weights took {0} s.",
        ),
    ),
    "sglang-server-info": (
        Comparison(
            "little-left-activations-graphs",
            re.compile(r"available_gpu_mem=(\d{1,6}(?:\.\d{1,6})?) GB"),
            lambda room: float(room) < _SMALL_REST_GB,
            "Only {0} GB is left for activations and graphs.",
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
    "fi-info-efa": (
        Comparison(
            "plugin-runs-tcp",
            re.compile(r"NET/OFI Selected [Pp]rovider is (tcp|sockets)\b"),
            lambda _provider: True,
            "The network plugin runs over {0}, not over RDMA.",
        ),
    ),
}
"""By the id of the check."""


def read_values(output: Output, comparisons: tuple[Comparison, ...]) -> Iterator[Found]:
    """Each finding at the first line that shows it."""
    for one in comparisons:
        for row, line in enumerate(output.lines):
            match = one.expression.search(line)
            if match and one.holds(*match.groups()):
                yield Found(one.finding, one.text.format(*match.groups()), row)
                break
