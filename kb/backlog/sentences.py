"""A post cut into sentences and pieces of code, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_FENCED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,}).*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_END = re.compile(
    r"(?<![\s.][A-Za-z])(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\betc)[.!?]+[)\"'*_]*(?=\s)"
    r"|[。！？；]|\n"
)
"""Where a sentence ends. A line is one at most: who writes in a tracker breaks lines at ends."""
_WRAPPED = re.compile(
    r"^[^\n]{59,}[^\s.!?。！？:：;；`]\n(?=[ \t]{0,4}[a-z(`\u4e00-\u9fff])", re.MULTILINE
)
"""... but for a text that was broken at a width: a long line, and the next one goes on in lower
case."""


class Sentence(msgspec.Struct, frozen=True):
    """A sentence, or a piece of code."""

    start: int
    end: int
    text: str
    is_code: bool = False


def sentences(text: str) -> list[Sentence]:
    """All sentences of a post, in order."""
    found: list[Sentence] = []
    start = 0
    for code in _FENCED.finditer(text):
        found += _in_prose(text, start, code.start())
        found.append(Sentence(code.start(), code.end(), code[0], is_code=True))
        start = code.end()
    found += _in_prose(text, start, len(text))
    return found


def _in_prose(text: str, start: int, end: int) -> Iterator[Sentence]:
    wrapped = {found.end() - 1 for found in _WRAPPED.finditer(text, start, end)}
    begin = start
    for stop in _END.finditer(text, start, end):
        if stop[0] == "\n" and stop.start() in wrapped:
            continue
        if text[begin : stop.end()].strip():
            yield _stripped(text, begin, stop.end())
        begin = stop.end()
    if text[begin:end].strip():
        yield _stripped(text, begin, end)


def _stripped(text: str, start: int, end: int) -> Sentence:
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return Sentence(start, start + len(part.strip()), part.strip())
