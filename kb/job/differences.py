"""Values that one rank prints and all others print otherwise, in lines that all of them print.

A rank that was started for another number of ranks, reads another file or has another version says
so in its first lines; a loss that is nan on one rank alone is where the trouble begins. Names
behind which each rank may have a value of its own are rows of `kb/rules/values.toml`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import msgspec

from kb.expression import Expression
from kb.job.attempt import Attempt, RankLog
from kb.job.lines import ATTACHED
from kb.job.model import FaultRole, LogLine
from kb.log.mask import shape_of
from kb.rules import any_of, read_rows
from kb.rules.rows import Rule

_MIN_RANKS = 3
"""Of two ranks nothing tells which one is the odd one."""
_FIRST_LINES, _LAST_LINES = 150, 50
"""Lines of each rank that are compared: what it was started with, and its end."""
_MAX_DIFFERENCES = 5
_FIELD = Expression(
    r"(?<![\w./-])(?P<name>[A-Za-z_][\w./-]{0,40})[\"']?"
    r"(?:\s?=\s{0,8}|:\s|\s)[\"']?"
    r"(?P<value>[\[(][\d., x]{1,40}[\])]|[+-]?\d[\w.+-]{0,40}|(?:nan|inf|true|false|none)\b"
    r"|(?<==)[\w.+-]{1,40})",
    re.IGNORECASE,
)
_NAN = Expression(r"[+-]?(?:nan|inf)", re.IGNORECASE)
_MEASURED = Expression(r"\d[\d.]*(?:e[+-]?\d+)?(?:[mun]?s|sec|it|[kmgt]i?b)", re.IGNORECASE)
_SWITCH = Expression(r"true|false|[01]|none", re.IGNORECASE)
"""The first rank often does what no other does."""

_SIGN = "="
_WORD_BEFORE = Expression(r"[A-Za-z][\w-]* $")

_Key = tuple[str, str, int]
"""The shape of a line, the name of a field, and which of several fields of this name it is."""


class Difference(msgspec.Struct, frozen=True):
    """A value that one rank prints, and what all others print."""

    printed: str
    """The value of the rank with the words in front of it: `world_size=7`."""
    usual: str | None
    """The value of all others; None where theirs are different numbers, and this one is none."""
    rank: int | None
    """None where hosts speak, and nobody tells a rank."""
    line: LogLine

    @property
    def text(self) -> str:
        """The difference in a sentence."""
        who = self.line.host if self.rank is None else f"rank {self.rank}"
        others = "numbers" if self.usual is None else f"`{self.usual}`"
        return f"{who} prints `{self.printed}`, all others {others}."


class _Values(msgspec.Struct):
    """What a rank prints in one place, with the line that is to be shown."""

    line: LogLine
    printed: str
    seen: set[str]

    @property
    def only(self) -> str | None:
        """The value, where it is always the same."""
        return next(iter(self.seen)) if len(self.seen) == 1 else None


def find_differences(attempt: Attempt) -> list[Difference]:
    """The values by which one rank differs from all others."""
    if len(attempt.ranks) < _MIN_RANKS:
        return []
    printed: dict[_Key, dict[int, _Values]] = defaultdict(dict)
    for rank, log in attempt.ranks.items():
        for key, value, words, line in _fields(log):
            values = printed[key].setdefault(rank, _Values(line, words, set()))
            if _NAN.fullmatch(value) and not any(map(_NAN.fullmatch, values.seen)):
                values.line, values.printed = line, words
            values.seen.add(value)
    last = max(attempt.ranks)
    by_all = (values for values in printed.values() if len(values) == len(attempt.ranks))
    found = (one for values in by_all for one in _compared(values, last))
    return list({(one.printed, one.rank): one for one in found}.values())[:_MAX_DIFFERENCES]


def find_departures(attempt: Attempt) -> Iterator[tuple[int, LogLine]]:
    """The ranks that print another value than before, each with that line, where all others print
    the value of before and no other."""
    if len(attempt.ranks) < _MIN_RANKS:
        return
    printed: dict[_Key, dict[int, dict[str, LogLine]]] = defaultdict(lambda: defaultdict(dict))
    for rank, log in attempt.ranks.items():
        for key, value, _words, line in _fields(log):
            printed[key][rank].setdefault(value, line)
    for by_rank in printed.values():
        changed = [rank for rank, own in by_rank.items() if len(own) > 1]
        if len(by_rank) < len(attempt.ranks) or len(changed) != 1:
            continue
        own = by_rank[changed[0]]
        usual = {value for rank, seen in by_rank.items() if rank != changed[0] for value in seen}
        if len(usual) == 1 and usual < own.keys() and len(own) == len(usual) + 1:
            yield changed[0], next(line for value, line in own.items() if value not in usual)


def _fields(log: RankLog) -> Iterator[tuple[_Key, str, str, LogLine]]:
    """Each value that can be compared, with the words in front of it."""
    few = [line for line in log.lines if _can_be_compared(line)]
    if len(few) > _FIRST_LINES + _LAST_LINES:
        few = [*few[:_FIRST_LINES], *few[-_LAST_LINES:]]
    for line in few:
        text = line.message
        fields = list(_FIELD.finditer(text))
        shape = _shape(text, fields)
        seen: Counter[str] = Counter()
        for field in fields:
            name, value = field["name"], field["value"].rstrip(".,")
            seen[name] += 1
            if not (_own().fullmatch(name) or _MEASURED.fullmatch(value)):
                before = None if _SIGN in field[0] else _WORD_BEFORE.search(text[: field.start()])
                words = f"{before[0] if before else ''}{field[0]}".rstrip(".,").replace('"', "")
                yield (shape, name, seen[name]), value, words, line


def _can_be_compared(line: LogLine) -> bool:
    """Whether it is no part of a stack and no failure: a loss that is nan is none by itself."""
    attached = line.uncaught or ATTACHED.match(line.message)
    return line.role <= FaultRole.UNCLASSIFIED and not attached


def _shape(text: str, fields: Sequence[re.Match[str]]) -> str:
    """What is alike in the line of all ranks: of JSON, the names, in whatever order."""
    if text.startswith("{"):
        return " ".join(sorted(field["name"] for field in fields))
    parts, at = [], 0
    for field in fields:
        parts += [text[at : field.start("value")], "#"]
        at = field.end("value")
    return shape_of("".join((*parts, text[at:]))) if fields else ""


def _compared(values: Mapping[int, _Values], last: int) -> Iterator[Difference]:
    """The rank that differs, if one does."""
    bad = [rank for rank, one in values.items() if any(map(_NAN.fullmatch, one.seen))]
    if len(bad) == 1:
        yield _difference(values, bad[0], None)
    common = Counter(one.only for one in values.values()).most_common()
    if bad or len(common) != 2 or common[1][1] != 1:
        return
    (usual, _), (own, _) = common
    if own is None or usual is None:
        return
    rank = next(rank for rank, one in values.items() if one.only == own)
    if not (rank == 0 and _SWITCH.fullmatch(own)) and not (rank == last and _is_rest(own, usual)):
        yield _difference(values, rank, usual)


def _difference(values: Mapping[int, _Values], rank: int, usual: str | None) -> Difference:
    return Difference(values[rank].printed, usual, rank, values[rank].line)


def _is_rest(own: str, usual: str) -> bool:
    """Whether a share is smaller, as that of the last rank is where work does not divide."""
    return own.isdecimal() and usual.isdecimal() and int(own) < int(usual)


@cache
def _own() -> re.Pattern[str]:
    return any_of((row.pattern for row in read_rows("values", "own", Rule)), re.IGNORECASE)
