"""Tables of pods, nodes and containers, of `kubectl get` and `top`, and `docker ps` and `stats`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader
from kb.checks.readers.names import named

_POD = re.compile(
    r"^(?:[a-z0-9][\w.-]{0,80}\s+)?([a-z0-9][\w.-]{0,252})\s+(\d{1,3})/(\d{1,3})\s+([A-Z][\w:./-]{2,60})"
    r"\s+(\d{1,6})(?: \(\S{1,12} ago\))?\s+((?:\d{1,5}[smhdy]){1,2})(?:\s|$)"
)
_CRASHES = re.compile(r"(?:Init:)?(?:CrashLoopBackOff|Error|StartError|ContainerCannotRun)$")
_WAITS = re.compile(r"Pending|ContainerCreating|PodInitializing|SchedulingGated|Init:\d")
_AGE = re.compile(r"(\d{1,5})([smhdy])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "y": 31_536_000}
_LONG_SECONDS = 600
"""An image is there, and most servers are ready, before that."""
_MANY_RESTARTS = 5

_TOP_HEADER = re.compile(
    r"^NAME\s+CPU\(cores\)\s+CPU(?:\(%\)|%)\s+MEMORY\(bytes\)\s+MEMORY(?:\(%\)|%)"
)
_TOP_ROW = re.compile(r"^(\S{1,253})\s+\S{1,20}\s+(\d{1,4})%\s+\S{1,20}\s+(\d{1,3})%\s*$")
_NEARLY_FULL = 90
"""Per cent of the memory that pods may use: the kubelet begins to evict."""

_ENDED = re.compile(
    r"\bExited \((\d{1,3})\) (?:Less than |About )?(?:an?|\d{1,3}) (?:second|minute|hour|day)s? ago"
    r"\s+(?:\S.*\s)?(\S{1,200})\s*$"
)
_STOPPED = {0, 130, 137, 143}
"""Nothing, or a signal that somebody sent; 137 is a finding of its own."""
_USAGE = re.compile(
    r"^[0-9a-f]{12,64}\s+(\S{1,200})\s+[\d.]{1,10}%\s+([\d.]{1,10}[kKMGT]?i?B)"
    r" / ([\d.]{1,10}[kKMGT]?i?B)\s+(\d{1,3}(?:\.\d{1,3})?)%"
)


def read_pods(output: Output) -> Iterator[Found]:
    """`kubectl get pods`: pods that end again and again, wait, or do not become ready."""
    ends: list[str] = []
    waits: list[str] = []
    loads: list[str] = []
    rows: dict[str, int] = {}
    for row, line in enumerate(output.lines):
        if (pod := _POD.match(line)) is None:
            continue
        name, ready, size, state, restarts, age = pod.groups()
        is_old = _seconds(age) >= _LONG_SECONDS
        if _CRASHES.match(state) or int(restarts) >= _MANY_RESTARTS:
            ends.append(f"{name} ({state}, restarts: {restarts})")
            rows.setdefault("container-ends-again", row)
        elif _WAITS.match(state) and (is_old or state == "Pending"):
            waits.append(f"{name} ({state}, {age})")
            rows.setdefault("pod-waits", row)
        elif state == "Running" and int(ready) < int(size) and is_old:
            loads.append(f"{name} ({ready} of {size}, {age})")
            rows.setdefault("pod-not-ready", row)
    for finding, said, pods in (
        ("container-ends-again", "Containers end: {}.", ends),
        ("pod-waits", "Pods do not start: {}.", waits),
        ("pod-not-ready", "Pods run and are not ready: {}.", loads),
    ):
        if pods:
            yield Found(finding, said.format(named(pods)), rows[finding])


def _seconds(age: str) -> int:
    """Of `5d3h`."""
    return sum(int(number) * _SECONDS[unit] for number, unit in _AGE.findall(age))


def read_top_nodes(output: Output) -> Iterator[Found]:
    """`kubectl top nodes`: a node whose memory is nearly used."""
    is_table = False
    for row, line in enumerate(output.lines):
        if _TOP_HEADER.match(line):
            is_table = True
        elif is_table and (node := _TOP_ROW.match(line)) and int(node[3]) >= _NEARLY_FULL:
            text = f"{node[1]} uses {node[3]} % of its memory, and {node[2]} % of its processors."
            yield Found("memory-nearly-used", text, row)
            return


def read_containers(output: Output) -> Iterator[Found]:
    """`docker ps -a` and `docker stats`: ends, and memory near its limit."""
    for row, line in enumerate(output.lines):
        ended = _ENDED.search(line)
        if ended and int(ended[1]) not in _STOPPED:
            yield Found("exit-code", f"{ended[2]} ended with exit code {ended[1]}.", row)
        elif ended and ended[1] == "137":
            yield Found("killed", f"{ended[2]} was killed (exit code 137).", row)
        elif (usage := _USAGE.match(line)) and float(usage[4]) >= _NEARLY_FULL:
            text = f"{usage[1]} uses {usage[2]} of {usage[3]}."
            yield Found("memory-near-limit", text, row)


READERS: dict[str, Reader] = {
    "docker-inspect": read_containers,
    "kubectl-describe-node": read_top_nodes,
    "kubectl-describe-pod": read_pods,
}
"""By the id of the check."""
