"""Files whose programs each say which of how many they are, where no name tells it: `shard 3/5`,
`seat 1 of 4`, `r=0/2`, `rank=3 world=5`; or the number in their name, `Worker name: rank-3`.

A step or an attempt is counted in this way as well, but not as another number in each file, each
of them once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from kb.expression import Expression
from kb.job.lines import ATTACHED, Line
from kb.numbers import read_int

_WHICH = Expression(
    r"(?<![\w.-])(?P<word>[A-Za-z][A-Za-z_-]{0,30})[ :=#]{1,3}(?P<number>\d{1,5})"
    r"(?:/| of )(?P<all>\d{1,5})(?![\w/:-]|\.\d)"
)
_RANK_AND_WORLD = Expression(
    r"(?<![\w.-])(?P<word>(?:global[_ ]?)?rank)['\"]?[ :=#]{1,3}(?P<number>\d{1,5})\b[^\n]{0,40}?"
    r"\bworld(?:[_ ]?size)?['\"]?[ :=]{1,3}(?P<all>\d{1,5})\b",
    re.IGNORECASE,
)
_NAME = Expression(
    r"\b(?P<word>(?:worker|executor|rank)[ _-]?(?:name|id))['\"]?[ :=]{1,40}['\"]?"
    r"(?:[a-z]{1,20}[_.-])?(?P<number>\d{1,5})(?![\w.:-])",
    re.IGNORECASE,
)
_HOLDS_SEVERAL = Expression(r"(?:[a-z]+[_-])*(?:node|host|machine|server)s?", re.IGNORECASE)
"""What runs several ranks."""
_FIRST_LINES, _FIRST_CHARACTERS = 20, 300
"""Of a file, in which a program says who it is."""


def stated_ranks(files: Mapping[str, Sequence[Line]]) -> dict[str, int]:
    """The numbers that the files state, where more than half of all do, each another one."""
    numbers: dict[tuple[str, int], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for name, lines in files.items():
        own = (line.text for line in lines if not ATTACHED.match(line.text))
        for text in islice(own, _FIRST_LINES):
            for word, number, size in _statements(text[:_FIRST_CHARACTERS], len(files)):
                if number is not None and size and not _HOLDS_SEVERAL.fullmatch(word):
                    numbers[word.lower(), size][name].add(number)
    found: dict[str, int] = {}
    for (_word, size), stated in numbers.items():
        single = {name: next(iter(seen)) for name, seen in stated.items() if len(seen) == 1}
        distinct = set(single.values())
        if (
            len(single) == len(stated) == len(distinct) > max(1, len(found), size // 2)
            and max(distinct) - min(distinct) < size
            and max(distinct) <= size
        ):
            found = single
    return found


def stated_rank(text: str) -> int | None:
    """The rank that a line states together with the number of all ranks."""
    match = _RANK_AND_WORLD.search(text)
    return read_int(match["number"]) if match else None


def _statements(text: str, files: int) -> Iterator[tuple[str, int | None, int | None]]:
    """What is numbered, its number, and of how many: of names, there are as many as files."""
    for match in chain(_WHICH.finditer(text), _RANK_AND_WORLD.finditer(text)):
        yield match["word"], read_int(match["number"]), read_int(match["all"])
    for match in _NAME.finditer(text):
        yield match["word"], read_int(match["number"]), files
