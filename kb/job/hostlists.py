"""Lists of hosts and ranks as launchers print them, and the hosts that are missing from one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import chain, islice
from math import prod

from kb.expression import Expression
from kb.numbers import read_int, read_ints

_LAST_NUMBER = Expression(r"(?<!\d)\d++(?=\D*+$)")
_LETTER = Expression(r"(?<=[-_])[a-z]")
_COUNT = Expression(r"nnodes[\"' =:]+(?:\d+:)?(\d+)|\b(\d+) nodes\b|num_nodes[ =:]+(\d+)")

_MAX_SHAPES = 100
"""Ways in which the hosts of a job are named; of more, those of most hosts count."""
_MAX_NODES = 100_000
"""Numbers that are gone through; a larger one in a name is a date or a serial number."""
_MAX_RANKS_OF_A_LIST = 10_000
"""Of a longer list the first ranks are read."""
_MAX_HOSTS_OF_A_LIST = 1_000
"""A longer list, by the product of its brackets, is not read: it hardly tells where a rank ran."""
_BRACKETS = Expression(r"\[([^\[\]]*)\]")


def missing_hosts(present: Collection[str], lines: Iterable[str]) -> list[str]:
    """Names like those of the hosts that speak, which are spoken of but never speak.

    Where none is spoken of, the gaps in the numbering up to the number of nodes that is stated.
    """
    texts = list(lines)
    parts = ((host, _last_part(host)) for host in sorted(present))
    shapes = Counter((host[: part.start()], host[part.end() :]) for host, part in parts if part)
    mentioned: Counter[str] = Counter()
    for (stem, rest), _hosts in shapes.most_common(_MAX_SHAPES):
        name = re.compile(rf"(?<![\w-]){re.escape(stem)}(?:\d+|[a-z]){re.escape(rest)}(?![\w-])")
        for text in texts:
            mentioned.update(set(name.findall(text)))
    absent = [host for host, _count in mentioned.most_common() if host not in present]
    return absent or _gaps(present, texts)


def _gaps(present: Collection[str], lines: Iterable[str]) -> list[str]:
    counts = (m for text in lines if (m := _COUNT.search(text)))
    stated = list(read_ints(next(filter(None, m.groups())) for m in counts))
    parts = (part for host in sorted(present) if (part := _last_part(host)))
    numbered = {number: part for part in parts if (number := read_int(part[0])) is not None}
    if not numbered:
        return []
    low = 0 if 0 in numbered else 1
    high = max([*numbered, *(low + count - 1 for count in stated)])
    if high - low >= _MAX_NODES:
        return []
    some = next(iter(numbered.values()))
    return [_renumbered(some, number) for number in range(low, high + 1) if number not in numbered]


def _renumbered(part: re.Match[str], number: int) -> str:
    """The name of a sibling; numbers keep their width where they are padded."""
    host = part.string
    digits = str(number).zfill(len(part[0]) if part[0].startswith("0") else 1)
    return f"{host[: part.start()]}{digits}{host[part.end() :]}"


def _last_part(host: str) -> re.Match[str] | None:
    """What differs between siblings: the last number of a name, or else a letter of its own."""
    return _LAST_NUMBER.search(host) or _LETTER.search(host)


def read_ranks(text: str) -> list[int]:
    """Read a list such as `0-2,5`, `[1, 3]` or `1 and 3`; empty where it is none."""
    from kb.job.ranges import NO_LIST, Ranges

    try:
        ranges = Ranges(text.strip("[] ").replace(" and ", ",")).ranges
    except NO_LIST:
        return []
    return list(islice(chain.from_iterable(ranges), _MAX_RANKS_OF_A_LIST))


def read_hosts(text: str) -> tuple[str, ...]:
    """Read a list such as `cn[01-02],gpu7`; empty where it is none, or too long."""
    from kb.job.ranges import NO_LIST, Ranges, expand_hosts

    try:
        sizes = [Ranges(part).count for part in _BRACKETS.findall(text)]
        if prod(sizes) > _MAX_HOSTS_OF_A_LIST:
            return ()
        return expand_hosts(text)
    except NO_LIST:
        return ()
