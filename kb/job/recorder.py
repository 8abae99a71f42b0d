"""PyTorch Flight Recorder dumps: the last collectives of every rank, as a pickle or as JSON.

A pickle can run code when it is read. These hold only plain values, so the reader knows no other:
whatever names a class or a function is refused.
https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Never

import msgspec

from kb.log import Source

DUMP_NAME = re.compile(
    r"(?:^|[/_.-])(?:nccl_|fr_|gloo_)?trace_(?:\w*_)?(?P<rank>\d+)(?:\.(?:json|pkl|pickle))?$"
)
_MAX_DUMP_BYTES = 256 << 20
"""The recorder keeps some thousand collectives a rank: a few megabytes."""
_NUMBERED = ("PUT", "LONG_BINPUT")
_DIGITS = re.compile(r"\d+")


class Collective(msgspec.Struct, frozen=True):
    """One entry of a dump; what is not read is left out."""

    process_group: tuple[str, str] = ("", "")
    """Name and description."""
    collective_seq_id: int = 0
    profiling_name: str = ""
    input_sizes: list[list[int]] = []
    state: str = ""
    """`scheduled`, `started` or `completed`."""
    frames: list[dict[str, Any]] = []
    is_p2p: bool = False

    @property
    def operation(self) -> str:
        """What was called, with the sizes of its inputs."""
        return (
            f"{self.profiling_name} {self.input_sizes}" if self.input_sizes else self.profiling_name
        )

    @property
    def place(self) -> str:
        """Where the program called it."""
        for frame in self.frames:
            if "/site-packages/" not in str(frame.get("filename", "")):
                file = str(frame.get("filename", "")).rsplit("/", 1)[-1]
                return f" at {file}:{frame.get('line')} in {frame.get('name')}"
        return ""


class Dump(msgspec.Struct, frozen=True):
    """What one rank recorded."""

    file: str
    rank: int
    entries: list[Collective]
    members: dict[str, list[int]]
    """Ranks by name of the process group."""


class DumpComparison(msgspec.Struct, frozen=True):
    """The ranks whose dumps differ from those of the others."""

    mismatched: bool
    """The ranks called something else than most; else they did not call what the others wait in."""
    culprits: dict[int, tuple[str | None, str]]
    """By rank at fault: the dump's file, if the rank left one, and what it did last."""


def read_dump(source: Source) -> Dump | None:
    """Read a dump; None where the file is something else, or holds more than plain values."""
    match = DUMP_NAME.search(source.name or "")
    if match is None:
        return None
    data = source.read_bytes(_MAX_DUMP_BYTES)
    try:
        raw = (
            msgspec.json.decode(data)
            if data[:1] in b"{["
            else _PlainValues(io.BytesIO(_bounded(data))).load()
        )
        entries = msgspec.convert(raw["entries"], list[Collective], strict=False)
        config = raw.get("pg_config", {}).items()
        members = {
            name: [int(n) for n in _DIGITS.findall(str(one.get("ranks")))] for name, one in config
        }
    except Exception:  # noqa: BLE001  a damaged pickle may raise anything
        return None
    return Dump(source.name or "", int(match["rank"]), entries, members)


def _bounded(pickled: bytes) -> bytes:
    """The same bytes. A few of them can number a value, or announce a text, of gigabytes, and the
    room for it is made before it is read.

    Raises:
        ValueError: that is so.
    """
    for opcode, argument, _place in pickletools.genops(pickled):
        if opcode.name in _NUMBERED and int(argument or 0) > len(pickled):
            raise ValueError(f"{opcode.name} {argument}")
    return pickled


class _PlainValues(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Never:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def compare(dumps: Sequence[Dump]) -> DumpComparison | None:
    """Find the ranks that did not call what the others did; None where all agree."""
    groups: dict[str, dict[int, dict[int, Collective]]] = defaultdict(lambda: defaultdict(dict))
    for dump in dumps:
        for entry in dump.entries:
            if not entry.is_p2p:
                groups[entry.process_group[0]][dump.rank][entry.collective_seq_id] = entry
    files = {dump.rank: dump.file for dump in dumps}
    for name, ranks in groups.items():
        members = {rank for dump in dumps for rank in _members(dump, name)} | set(ranks)
        found = _mismatch(ranks, files) or _missing(ranks, members, files)
        if found:
            return found
    return None


def _members(dump: Dump, group: str) -> list[int]:
    """The dump of gloo names the default group with an empty text."""
    return dump.members.get(group) or dump.members.get("", [])


def _mismatch(
    ranks: Mapping[int, Mapping[int, Collective]], files: Mapping[int, str]
) -> DumpComparison | None:
    """The first sequence number at which a minority called another operation."""
    for number in sorted(set.intersection(*(set(entries) for entries in ranks.values()))):
        called = {rank: entries[number] for rank, entries in ranks.items()}
        common = Counter(entry.operation for entry in called.values()).most_common()
        if len(common) > 1 and common[0][1] > common[1][1]:
            odd = {rank: e for rank, e in called.items() if e.operation != common[0][0]}
            return DumpComparison(
                True, {r: (files[r], _described(e)) for r, e in sorted(odd.items())}
            )
    return None


def _missing(
    ranks: Mapping[int, Mapping[int, Collective]], members: Iterable[int], files: Mapping[int, str]
) -> DumpComparison | None:
    """Ranks that recorded fewer collectives than others, or left no dump at all."""
    last = {rank: max(entries) for rank, entries in ranks.items()}
    furthest = max(last.values())
    waiting = [rank for rank in last if ranks[rank][last[rank]].state != "completed"]
    behind = {rank: number for rank, number in last.items() if number < furthest}
    silent = sorted(set(members) - set(last))
    if not waiting or not (behind or silent):
        return None
    if behind:
        first = min(behind.values())
        return DumpComparison(
            False,
            {
                rank: (files[rank], f"last collective: {_described(ranks[rank][number])}")
                for rank, number in sorted(behind.items())
                if number == first
            },
        )
    return DumpComparison(False, dict.fromkeys(silent, (None, "no flight-recorder dump")))


def _described(entry: Collective) -> str:
    return (
        f"{entry.operation}, sequence number {entry.collective_seq_id}, {entry.state}{entry.place}"
    )
