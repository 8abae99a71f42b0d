"""What differs between the hosts, and between the processes, on which the same checks were taken.

The host that differs from all others is mostly the one to look at, whatever it prints.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from kb.check import Check
from kb.checks.model import CollectedOutput, Observation

_MAX_NAMED = 4
"""Hosts or processes named in a sentence."""
_MAX_LINE_CHARACTERS = 120
"""Of a line that is quoted."""
_MAX_LINES = 2_000
"""Of one output that are compared."""

_SETTING = re.compile(r"\s*([\w.-]+)\s*=")
_WORDS = re.compile(r"[^:\d]*")
"""The part of a line that names what the rest is the value of."""
_OWN = re.compile(r"RANK|PROCID|LOCALID|NODEID|HOSTNAME|NODENAME|VISIBLE_DEVICES|_PID")
"""Settings that differ between healthy processes."""


class Reading(msgspec.Struct, frozen=True):
    """What one output shows that a script took."""

    check: Check
    taken: CollectedOutput
    observations: tuple[Observation, ...]


class _Said(msgspec.Struct, frozen=True):
    observation: Observation
    order: tuple[int, int]
    """What differs and is not reassuring comes first, then what is abnormal everywhere, then what
    could not be read, then the rest; within these, what few show."""


def compare(readings: Iterable[Reading]) -> list[Observation]:
    """What the outputs show, each thing once with the hosts or processes that show it: what differs
    first."""
    by_check = sorted(readings, key=lambda reading: reading.check.id)
    said: list[_Said] = []
    for _check, group in groupby(by_check, key=attrgetter("check")):
        units = list(group)
        names = _names(units)
        said += _findings(units, names)
        if len(units) > 1 and units[0].check.header.alike:
            said += _lines(units, names)
    return [one.observation for one in sorted(said, key=attrgetter("order"))]


def _findings(units: Sequence[Reading], names: Sequence[str]) -> Iterator[_Said]:
    shown: dict[str, dict[int, list[Observation]]] = {}
    for unit, reading in enumerate(units):
        for seen in reading.observations:
            shown.setdefault(seen.finding or seen.text, {}).setdefault(unit, []).append(seen)
    for by_unit in shown.values():
        owners = list(by_unit)
        who = _who(owners, names, _noun(units))
        differs = len(owners) < len(units)
        # The host that stands alone is told of in full.
        told = by_unit[owners[0]] if len(owners) == 1 else by_unit[owners[0]][:1]
        for seen in told:
            text = f"{who}: {seen.text}" if who else seen.text
            order = (_order(seen.abnormal, differs=differs), len(owners))
            yield _Said(msgspec.structs.replace(seen, text=text, differs=differs), order)


def _order(abnormal: bool | None, *, differs: bool) -> int:
    if abnormal is False:
        return 3
    if differs:
        return 0
    return 1 if abnormal else 2


def _who(owners: Sequence[int], names: Sequence[str], noun: str) -> str:
    """`node5 (1 of 8 hosts)`; nothing where there is one alone."""
    if len(names) == 1:
        return ""
    if len(owners) == len(names):
        return f"Both {noun}" if len(names) == 2 else f"All {len(names)} {noun}"
    share = f"{len(owners)} of {len(names)} {noun}"
    if 2 * len(owners) <= len(names):
        return f"{_listed([names[unit] for unit in owners])} ({share})"
    others = [name for unit, name in enumerate(names) if unit not in set(owners)]
    return f"All but {_listed(others)} ({share})"


def _lines(units: Sequence[Reading], names: Sequence[str]) -> Iterator[_Said]:
    """Lines of few where most have another one; of two, both."""
    lines = [_values(reading) for reading in units]
    for key in dict.fromkeys(key for values in lines for key in values):
        texts = [values[key][1] if key in values else None for values in lines]
        counts = Counter(texts)
        usual, times = counts.most_common(1)[0]
        if len(counts) == 1 or (2 * times <= len(units) and len(units) > 2):
            continue
        if len(units) == 2 and None in counts:
            usual = next(filter(None, texts))
        owners = [unit for unit, text in enumerate(texts) if text != usual]
        yield _difference(units, names, owners, (texts[owners[0]], usual), key, lines)


def _difference(
    units: Sequence[Reading],
    names: Sequence[str],
    owners: Sequence[int],
    texts: tuple[str | None, str | None],
    key: tuple[str, int],
    lines: Sequence[dict[tuple[str, int], tuple[int, str]]],
) -> _Said:
    own, usual = texts
    first = units[owners[0]]
    if own is None:
        what = f"lacks `{usual}`, which the others have" if usual else ""
    elif usual is None:
        what = f"has `{own}`, which the others lack"
    else:
        what = f"has `{own}`, where the others have `{usual}`"
    row = lines[owners[0]].get(key, (0, ""))[0]
    observation = Observation(
        check=first.check.id,
        finding=None,
        text=f"{_who(owners, names, _noun(units))} {what}.",
        file=first.taken.output.source,
        line=first.taken.output.first_line + row,
        abnormal=True,
        differs=True,
    )
    return _Said(observation, (0, len(owners)))


def _values(reading: Reading) -> dict[tuple[str, int], tuple[int, str]]:
    """By what a line is about, and which of several such lines it is: its row and its text."""
    values: dict[tuple[str, int], tuple[int, str]] = {}
    seen: Counter[str] = Counter()
    for row, line in enumerate(reading.taken.output.lines[:_MAX_LINES]):
        text = " ".join(line.split())[:_MAX_LINE_CHARACTERS]
        name = _name(text)
        if text and not _OWN.search(name):
            values[name, seen[name]] = (row, text)
            seen[name] += 1
    return values


def _name(text: str) -> str:
    setting = _SETTING.match(text)
    if setting:
        return setting[1]
    words = _WORDS.match(text)
    return words[0].strip() if words else ""


def _names(units: Sequence[Reading]) -> list[str]:
    origins = [reading.taken.origin for reading in units]
    hosts = Counter(origin.host for origin in origins)
    if len(hosts) == 1:
        return [origin.subject or origin.host for origin in origins]
    if len(hosts) == len(units):
        return [origin.host for origin in origins]
    return [
        f"{origin.host} {origin.subject}" if origin.subject else origin.host for origin in origins
    ]


def _noun(units: Sequence[Reading]) -> str:
    subjects = [reading.taken.origin.subject for reading in units]
    if all(subject and "PID" in subject for subject in subjects):
        return "processes"
    hosts = {reading.taken.origin.host for reading in units}
    return "hosts" if len(hosts) == len(units) else "outputs"


def _listed(names: Sequence[str]) -> str:
    shown = "; ".join(names[:_MAX_NAMED])
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return shown + more
