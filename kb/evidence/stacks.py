"""Python stacks: the exception at their end, and the frames that led to it.

In an interleaved log the lines of other ranks stand between; only those of the rank that began the
stack belong to it, and only what looks like an exception ends it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kb.expression import Expression
from kb.log.prefixes import split_prefix

_FRAME = Expression(r"^\s+(?:File \"(?P<file>[^\"]+)\", line \d+,? in (?P<function>\S+)|\S)")
_EXCEPTION = Expression(r"[A-Za-z_][\w.]*(?:\[[^\]]*\])?(?::|\(|\s*$)|\w+(?: \w+)?: ")
_TAG = Expression(r"[\w@./-]+\[\d+\]: ")
"""The name and the number of a process, as syslog writes them in front of each line."""
_FIRST_WORDS = "Traceback ("
_MAX_STACK_LINES = 400
"""Lines read to the end of a stack, with those of other ranks between them."""
_MAX_FRAMES_KEPT = 4
"""Innermost frames that are kept: those further out are of the program, not of its failure."""


class Stack(msgspec.Struct, frozen=True):
    """What a `Traceback` line leads to."""

    exception: int | None
    """Offset of the line of the exception; None where the log or the next stack comes before it."""
    frames: tuple[str, ...]
    """The innermost frames as `path in function`, innermost first."""


def read_stack(data: bytes, start: int) -> Stack:
    """Read on from the offset of a `Traceback (most recent call last)` line."""
    lines = _lines(data, start)
    speaker, _text = _spoken(next(lines, (0, ""))[1])
    frames: list[str] = []
    for offset, line in lines:
        other, text = _spoken(line)
        if other != speaker:
            continue
        if text.startswith(_FIRST_WORDS):
            break  # a stack without an end: its exception was printed elsewhere, or not at all
        match = _FRAME.match(text)
        if match is None and text.strip() and not _EXCEPTION.match(text):
            continue
        if match is None:
            return Stack(offset if text.strip() else None, _innermost(frames))
        if match["file"]:
            path = "/".join(match["file"].split("/")[-3:])
            frames.append(f"{path} in {match['function']}")
    return Stack(None, _innermost(frames))


def _spoken(line: str) -> tuple[tuple[int | None, str], str]:
    """Who says a line, as far as it tells, and what."""
    spoken = split_prefix(line)
    tag = _TAG.match(spoken.text)
    end = tag.end() if tag else 0
    return (spoken.rank, spoken.text[:end]), spoken.text[end:]


def _innermost(frames: list[str]) -> tuple[str, ...]:
    return tuple(reversed(frames[-_MAX_FRAMES_KEPT:]))


def _lines(data: bytes, start: int) -> Iterator[tuple[int, str]]:
    for _number in range(_MAX_STACK_LINES):
        if start >= len(data):
            return
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield start, data[start:end].decode("utf-8", "replace")
        start = end + 1
