"""Hosts that should be there and are not: a node that never joined has no log at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

_LAST_PART = re.compile(r"(\d+|(?<=[-_])[a-z])(?!.*\d)")
_COUNT = re.compile(r"nnodes[\"' =:]+(?:\d+:)?(\d+)|\b(\d+) nodes\b|num_nodes[ =:]+(\d+)")

_MOST_NODES = 100_000
"""A larger number in a name is a date or a serial number."""


def missing_hosts(present: Collection[str], lines: Iterable[str]) -> list[str]:
    """Names like those of the hosts that speak, which are spoken of but never speak.

    Where none is spoken of, the gaps in the numbering up to the number of nodes that is stated.
    """
    texts = list(lines)
    shapes = {_LAST_PART.sub("#", host, count=1) for host in present}
    mentioned: Counter[str] = Counter()
    for shape in shapes:
        if "#" in shape:
            stem, _, rest = shape.partition("#")
            name = re.compile(
                rf"(?<![\w-]){re.escape(stem)}(?:\d+|[a-z]){re.escape(rest)}(?![\w-])"
            )
            for text in texts:
                mentioned.update(set(name.findall(text)))
    absent = [host for host, _count in mentioned.most_common() if host not in present]
    return absent or _gaps(present, texts)


def _gaps(present: Collection[str], lines: Iterable[str]) -> list[str]:
    stated = [int(next(filter(None, m.groups()))) for text in lines if (m := _COUNT.search(text))]
    numbered = {
        int(m[1]): host for host in present if (m := _LAST_PART.search(host)) and m[1].isdigit()
    }
    if not numbered:
        return []
    low = 0 if 0 in numbered else 1
    high = max([*numbered, *(low + count - 1 for count in stated)])
    if high - low >= _MOST_NODES:
        return []
    some_host = next(iter(numbered.values()))
    return [_renumbered(some_host, n) for n in range(low, high + 1) if n not in numbered]


def _renumbered(host: str, number: int) -> str:
    """The name of a sibling; numbers keep their width where they are padded."""

    def write(match: re.Match[str]) -> str:
        return str(number).zfill(len(match[1]) if match[1].startswith("0") else 1)

    return _LAST_PART.sub(write, host, count=1)
