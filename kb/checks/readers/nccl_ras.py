"""The status that NCCL's RAS service prints of a running job."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kb.checks.model import Found, Output, Reader, Unread
from kb.checks.readers.names import capital, ranks

_GROUP = re.compile(r"^#(\d{1,6})-\d{1,9} \(\w+\)")
_ROW = re.compile(
    r"^\s*(\d{1,6})\s+\d{1,9}\s+\d{1,6}\s+\d{1,6}(?:-\d{1,6})?\s+(\d{1,7})\s+\d{1,9}\s+[A-Z]"
)
_COUNT = re.compile(r"^\s*(\d{1,7}) ranks? ha(?:s|ve) (?:launched up to (operation \d{1,19}))")
_OPERATION = re.compile(r"operation (\d{1,19})")
_RANK = re.compile(r"^\s*Rank (\d{1,7}) -- ")
_MISMATCH = re.compile(r"Communicator ranks have different (\w+ operation counts|status)")


class Place(msgspec.Struct):
    """Ranks of one communicator that launched the same number of operations."""

    count: int
    operation: int
    row: int
    listed: list[int]
    """The ranks that are printed: often those of the smaller set only."""


def read_ras(output: Output) -> Iterator[Found | Unread]:
    """Who is behind. RAS prints the ranks of the smaller set, which may be those that are ahead:
    the ones behind are then all others of the communicator."""
    sizes: dict[str, int] = {}
    places: list[Place] = []
    group = ""
    for row, line in enumerate((*output.lines, "#0-0 (end)")):
        if summary := _ROW.match(line):
            sizes[summary[1]] = int(summary[2])
        elif named := _GROUP.match(line):
            yield from _behind(places, sizes.get(group))
            group, places = named[1], []
        elif count := _COUNT.match(line):
            operation = _OPERATION.search(count[2])
            places.append(Place(int(count[1]), int(operation[1]) if operation else 0, row, []))
        elif places and (rank := _RANK.match(line)):
            places[-1].listed.append(int(rank[1]))
        elif mismatch := _MISMATCH.search(line):
            text = f"The ranks of a communicator have different {mismatch[1]}."
            yield Found("mismatch-since-2-26", text, row)


def _behind(places: list[Place], size: int | None) -> Iterator[Found]:
    if len({place.operation for place in places}) < 2:
        return
    last = max(place.operation for place in places)
    late = [place for place in places if place.operation < last]
    row = min(late, key=_operation).row
    count = sum(place.count for place in late)
    behind = sorted(rank for place in late for rank in place.listed)
    if len(behind) < count:
        everyone = sum(place.count for place in places)
        ahead = [rank for place in places if place.operation == last for rank in place.listed]
        known = len(ahead) == everyone - count and size in (None, everyone)
        others = set(range(everyone)) - set(ahead) if known else set()
        behind = sorted(others)
    who = capital(ranks(behind)) if behind else f"{count} ranks"
    verb = "stand" if count > 1 else "stands"
    text = f"{who} {verb} at operation {min(map(_operation, late))}, the others at {last}."
    yield Found("ranks-smaller-count-not", text, row)


def _operation(place: Place) -> int:
    return place.operation


READERS: dict[str, Reader] = {
    "nccl-ras": read_ras,
}
"""By the id of the check."""
