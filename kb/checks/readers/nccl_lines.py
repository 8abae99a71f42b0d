"""What NCCL says of its set-up at `NCCL_DEBUG=INFO`, rank by rank."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kb.checks.model import Found, Output, Reader
from kb.checks.readers.names import capital, named, ranks

_INIT = re.compile(
    r"\bcomm (0x\w{1,16}) rank (\d{1,6}) nranks (\d{1,6}) cudaDev \d{1,3} .*busId (\w{1,16})"
    r" (?:commId (0x\w{1,16}) )?- Init (START|COMPLETE)"
)
_HOST = re.compile(r"(\S{1,100}?):(\d{1,10}):\d{1,10} \[\S{1,4}\] NCCL INFO")
_TIMINGS = re.compile(r"rank (\d{1,6}) nranks \d{1,6} total (\d{1,6}\.\d{1,3}) \((.{1,300}?)\)")
_PART = re.compile(r"(\w+) (\d{1,6}\.\d{1,3})")
_DEVICES = re.compile(r"NET/IB : Using ((?:\[\d{1,3}\]\S{1,60} ?)+)")
_DEVICE = re.compile(r"\[\d{1,3}\](\S+?)/(IB|RoCE)\b")
_CHANNEL = re.compile(r"Channel \d{1,3}(?:/\d{1,3})? ?: .* via ")
_CONNECTED = re.compile(r"Connected all (?:rings|trees)")
_COUNT = re.compile(r"NCCL INFO (\d{1,3}) coll channels")
_NVLINK = re.compile(r"\+ NVL\[|via NVLS|[1-9]\d* nvls channels")

_SLOW_START_SECONDS = 10.0
_SLOW_SHARE = 0.5
"""Of the whole start: from here on one part is what it goes into."""
_FEW_CHANNELS = 2
_BONDED = re.compile(r"bond|storage|mgmt", re.IGNORECASE)


class _Start(msgspec.Struct, frozen=True):
    """A rank that begins to initialise a communicator."""

    process: str
    handle: str
    """Of the communicator in this process."""
    rank: int
    size: int
    row: int


def read_init(output: Output) -> Iterator[Found]:
    """Ranks that began to initialise a communicator and did not finish, or share a GPU."""
    started: dict[str, list[_Start]] = {}
    done: set[tuple[str, str]] = set()
    gpus: dict[tuple[str, str, str], int] = {}
    shared: list[Found] = []
    for row, line in enumerate(output.lines):
        yield from _timings(line, row)
        match = _INIT.search(line)
        if match is None:
            continue
        handle, rank, size, bus, comm, what = match.groups()
        host = _HOST.search(line)
        process = f"{host[1]}:{host[2]}" if host else rank
        if what == "COMPLETE":
            done.add((process, handle))
            continue
        started.setdefault(comm or size, []).append(
            _Start(process, handle, int(rank), int(size), row)
        )
        if host and (first := gpus.setdefault((comm or size, host[1], bus), int(rank))) != int(
            rank
        ):
            text = f"Ranks {first} and {rank} of {host[1]} use the same GPU, {bus}."
            shared.append(Found("two-ranks-gpu", text, row))
    yield from shared[:1]
    if not output.is_cut:
        yield from _stuck(started, done)


def _stuck(started: dict[str, list[_Start]], done: set[tuple[str, str]]) -> Iterator[Found]:
    for starts in started.values():
        stuck = [one for one in starts if (one.process, one.handle) not in done]
        if not stuck:
            continue
        begun = {one.rank for one in starts}
        size = min(stuck[0].size, 100_000)
        absent = [rank for rank in range(size) if rank not in begun]
        who = capital(ranks(sorted({one.rank for one in stuck})))
        text = f"{who} began to initialise NCCL and did not finish."
        if absent and len(begun) > 1:
            text += f" {capital(ranks(absent))} of {size} did not even begin."
        yield Found("init-stuck", text, stuck[0].row)
        return


def _timings(line: str, row: int) -> Iterator[Found]:
    if "Init timings" not in line or not (match := _TIMINGS.search(line)):
        return
    rank, total, parts = match.groups()
    name, seconds = max(
        ((part[0], float(part[1])) for part in _PART.findall(parts)), key=lambda part: part[1]
    )
    if float(total) >= _SLOW_START_SECONDS and seconds >= _SLOW_SHARE * float(total):
        text = (
            f"{seconds:.0f} of the {float(total):.0f} s that NCCL took to start went into {name}"
            f" (rank {rank})."
        )
        yield Found("time-start-goes", text, row)


def read_network(output: Output) -> Iterator[Found]:
    """The RDMA devices that NCCL takes, one host against the others."""
    counts: dict[str, tuple[int, int]] = {}
    for row, line in enumerate(output.lines):
        match = _DEVICES.search(line)
        if match is None:
            continue
        devices = _DEVICE.findall(match[1])
        kinds = sorted({kind for _name, kind in devices})
        other = [name for name, _kind in devices if _BONDED.search(name)]
        host = _HOST.search(line)
        counts.setdefault(host[1] if host else "", (len(devices), row))
        if len(kinds) > 1 or (other and len(other) < len(devices)):
            what = " and ".join(kinds) if len(kinds) > 1 else ", ".join(other)
            text = f"NCCL takes devices of different kinds together, among them {what}."
            yield Found("storage-management-nics-taken", text, row)
            return
    few, many = min(counts.items(), key=_count, default=None), max(counts.values(), default=(0, 0))
    if few and few[1][0] < many[0]:
        text = f"{few[0]} uses {few[1][0]} RDMA devices, other hosts use {many[0]}."
        yield Found("storage-management-nics-taken", text, few[1][1])


def _count(pair: tuple[str, tuple[int, int]]) -> int:
    return pair[1][0]


def read_channels(output: Output) -> Iterator[Found]:
    """Ranks whose channels were not connected, and how many channels there are."""
    begun: dict[str, int] = {}
    connected: set[str] = set()
    nvlink = any(map(_NVLINK.search, output.lines))
    few = None
    for row, line in enumerate(output.lines):
        host = _HOST.search(line)
        process = f"{host[1]}:{host[2]}" if host else ""
        if _CHANNEL.search(line):
            begun.setdefault(process, row)
        if _CONNECTED.search(line):
            connected.add(process)
        count = _COUNT.search(line)
        if count and 0 < int(count[1]) <= _FEW_CHANNELS and nvlink:
            few = few or Found(
                "channels-nccl-found-slow", f"NCCL uses {count[1]} channels over NVLink.", row
            )
    if few:
        yield few
    waiting = [process for process in begun if process not in connected]
    if waiting and connected and not output.is_cut:
        text = f"{named(waiting)} did not connect all channels, and others did."
        yield Found("transport-set-not-finish", text, begun[waiting[0]])


READERS: dict[str, Reader] = {
    "nccl-debug-channels": read_channels,
    "nccl-debug-init-complete": read_init,
    "nccl-debug-net": read_network,
}
"""By the id of the check."""
