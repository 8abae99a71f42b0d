"""PyTorch Flight Recorder dumps: the last collectives of every rank, as a pickle or as JSON.

A rank may die while it writes its own, so a damaged one is nothing special: the others are
compared.
https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

import msgspec

from kb.expression import Expression
from kb.job.plain_pickle import load_plain
from kb.log import Source
from kb.log.clean import replace_surrogates, strip_controls
from kb.log.reader import SNIFF_BYTES, is_binary
from kb.numbers import MAX_INT, read_int, read_ints

DUMP_NAME = Expression(
    r"(?:^|[/_.-])(?:nccl_|fr_|gloo_)?trace_(?:\w*_)?(?P<rank>\d+)(?:\.(?:json|pkl|pickle))?$"
)
_MAX_DUMP_BYTES = 256 << 20
"""The recorder keeps some thousand collectives a rank: a few megabytes."""
_MAX_VALUES = 10_000_000
"""Values of a dump, each counted as often as it is used: 20,000 collectives with stacks of 100
frames. A pickle of a kilobyte can stand for more than any memory holds."""
_CHARACTERS_OF_A_VALUE = 64
"""A longer text counts as several values."""
_MAX_RANKS_CHARACTERS = 8 << 20
"""Of all lists of ranks in a dump: a thousand groups of a thousand ranks."""
_MAX_SHOWN_CHARACTERS = 200
"""Of each text in what is told of a collective: a call may have hundreds of inputs."""
_PICKLE, _JSON = (b"\x80", b"(", b"}"), b"{"
"""What a dictionary begins with; the first one is of all pickles but the oldest protocols."""
_DIGITS = Expression(r"\d+")

_Int = Annotated[int, msgspec.Meta(ge=-MAX_INT, le=MAX_INT)]


class Frame(msgspec.Struct, frozen=True):
    """One call of a stack."""

    filename: str = ""
    line: _Int = 0
    name: str = ""


class Collective(msgspec.Struct, frozen=True):
    """One entry of a dump; what is not read is left out."""

    process_group: tuple[str, str] = ("", "")
    """Name and description."""
    collective_seq_id: _Int = 0
    profiling_name: str = ""
    input_sizes: list[list[_Int]] = []
    state: str = ""
    """`scheduled`, `started` or `completed`."""
    frames: list[Frame] = []
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
            if "/site-packages/" not in frame.filename:
                file = frame.filename.rsplit("/", 1)[-1]
                return f" at {file}:{frame.line} in {frame.name}"
        return ""


class Dump(msgspec.Struct, frozen=True):
    """What one rank recorded."""

    file: str
    rank: int
    entries: list[Collective]
    members: dict[str, str]
    """The list of ranks as printed, by name of the process group."""


class DamagedDump(msgspec.Struct, frozen=True):
    """A rank left a file that cannot be read as a dump: it is damaged, refused or closed."""

    rank: int
    is_text: bool
    """It may be a log."""


class DumpComparison(msgspec.Struct, frozen=True):
    """The ranks whose dumps differ from those of the others."""

    mismatched: bool
    """The ranks called something else than most; else they did not call what the others wait in."""
    culprits: dict[int, tuple[str | None, str]]
    """By rank at fault: the dump's file, if the rank left one, and what it did last."""


def read_dump(source: Source) -> Dump | DamagedDump | None:
    """Read a dump; None where the file is something else by its name or its first bytes.

    Raises:
        LogError: it cannot be read.
    """
    match = DUMP_NAME.search(source.name or "")
    rank = read_int(match["rank"]) if match else None
    if rank is None or (source.path is not None and not source.path.is_file()):
        return None  # a pipe could be read only once
    head = source.read_bytes(SNIFF_BYTES)
    is_text = bool(head) and not head.startswith(_PICKLE[0]) and not is_binary(head)
    if is_text and not head.startswith((*_PICKLE, _JSON)):
        return None
    dump = _decoded(source, rank) if head.startswith((*_PICKLE, _JSON)) else None
    if dump is None and source.loss is None:
        failure = f"{source.name} cannot be read as a flight-recorder dump"
        if is_text:
            source.notice = f"{failure}; it is read as a log"
        else:
            source.loss = f"{failure}; it is left out"
    return dump or DamagedDump(rank, is_text)


def _decoded(source: Source, rank: int) -> Dump | None:
    """The dump; None where it is damaged, or holds more than plain values."""
    data = source.read_bytes(_MAX_DUMP_BYTES)
    try:
        raw = _plain_values(data)
        if _size(raw, {}) > _MAX_VALUES:
            return None
        entries = msgspec.convert(raw["entries"], list[Collective], strict=False)
        config = msgspec.convert(raw.get("pg_config", {}), dict[str, _Group], strict=False)
        members = {name: str(group.ranks) for name, group in config.items()}
        if sum(map(len, members.values())) > _MAX_RANKS_CHARACTERS:
            return None
    except Exception:  # noqa: BLE001  what is damaged may raise anything
        return None
    return Dump(source.name or "", rank, entries, members)


class _Group(msgspec.Struct, frozen=True):
    ranks: str | list[_Int] = ""


def _plain_values(data: bytes) -> Any:
    """What the file holds.

    Raises:
        Exception: it is damaged, or holds too much; a pickle may raise anything.
    """
    if not data.startswith(_JSON):
        return load_plain(data, _MAX_VALUES)
    if sum(map(data.count, (b"{", b"[", b","))) > _MAX_VALUES:  # one is before each value
        raise ValueError("too many values")
    return msgspec.json.decode(data)


def _size(value: object, known: dict[int, int]) -> int:
    """How many values it stands for: what is used in several places counts in each of them.

    Raises:
        RecursionError: it holds itself, or is nested deeper than any dump.
    """
    if isinstance(value, str):
        return 1 + len(value) // _CHARACTERS_OF_A_VALUE
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return 1
    if id(value) not in known:
        parts = chain(value, value.values()) if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(value)]


def compare(dumps: Sequence[Dump], damaged: Collection[int] = ()) -> DumpComparison | None:
    """Find the ranks that did not call what the others did; None where all agree. Nothing is said
    of ranks whose dump is `damaged`."""
    groups: dict[str, dict[int, dict[int, Collective]]] = defaultdict(lambda: defaultdict(dict))
    for dump in dumps:
        for entry in dump.entries:
            if not entry.is_p2p:
                groups[entry.process_group[0]][dump.rank][entry.collective_seq_id] = entry
    files = {dump.rank: dump.file for dump in dumps}
    for name, ranks in groups.items():
        members = (_members(dumps, name) - set(damaged)) | set(ranks)
        found = _mismatch(ranks, files) or _missing(ranks, members, files)
        if found:
            return found
    return None


def _members(dumps: Iterable[Dump], group: str) -> set[int]:
    """The dump of gloo names the default group with an empty text."""
    lists = {dump.members.get(group) or dump.members.get("", "") for dump in dumps}
    return set(read_ints(digits for text in lists for digits in _DIGITS.findall(text)))


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
        f"{_shown(entry.operation)}, sequence number {entry.collective_seq_id},"
        f" {_shown(entry.state)}{_shown(entry.place)}"
    )


def _shown(text: str) -> str:
    return strip_controls(replace_surrogates(text[:_MAX_SHOWN_CHARACTERS]))
