"""Who says a line: rank, host and time in front of it, as launchers and loggers write them.

The forms are rows of `kb/rules/prefixes.toml`, tried in order, again and again, until none fits.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from string import digits

import msgspec

from kb.expression import Expression
from kb.numbers import read_int
from kb.rules import read_rows
from kb.rules.rows import Prefix

_MAX_PREFIXES = 4
"""Prefixes taken off one line: `kubectl logs --prefix` may wrap a launcher's prefix that wraps a
time and a level."""
_BEGINNING_CHARACTERS = 400
"""The part of a line in which its prefixes are looked for: each is far shorter."""

_NAMED = Expression(r"\?P<(rank|local_rank|host)>")


class Spoken(msgspec.Struct, frozen=True):
    """A line without its prefixes."""

    text: str
    rank: int | None = None
    host: str | None = None
    is_local: bool = False
    """The rank is counted per host."""


@lru_cache(300)  # several readers of a log ask for its last lines, one after the other
def split_prefix(line: str) -> Spoken:
    """Take the prefixes off a line."""
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    for _layer in range(_MAX_PREFIXES):
        match = _any_prefix().match(line, 0, _BEGINNING_CHARACTERS)
        if match is None:
            break
        line = line[match.end() :]
        if match.lastgroup is None:
            continue  # a time
        found = {name.rstrip(digits): told for name, told in match.groupdict().items() if told}
        rank = read_int(found["rank"]) if rank is None and "rank" in found else rank
        if local_rank is None and "local_rank" in found:
            local_rank = read_int(found["local_rank"])
        host = host or found.get("host")
    return Spoken(line, local_rank if rank is None else rank, host, rank is None is not local_rank)


@cache
def _any_prefix() -> re.Pattern[str]:
    """All rows as one expression: at most lines one look is enough. Something must be left of the
    line."""
    rows = enumerate(read_rows("prefixes", "prefix", Prefix))
    numbered = (_NAMED.sub(rf"?P<\g<1>{number}>", row.pattern) for number, row in rows)
    return re.compile(f"(?:{'|'.join(numbered)})(?=.)", re.DOTALL)
