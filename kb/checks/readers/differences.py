"""Values that must agree between hosts, ranks or devices, or that must not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from enum import Enum, auto
from functools import partial

import msgspec

from kb.checks.model import Found, Output, Reader
from kb.checks.readers.names import capital, named


class Shows(Enum):
    """What a finding says of the values that are compared."""

    SOME_DIFFER = auto()
    TWO_ALIKE = auto()
    ALL_ALIKE = auto()


class Difference(msgspec.Struct, frozen=True):
    """A finding of a check that the same value of several shows."""

    finding: str
    expression: re.Pattern[str]
    """With the groups `value`, `who`, and `of`: the values of one `of` are compared. Without `who`
    each line is another one."""
    what: str
    """Names the value in the sentence."""
    shows: Shows = Shows.SOME_DIFFER


_PROCESSES = re.compile(r"(?P<who>\S{1,100}) training processes: (?P<value>\d{1,6})$")

DIFFERENCES: dict[str, tuple[Difference, ...]] = {
    "data-fingerprint": (
        Difference(
            "same-on-all-ranks",
            re.compile(
                r"^data-fingerprint (?P<who>rank \d{1,6}) (?P<of>epoch \d{1,6}): (?P<value>\[.*\])$"
            ),
            "the samples",
            shows=Shows.TWO_ALIKE,
        ),
        Difference(
            "same-each-epoch",
            re.compile(
                r"^data-fingerprint (?P<of>rank \d{1,6}) (?P<who>epoch \d{1,6}): (?P<value>\[.*\])$"
            ),
            "the samples",
            shows=Shows.TWO_ALIKE,
        ),
    ),
    "env-dump": (
        Difference(
            "nccl-settings-must-agree",
            re.compile(
                r"(?P<of>\b(?:NCCL_[A-Z0-9_]{1,60}|UCX_[A-Z0-9_]{1,60}|LD_LIBRARY_PATH))=(?P<value>\S*)"
            ),
            "the value",
        ),
    ),
    "ibv-devinfo": (
        Difference(
            "ofed-differs",
            re.compile(
                r"^(?:(?P<who>\S{1,100}): )?"
                r"(?P<value>(?:MLNX_OFED_LINUX|OFED-internal)-\d[\w.-]{1,40}?):?\s*$"
            ),
            "the release of OFED",
        ),
    ),
    "ip-addr": (
        Difference(
            "unequal-mtu",
            re.compile(
                r"^\d{1,4}: (?P<of>[^:@\s]{1,40})(?:@\S{1,40})?: <[^>]*> mtu (?P<value>\d{1,6})"
            ),
            "the MTU",
        ),
    ),
    "mlnx-qos": (
        Difference(
            "hosts-disagree",
            re.compile(r"^\s*(?P<of>enabled)(?P<value>(?:\s+[01]){8})"),
            "the PFC priorities",
        ),
    ),
    "nccl-debug-version": (
        Difference(
            "ranks-load-different-nccl",
            re.compile(
                r"NCCL version (?P<value>\d{1,3}\.\d{1,3}\.\d{1,3}\S{0,40}\+cuda\d{1,3}\.\d)"
            ),
            "the version of NCCL",
        ),
    ),
    "npu-smi": (
        Difference(
            "tls-must-set-alike",
            re.compile(r"(?P<who>dev_id:\d{1,4}), tls switch\[(?P<value>[01])\]"),
            "the TLS switch",
        ),
    ),
    "param-checksum": (
        Difference(
            "ranks-differ",
            re.compile(
                r"^param-checksum (?P<who>rank \d{1,6}) (?P<of>step \d{1,9}): (?P<value>\S{1,60})$"
            ),
            "the checksum",
        ),
        Difference(
            "no-change",
            re.compile(
                r"^param-checksum (?P<of>rank \d{1,6}) (?P<who>step \d{1,9}): (?P<value>\S{1,60})$"
            ),
            "the checksum",
            shows=Shows.TWO_ALIKE,
        ),
        Difference(
            "ranks-agree",
            re.compile(
                r"^param-checksum (?P<who>rank \d{1,6}) (?P<of>step \d{1,9}): (?P<value>\S{1,60})$"
            ),
            "the checksum",
            shows=Shows.ALL_ALIKE,
        ),
    ),
    "process-count": (
        Difference(
            "uneven",
            _PROCESSES,
            "the number of processes",
        ),
        Difference(
            "even",
            _PROCESSES,
            "the number of processes",
            shows=Shows.ALL_ALIKE,
        ),
    ),
    "torch-collect-env": (
        Difference(
            "several-cuda-library-wheels",
            re.compile(
                r"^\[(?:pip3|conda)\] (?P<of>nvidia-nccl)-(?P<value>cu1\d)==(?P<who>\S{1,40})"
            ),
            "the CUDA major",
        ),
    ),
    "torch-cuda-check": (
        Difference(
            "gpu-missing-node-visibility",
            re.compile(r"\bavail True count (?P<value>\d{1,3})"),
            "the number of GPUs",
        ),
    ),
}
"""By the id of the check."""


def read_differences(output: Output, differences: tuple[Difference, ...]) -> Iterator[Found]:
    """Each finding once, at the first line that shows it."""
    for one in differences:
        groups: dict[str, list[tuple[str, str, int]]] = {}
        for row, line in enumerate(output.lines):
            for match in one.expression.finditer(line):
                named = match.groupdict()
                entry = (named.get("who") or "", " ".join(named["value"].split()), row)
                groups.setdefault(named.get("of") or "", []).append(entry)
        found = _COMPARE[one.shows](one, groups)
        if found:
            yield found


def _differing(one: Difference, groups: dict[str, list[tuple[str, str, int]]]) -> Found | None:
    for of, entries in groups.items():
        counts = Counter(value for _who, value, _row in entries)
        if len(counts) < 2:
            continue
        common = counts.most_common(1)[0][0]
        others = [entry for entry in entries if entry[1] != common]
        said = named(
            list(
                dict.fromkeys(f"{value} at {who}" if who else value for who, value, _row in others)
            )
        )
        head = f"{one.what} of {of}" if of else one.what
        return Found(
            one.finding, f"{capital(head)} differs: {said}; {common} elsewhere.", others[0][2]
        )
    return None


def _alike(one: Difference, groups: dict[str, list[tuple[str, str, int]]]) -> Found | None:
    for of, entries in groups.items():
        first: dict[str, str] = {}
        for who, value, row in entries:
            other = first.setdefault(value, who)
            if other != who:
                text = f"{capital(one.what)} of {of} are the same for {other} and {who}: {value}."
                return Found(one.finding, text, row)
    return None


def _agreeing(one: Difference, groups: dict[str, list[tuple[str, str, int]]]) -> Found | None:
    """Where each group has one value, which at least two show, and which is not 0."""
    shared = [
        (of, entries)
        for of, entries in groups.items()
        if len({who for who, _value, _row in entries}) > 1
    ]
    values = [{value for _who, value, _row in entries} for entries in groups.values()]
    if not shared or any(len(some) > 1 or some == {"0"} for some in values):
        return None
    of, entries = shared[-1]
    head = f"{one.what} of {of}" if of else one.what
    who = named(list(dict.fromkeys(who for who, _value, _row in entries)))
    return Found(one.finding, f"{capital(head)} is {entries[0][1]} at {who}.", entries[0][2])


_COMPARE = {
    Shows.SOME_DIFFER: _differing,
    Shows.TWO_ALIKE: _alike,
    Shows.ALL_ALIKE: _agreeing,
}

READERS: dict[str, Reader] = {
    check: partial(read_differences, differences=differences)
    for check, differences in DIFFERENCES.items()
}
"""By the id of the check."""
