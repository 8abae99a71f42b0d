"""What a sentence says about the end of a case: that it worked, what changed, what to try. The
turns of phrase are rows of `wording.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import Flag, auto
from functools import cache
from pathlib import Path

import msgspec


class Says(Flag):
    """What a sentence says. More than one may be true."""

    NOTHING = 0
    WORKED = auto()
    """The trouble is over."""
    SOLVED = auto()
    """It tells what ended the trouble, or what it came from."""
    CHANGE = auto()
    """A change or a release ends it."""
    ADVICE = auto()
    """What to do."""
    EXPLAINS = auto()
    """Why it is so."""
    DENIED = auto()
    """The trouble goes on, or something did not help."""
    UNSOLVED = auto()
    """It was given up: stale, not reproducible, not to be fixed."""
    DUPLICATE = auto()
    """Another thread has it."""
    HEDGED = auto()
    """Whoever says it is not sure."""
    DID = auto()
    """What was done, without a word on whether it helped."""
    OVER = auto()
    """A label of the last news: "Resolved:"."""


class _Row(msgspec.Struct, frozen=True):
    """A turn of phrase."""

    kind: str
    pattern: str
    words: tuple[str, ...] = ()


class _Turn(msgspec.Struct, frozen=True):
    """A row, ready to search with."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]


_CONCRETE = re.compile(
    r"`[^`]+`|https?://|--\w|\b\w+=\S|\b[A-Z]{2,}_[A-Z_]+\b|\bv?\d+\.\d+|\bpip\b|\bconda\b|\bapt\b"
    r"|\w\(\)|#\d+|\w\.\w+\.\w|[A-Za-z]_[A-Za-z]"
)
_DUPLICATE = re.compile(
    r"\b(?:duplicates?|dup|dupe|duplicated?)\s*(?:of|by|with|to|:)\s*(?:issue |bug |ticket )?"
    r"(?P<other>#\d+|[\w./-]{1,100}#\d+|https?://[^\s)>\]]+|[A-Z][A-Z0-9]+-\d+)"
    r"|\b(?:same|identical)(?: \w+)? (?:as|to) (?:issue |bug )?"
    r"(?P<same>#\d+|https?://\S+/(?:issues|discussions)/\d+)\W*$"
    r"|\bclos(?:ing|ed?)\b.{0,40}\b(?:in favou?r of|as (?:a )?dup\w*(?: of)?"
    r"|track(?:ed)? (?:in|by))\s*(?P<favour>#\d+|https?://[^\s)>\]]+)"
    r"|重复.{0,6}(?P<zh>#\d+)",
    re.IGNORECASE,
)
_MAX_CHARACTERS = 1_000
"""Of a sentence that is looked at: a longer one is no sentence."""
_BEFORE_CHARACTERS = 60
"""In front of words of success, where something may take them back."""


def reading(sentence: str) -> Says:
    """What a sentence says about the end of the case."""
    text = " ".join(sentence[:_MAX_CHARACTERS].split())
    lowered = text.lower()
    says = Says.NOTHING
    for kind, what in (
        ("unsolved", Says.UNSOLVED),
        ("denied", Says.DENIED),
        ("hedged", Says.HEDGED),
        ("did", Says.DID),
        ("over", Says.OVER),
        ("explains", Says.EXPLAINS),
    ):
        if _has(kind, text, lowered):
            says |= what
    if says & Says.DENIED and _has("supposes", text, lowered):
        says &= ~Says.DENIED
    if duplicate_in(text):
        says |= Says.DUPLICATE
    if says & (Says.UNSOLVED | Says.DUPLICATE):
        return says
    asks = text.endswith(("?", "？")) or _has("asks", text, lowered)
    if not asks:
        says |= _success(text, lowered, denied=bool(says & Says.DENIED))
    if (not asks or _has("tries", text, lowered)) and _advises(text, lowered):
        says |= Says.ADVICE
    return says


def is_concrete(sentence: str) -> bool:
    """Whether a sentence names something of the field: a flag, a version, a command."""
    return _CONCRETE.search(sentence) is not None


def duplicate_in(text: str) -> str | None:
    """The thread that a sentence names as the same."""
    if not any(word in text for word in ("up", "same", "dentical", "los", "重复")):
        return None
    found = _DUPLICATE.search(text)
    return next(filter(None, found.groups()), None) if found else None


def _advises(text: str, lowered: str) -> bool:
    return _has("advice", text, lowered) or (is_concrete(text) and _has("contrast", text, lowered))


def _success(text: str, lowered: str, *, denied: bool) -> Says:
    says = Says.NOTHING
    worked = _is_sure(text, lowered)
    if worked and not denied:
        says |= Says.WORKED
    finds = not denied and _has("finds", text, lowered)
    refers = not is_concrete(text) and _has("refers", text, lowered)
    if (worked or finds) and not refers and _has("remedy", text, lowered):
        says |= Says.SOLVED
    if not denied and _has("change", text, lowered) and not _has("negated", text, lowered):
        says |= Says.CHANGE
    return says


def _is_sure(text: str, lowered: str) -> bool:
    """Whether words of success are not taken back by what stands around them."""
    for found in _matches("worked", text, lowered):
        before = text[max(0, found.start() - _BEFORE_CHARACTERS) : found.start()]
        behind = text[found.end() :]
        if not (
            _has("unsure", before, before.lower())
            or _has("behind", behind, behind.lower())
            or _has("within", found[0], found[0].lower())
        ):
            return True
    return False


def _has(kind: str, text: str, lowered: str) -> bool:
    return any(turn.pattern.search(text) for turn in _near(kind, lowered))


def _matches(kind: str, text: str, lowered: str) -> Iterator[re.Match[str]]:
    for turn in _near(kind, lowered):
        yield from turn.pattern.finditer(text)


def _near(kind: str, lowered: str) -> Iterator[_Turn]:
    """The rows of which a word stands in a sentence."""
    for turn in _turns()[kind]:
        if not turn.words:
            yield turn
        for word in turn.words:
            if word in lowered:
                yield turn
                break


@cache
def _turns() -> Mapping[str, tuple[_Turn, ...]]:
    source = tomllib.loads(Path(__file__).with_name("wording.toml").read_text("utf-8"))
    names: dict[str, str] = source["names"]
    turns: dict[str, list[_Turn]] = {}
    for row in msgspec.convert(source["row"], tuple[_Row, ...]):
        pattern = re.sub(r"\{([a-z]+)\}", lambda found: names[found[1]], row.pattern)
        turns.setdefault(row.kind, []).append(_Turn(row.words, re.compile(pattern, re.IGNORECASE)))
    return {kind: tuple(rows) for kind, rows in turns.items()}
