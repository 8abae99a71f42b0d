"""Who says a line, where no table knows the way: a number or a name in front of most lines that
takes the same few values again and again, each of them in front of the same messages.

Steps only grow, times and sizes do not come back, and a module has messages of its own.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile

import msgspec

from kb.expression import Expression
from kb.numbers import read_int
from kb.rules import host_pattern

BEGINNING_CHARACTERS = 110
"""The part of a line in which its speaker is looked for: further on, words speak of others."""
_NO_PART_OF_MORE = r"(?!\d|[.:,]\d|[%x])"
_NUMBER = Expression(
    rf"(?:(?<=[\s\d])|^)([^\d\s]{{0,24}}[ \t]{{0,3}})(\d{{1,5}}){_NO_PART_OF_MORE}"
)
_AT_START, _SPACE = "", " "
"""Names of a number with which a line begins, and of one that stands alone."""
_CLOCK = Expression(r"[.:,/+T-]*")
"""What stands before a number within a time, a date or a fraction."""
_NO_SPEAKER = Expression(
    r"(?:^|[^a-z])(?:node|host|nid|cn|dgx|hgx|v|it|its|iter|iters|iteration|step|steps|epoch|ep|batch|mb|layer|layers|expert|bucket"
    r"|chunk|item|sample|fold|trial|try|attempt|retry|line|page|size|round|version|pid|tid|port"
    r"|loss|lr|acc|err|error|code|xid|exit|status|signal|len|n|num|count|total|top|at|of|in|to)"
    r"[^a-z\d]*$",
    re.IGNORECASE,
)
_NAME = Expression(r"(?<![\w.-])[A-Za-z][\w-]{1,40}(?![\w-]*(?:[(=]|\.\w))")
_LEVEL = Expression(host_pattern("level"), re.IGNORECASE)
_WORDS_OF_A_BEGINNING = 4
"""Words in front of a message, behind a time: a program, a level, a host and a rank at most."""
_DIGITS = Expression(r"\d+")
_LAST_WORD = Expression(r"\w*$")
_WORDS = Expression(r"[^\W\d]{2,}")
_MIN_SHARE = 0.5
"""Of the lines that have the number: what stands in the middle of messages is in fewer."""
_SHARE_OF_ALL = 0.95
"""Of the lines: a transport stands in front of all, but for a few of its own."""
_MIN_LINES_OF_A_SPEAKER = 2
_MAX_SHAPES = 6
"""Of what stands before the number, digits apart: a level or a module may stand there as well."""
_MESSAGE_CHARACTERS = 60
"""By which two messages are the same, digits apart."""


class _Slot(msgspec.Struct, frozen=True):
    """The speakers behind one beginning, in the lines of a sample."""

    name: str
    found: list[tuple[str, str, str]]
    """Of each line: the speaker, what stands before it and what behind it."""

    @property
    def speakers(self) -> set[str]:
        return {speaker for speaker, _before, _behind in self.found}


def find_slot(lines: Sequence[str]) -> re.Pattern[str] | None:
    """The expression of the number (group `rank`) or else of the name (group `host`) that tells who
    speaks, if one does."""
    numbers = [
        slot
        for slot in _numbers(lines)
        if _are_ranks(set(map(int, slot.speakers))) and _tells_the_speaker(slot, len(lines))
    ]
    if numbers:
        best = max(numbers, key=lambda slot: _trust(slot, len(lines)))
        rank = rf"{_before(best.name)}(?P<rank>\d{{1,5}}){_NO_PART_OF_MORE}"
        return re.compile(f"{rank}(?:{_common_beginning(best)})?")
    names = [slot for slot in _names(lines) if _tells_the_speaker(slot, len(lines))]
    if not names:
        return None
    name = max(names, key=lambda slot: _trust(slot, len(lines)))
    before = r"\d+".join(map(re.escape, name.name.split("0")))
    host = "|".join(map(re.escape, sorted(_sharing(name), key=len, reverse=True)))
    return re.compile(rf"^{before}(?P<host>{host})(?![\w-])(?:{_common_beginning(name)})?")


def _trust(slot: _Slot, lines: int) -> tuple[bool, int, int]:
    """By which the best of several is chosen: what stands in all lines names the speaker, and a
    step that most lines tell of does not."""
    is_everywhere = len(slot.found) >= _SHARE_OF_ALL * lines
    return is_everywhere, len(slot.speakers), len(slot.found)


def _common_beginning(slot: _Slot) -> str:
    """An expression of what follows the speaker in all lines, up to the end of a word."""
    columns = zip(
        *(_DIGITS.sub("0", behind) for _speaker, _before, behind in slot.found), strict=False
    )
    common = "".join(column[0] for column in takewhile(lambda one: len(set(one)) == 1, columns))
    return r"\d+".join(map(re.escape, _LAST_WORD.sub("", common).split("0")))


def _before(name: str) -> str:
    if name in (_AT_START, _SPACE):
        return "^" if name == _AT_START else r"(?<=[\s\d])[ \t]{1,3}"
    return rf"(?:(?<=[\s\d])|^){re.escape(name)}[ \t]{{0,3}}"


def _numbers(lines: Iterable[str]) -> Iterator[_Slot]:
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for line in lines:
        seen = set()
        for match in _NUMBER.finditer(line[:BEGINNING_CHARACTERS]):
            name = match[1].rstrip() or (_SPACE if match.start(2) else _AT_START)
            if name in seen or _NO_SPEAKER.search(name) or _is_within_a_number(line, match):
                continue
            seen.add(name)
            number = read_int(match[2])
            if number is not None:
                before = _DIGITS.sub("0", line[: match.start()])
                found[name].append((str(number), before, line[match.end() :]))
    for key, numbers in found.items():
        yield _Slot(key, numbers)


def _names(lines: Iterable[str]) -> Iterator[_Slot]:
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for line in lines:
        words = _NAME.finditer(line[:BEGINNING_CHARACTERS])
        for match in islice(words, _WORDS_OF_A_BEGINNING):
            before = _DIGITS.sub("0", line[: match.start()])
            found[before].append((match[0], before, line[match.end() :]))
    for before, names in found.items():
        if not any(_LEVEL.fullmatch(name) for name, _before, _behind in names):
            yield _Slot(before, names)


def _is_within_a_number(line: str, match: re.Match[str]) -> bool:
    """Whether it is a part of a time, a date or a fraction."""
    start = match.start()
    return start > 0 and line[start - 1].isdigit() and _CLOCK.fullmatch(match[1]) is not None


def _tells_the_speaker(slot: _Slot, lines: int) -> bool:
    speakers = len(slot.speakers)
    return (
        len(slot.found) >= max(_MIN_SHARE * lines, _MIN_LINES_OF_A_SPEAKER * speakers)
        and speakers > 1
        and len({before for _speaker, before, _behind in slot.found}) <= _MAX_SHAPES
        and _share_messages(slot)
    )


def _are_ranks(numbers: set[int]) -> bool:
    """Whether they follow each other, from 0 or 1, or from where the ranks of a host begin."""
    first, last = min(numbers), max(numbers)
    return last - first < 1.5 * len(numbers) and (first <= 1 or first % len(numbers) == 0)


def _share_messages(slot: _Slot) -> bool:
    """Whether most speakers say a message that another one says as well, and one says more than
    one message; of names, whether most lines are such messages."""
    said_by = _said_by(slot)
    messages = Counter(speaker for who in said_by.values() for speaker in who)
    shared = sum(len(said_by[_message(behind)]) > 1 for _speaker, _before, behind in slot.found)
    return (
        len(_sharing(slot)) > len(slot.speakers) / 2
        and max(messages.values(), default=0) > 1
        and (slot.found[0][0].isdigit() or shared > len(slot.found) / 2)
    )


def _sharing(slot: _Slot) -> set[str]:
    """Speakers who say a message that another one says as well."""
    return {speaker for who in _said_by(slot).values() if len(who) > 1 for speaker in who}


def _said_by(slot: _Slot) -> dict[str, set[str]]:
    """Who says each message of some words."""
    said_by: dict[str, set[str]] = defaultdict(set)
    for speaker, _before, behind in slot.found:
        if _WORDS.search(message := _message(behind)):
            said_by[message].add(speaker)
    return said_by


def _message(behind: str) -> str:
    return _DIGITS.sub("0", behind)[:_MESSAGE_CHARACTERS]
