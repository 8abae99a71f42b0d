"""Outputs whose lines mean what the heading above them says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kb.checks.model import Found, Output, Reader, Unread
from kb.checks.readers.names import named

_HEADING = re.compile(r"^(\w[\w ]{0,40}):\s*$")
_GPUS = re.compile(r"^\s*(?:nvidia|amd)\.com/gpu:? +(\S{1,20})\s*$")
_GREPPED = ("Capacity", "Allocatable")
"""The headings of the first two lines with GPUs, where `grep` has left out all headings."""
_TERMINATED = re.compile(r"\bexitcode\s+: -15 \(pid: (\d{1,10})\)")
_FAILED_RANK = re.compile(r"\brank\s+: (\d{1,6}) \(local_rank")
_XID = re.compile(
    r"\[\s*(\d{1,9}\.\d{1,6}|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\].*"
    r"NVRM: Xid \(PCI:([0-9a-fA-F:.]{7,16})\): (\d{1,4})"
)
_GPU_OF_LINK = re.compile(r"^GPU (\d{1,3}):")
_LINK = re.compile(r"^\s+Link (\d{1,2}): (\S+)(?: GB/s)?\s*$")
_NVLINK_SPEEDS = {"20", "25", "25.781", "26.562", "50", "53.125"}
"""GB/s in one direction, of V100, A100, H100 and B200."""


def read_node(output: Output) -> Iterator[Found | Unread]:
    """`kubectl describe node`: the GPUs that a node has and those that it offers."""
    heading = ""
    seen: dict[str, tuple[int, int]] = {}
    rows: dict[str, int] = {}
    for row, line in enumerate(output.lines):
        if found := _HEADING.match(line):
            heading = found[1]
            rows.setdefault(heading, row)
        elif gpus := _GPUS.match(line):
            if gpus[1].isdigit():
                place = heading or _GREPPED[min(len(seen), 1)]
                seen.setdefault(place, (int(gpus[1]), row))
            else:
                yield Unread(f"the GPUs `{gpus[1]}` under {heading}", row)
    capacity, offered = seen.get("Capacity"), seen.get("Allocatable")
    if offered and (offered[0] < (capacity or offered)[0] or offered[0] == 0):
        most = f" of {capacity[0]}" if capacity else ""
        text = f"{offered[0]}{most} GPUs of the node can be given to pods."
        yield Found("unhealthy-devices-taken-device", text, offered[1])
    elif "Capacity" in rows and "Allocatable" in rows and not capacity and not offered:
        text = "The node has no nvidia.com/gpu: no device plugin speaks for it."
        yield Found("device-plugin-not-registered", text, rows["Capacity"])


def read_torchrun_summary(output: Output) -> Iterator[Found]:
    """Ranks that torchrun itself ended, which stand above the root cause."""
    ended: list[tuple[str, int]] = []
    rank, heading = "?", ""
    for row, line in enumerate(output.lines):
        if "Root Cause (first observed failure)" in line:
            heading = "root"
        elif line.strip().endswith("Failures:"):
            heading = "failures"
        elif found := _FAILED_RANK.search(line):
            rank = found[1]
        elif _TERMINATED.search(line) and heading == "failures":
            ended.append((rank, row))
    if ended:
        who = named([one for one, _row in ended])
        text = f"torchrun ended rank {who} after the first failure."
        yield Found("torchrun-itself-ended-rank", text, ended[0][1])


def read_xids(output: Output) -> Iterator[Found]:
    """Xids of several GPUs at one time."""
    at: dict[str, dict[str, int]] = {}
    for row, line in enumerate(output.lines):
        if found := _XID.search(line):
            at.setdefault(found[1].split(".")[0], {}).setdefault(found[2], row)
    for gpus in at.values():
        if len(gpus) > 1:
            text = f"{len(gpus)} GPUs report an Xid within a second: {named(list(gpus))}."
            yield Found("common-cause", text, max(gpus.values()))
            return


def read_nvlinks(output: Output) -> Iterator[Found | Unread]:
    """`nvidia-smi nvlink -s`: speeds of the links, one against the others."""
    gpu = "?"
    speeds: list[tuple[str, str, int]] = []
    for row, line in enumerate(output.lines):
        if named_gpu := _GPU_OF_LINK.match(line):
            gpu = named_gpu[1]
        elif (link := _LINK.match(line)) and link[2] != "<inactive>":
            if link[2].replace(".", "", 1).isdigit():
                speeds.append((link[2], f"link {link[1]} of GPU {gpu}", row))
            else:
                yield Unread(f"the speed `{link[2]}` of link {link[1]} of GPU {gpu}", row)
    counts = Counter(speed for speed, _link, _row in speeds)
    common = counts.most_common(1)[0][0] if counts else ""
    for speed, where, row in speeds:
        if speed != common or speed not in _NVLINK_SPEEDS:
            text = f"{where} runs at {speed} GB/s"
            text += f", the others at {common}." if speed != common else "."
            yield Found("link-runs-speed", text[:1].upper() + text[1:], row)
            return


READERS: dict[str, Reader] = {
    "dmesg-xid": read_xids,
    "kubectl-describe-node": read_node,
    "nvidia-smi-nvlink-s": read_nvlinks,
    "torchrun-error-summary": read_torchrun_summary,
}
"""By the id of the check."""
