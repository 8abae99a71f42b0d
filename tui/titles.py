"""Titles of candidates, cut so that the part shows in which they differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from textwrap import shorten

_BECAUSE = re.compile(r",? (?=because )")
"""Before it stands what is seen, behind it the cause."""
_ASIDE = re.compile(r" \([^)]*\)")
UNCUT = 1_000
"""A width that no title has."""
_MAX_SEEN_CHARACTERS = 80
"""Of what is seen, in a list where it wraps."""
_MIN_SEEN_CHARACTERS = 24
"""Of what is seen, beside the cause; with less room the cause stands alone."""
_MIN_NAME_CHARACTERS = 8
"""Of a name that is cut."""


def seen_and_cause(title: str) -> tuple[str, str]:
    """What is seen, and because of what; a title that names no cause is all seen."""
    seen, *cause = _BECAUSE.split(title, maxsplit=1)
    return seen, "".join(cause)


def told_apart(titles: Sequence[str], width: int) -> list[str]:
    """Each title in a row of a width. What others of them begin with is left out; else what is seen
    gives way to the cause."""
    parts = [seen_and_cause(title) for title in titles]
    shared = Counter(seen for seen, _cause in parts)
    return [
        _cut(cause if cause and shared[seen] > 1 else _fitted(seen, cause, width), width)
        for seen, cause in parts
    ]


def what_is_seen(title: str) -> str:
    """The first part of a title, short enough for a list."""
    return _cut(_ASIDE.sub("", seen_and_cause(title)[0]), _MAX_SEEN_CHARACTERS)


def _fitted(seen: str, cause: str, width: int) -> str:
    whole = f"{seen}, {cause}" if cause else seen
    left = width - len(cause) - 1
    if len(whole) <= width or not cause:
        return whole
    return f"{_cut(_ASIDE.sub('', seen), left)} {cause}" if left >= _MIN_SEEN_CHARACTERS else cause


def _cut(text: str, width: int) -> str:
    return shorten(text, max(width, len(" …") + 1), placeholder=" …")


def name_cut(name: str, width: int) -> str:
    """A name in a row of a width; its end tells as much as its beginning."""
    width = max(width, _MIN_NAME_CHARACTERS)
    if len(name) <= width:
        return name
    tail = width // 2
    return f"{name[: width - tail - 1]}…{name[-tail:]}"
