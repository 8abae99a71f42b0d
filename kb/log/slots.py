"""Who says a line, where no table knows the way: a number in front of most lines that takes the
same few values again and again, each of them in front of the same messages.

Steps only grow, times and sizes do not come back, and a module has messages of its own.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec

from kb.numbers import read_int

BEGINNING_CHARACTERS = 110
"""The part of a line in which its speaker is looked for: further on, words speak of others."""
_NO_PART_OF_MORE = r"(?!\d|[.:,]\d|[%x])"
_NUMBER = re.compile(
    rf"(?:(?<=[\s\d])|^)([^\d\s]{{0,24}}[ \t]{{0,3}})(\d{{1,5}}){_NO_PART_OF_MORE}"
)
_AT_START, _SPACE = "", " "
"""Names of a number with which a line begins, and of one that stands alone."""
_CLOCK = re.compile(r"[.:,/+T-]*")
"""What stands before a number within a time, a date or a fraction."""
_COUNTER = re.compile(
    r"(?:^|[^a-z])(?:v|it|its|iter|iters|iteration|step|steps|epoch|ep|batch|mb|layer|layers|expert|bucket"
    r"|chunk|item|sample|fold|trial|try|attempt|retry|line|page|size|round|version|pid|tid|port"
    r"|loss|lr|acc|err|error|code|xid|exit|status|signal|len|n|num|count|total|top|at|of|in|to)"
    r"[^a-z\d]*$",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_LAST_WORD = re.compile(r"\w*$")
_WORDS = re.compile(r"[^\W\d]{2,}")
_MIN_SHARE = 0.5
"""Of the lines that have the number: what stands in the middle of messages is in fewer."""
_MIN_LINES_OF_A_SPEAKER = 2
_MAX_SHAPES = 6
"""Of what stands before the number, digits apart: a level or a module may stand there as well."""
_MESSAGE_CHARACTERS = 60
"""By which two messages are the same, digits apart."""


class _Slot(msgspec.Struct, frozen=True):
    """The numbers behind one name, in the lines of a sample."""

    name: str
    found: list[tuple[int, str, str]]
    """Of each line: the number, what stands before it and what behind it."""

    @property
    def numbers(self) -> set[int]:
        return {number for number, _before, _behind in self.found}


def find_slot(lines: Sequence[str]) -> re.Pattern[str] | None:
    """The expression of the number (group `rank`) that tells who speaks, if one does."""
    slots = [slot for slot in _slots(lines) if _tells_the_speaker(slot, len(lines))]
    if not slots:
        return None
    best = max(slots, key=lambda slot: (len(slot.numbers), len(slot.found)))
    rank = rf"{_before(best.name)}(?P<rank>\d{{1,5}}){_NO_PART_OF_MORE}"
    return re.compile(f"{rank}(?:{_common_beginning(best)})?")


def _common_beginning(slot: _Slot) -> str:
    """An expression of what follows the number in all lines, up to the end of a word."""
    columns = zip(
        *(_DIGITS.sub("0", behind) for _number, _before, behind in slot.found), strict=False
    )
    common = "".join(column[0] for column in takewhile(lambda one: len(set(one)) == 1, columns))
    return r"\d+".join(map(re.escape, _LAST_WORD.sub("", common).split("0")))


def _before(name: str) -> str:
    if name in (_AT_START, _SPACE):
        return "^" if name == _AT_START else r"(?<=[\s\d])[ \t]{1,3}"
    return rf"(?:(?<=[\s\d])|^){re.escape(name)}[ \t]{{0,3}}"


def _slots(lines: Iterable[str]) -> Iterator[_Slot]:
    found: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for line in lines:
        seen = set()
        for match in _NUMBER.finditer(line[:BEGINNING_CHARACTERS]):
            name = match[1].rstrip() or (_SPACE if match.start(2) else _AT_START)
            if name in seen or _COUNTER.search(name) or _is_within_a_number(line, match):
                continue
            seen.add(name)
            number = read_int(match[2])
            if number is not None:
                before = _DIGITS.sub("0", line[: match.start()])
                found[name].append((number, before, line[match.end() :]))
    for key, numbers in found.items():
        yield _Slot(key, numbers)


def _is_within_a_number(line: str, match: re.Match[str]) -> bool:
    """Whether it is a part of a time, a date or a fraction."""
    start = match.start()
    return start > 0 and line[start - 1].isdigit() and _CLOCK.fullmatch(match[1]) is not None


def _tells_the_speaker(slot: _Slot, lines: int) -> bool:
    numbers = slot.numbers
    return (
        len(slot.found) >= max(_MIN_SHARE * lines, _MIN_LINES_OF_A_SPEAKER * len(numbers))
        and len(numbers) > 1
        and _are_ranks(numbers)
        and len({before for _number, before, _behind in slot.found}) <= _MAX_SHAPES
        and _share_messages(slot)
    )


def _are_ranks(numbers: set[int]) -> bool:
    """Whether they follow each other, from 0 or 1, or from where the ranks of a host begin."""
    first, last = min(numbers), max(numbers)
    return last - first < 1.5 * len(numbers) and (first <= 1 or first % len(numbers) == 0)


def _share_messages(slot: _Slot) -> bool:
    """Whether most numbers stand before a message that stands before another number as well, and
    before more than one message."""
    speakers: dict[str, set[int]] = defaultdict(set)
    messages: Counter[int] = Counter()
    for number, _before, behind in slot.found:
        message = _DIGITS.sub("0", behind)[:_MESSAGE_CHARACTERS]
        if _WORDS.search(message) and number not in speakers[message]:
            speakers[message].add(number)
            messages[number] += 1
    sharing = {number for said_by in speakers.values() if len(said_by) > 1 for number in said_by}
    several = sum(count > 1 for count in messages.values())
    return len(sharing) > len(slot.numbers) / 2 and several > 0
