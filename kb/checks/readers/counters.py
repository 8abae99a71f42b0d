"""Counters that only rise: what they gained between two readings, or how far they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from kb.checks.model import Found, Output, Reader


class Counter(msgspec.Struct, frozen=True):
    """A finding of a check that a counter shows."""

    finding: str
    expression: re.Pattern[str]
    """Its last group is the value; the others name the counter within its device."""
    much: int
    """From this value on one reading is enough."""
    gain: int = 1
    """Between two readings: less is ordinary."""
    unit: str = ""


_DEVICE = re.compile(
    r"^(?:GPU \d{1,3}(?=:)|GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]{7,10}|link \S{1,80}"
    r"|# Port (?:extended )?counters: .{1,60}?(?= \(|$)|NIC statistics for \S{1,40}"
    r"|Settings for \S{1,40}(?=:)|/sys/class/infiniband/\S{1,200}/)"
)
"""Names the device whose counters follow, on its line or below."""

COUNTERS: dict[str, tuple[Counter, ...]] = {
    "cpu-pressure": (Counter("throttled", re.compile(r"^(nr_throttled) (\d{1,19})$"), 1_000),),
    "ethtool-pause": (
        Counter(
            "switch-pauses-host",
            re.compile(r"\b(rx_prio\d_pause): (\d{1,19})"),
            10_000_000,
            10_000,
        ),
        Counter(
            "host-tells-network-stop",
            re.compile(r"\b(tx_prio\d_pause): (\d{1,19})"),
            1_000_000,
            10_000,
        ),
    ),
    "nvidia-smi-nvlink-e": (
        Counter(
            "packets-resent",
            re.compile(r"\b(Link \d{1,2}: (?:Replay|CRC) Errors): (\d{1,19})"),
            1_000,
        ),
    ),
    "nvidia-smi-q-performance": (
        Counter(
            "accumulated-time-state-since",
            re.compile(
                r"^\s+((?:SW|HW) (?:Thermal Slowdown|Power Brake Slowdown))\s+: (\d{1,19}) us"
            ),
            10_000_000,
            unit=" us",
        ),
    ),
    "perfquery": (
        Counter(
            "bit-errors-wire",
            re.compile(r"(?:^|/)(SymbolErrorCounter|symbol_error)[:. ]{1,40}(\d{1,19})\b"),
            100,
        ),
        Counter(
            "ticks-spent-waiting-credits",
            re.compile(r"(?:^|/)(PortXmitWait|port_xmit_wait)[:. ]{1,40}(\d{1,19})\b"),
            10_000_000_000,
            100_000_000,
        ),
    ),
    "rdma-statistic": (
        Counter(
            "packets-lost-reordered-resent",
            re.compile(r"\b(packet_seq_err|out_of_sequence|implied_nak_seq_err)[ :](\d{1,19})\b"),
            100,
        ),
    ),
    "vllm-metrics": (
        Counter(
            "requests-thrown-cache-computed",
            re.compile(r"^(vllm:num_preemptions_total(?:\{.{0,300}?\})?) (\d{1,15})(?:\.0)?\s*$"),
            100,
        ),
    ),
}
"""By the id of the check. The bars for one reading are chosen: a healthy device that has run for
weeks stays below."""


def read_counters(output: Output, counters: tuple[Counter, ...]) -> Iterator[Found]:
    """Each finding at the counter that gained most, or stands highest."""
    for one in counters:
        readings = [
            (values[-1][0] - values[0][0], values[-1][0], name, values)
            for name, values in _readings(output, one).items()
        ]
        gain, last, name, values = max(readings, default=(0, 0, "", []))
        if gain >= one.gain:
            text = f"{name} rose from {values[0][0]} to {last}{one.unit}."
        elif len(values) == 1 and last >= one.much:
            text = f"{name} stands at {last}{one.unit}; a second reading tells whether it rises."
        else:
            continue
        yield Found(one.finding, text, values[-1][1])


def _readings(output: Output, one: Counter) -> dict[str, list[tuple[int, int]]]:
    """Value and row, by the counter with its device."""
    readings: dict[str, list[tuple[int, int]]] = {}
    device = ""
    for row, line in enumerate(output.lines):
        if named := _DEVICE.search(line):
            device = named[0]
        for match in one.expression.finditer(line):
            *names, value = match.groups()
            name = " ".join(filter(None, (device, *names)))
            readings.setdefault(name, []).append((int(value), row))
    return readings


READERS: dict[str, Reader] = {
    check: partial(read_counters, counters=counters) for check, counters in COUNTERS.items()
}
"""By the id of the check."""
