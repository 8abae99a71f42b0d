"""Soft line breaks of Markdown: the author wrapped a line there; for the reader it is a space."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FENCE = re.compile(r"\s*(?:```|~~~)")
_BULLET = re.compile(r"\s*[-*+]\s")
_NUMBER = re.compile(r"\s*(\d{1,9})[.)]\s")
"""An item of a list has at most nine digits (CommonMark, 5.2)."""


def join_soft_breaks(markdown: str) -> str:
    """Write each paragraph and each list item on one line; empty lines and code stay."""
    lines: list[str] = []
    in_code = False
    for line in markdown.split("\n"):
        if in_code or not lines or _begins_block(line, lines):
            lines.append(line)
        else:
            lines[-1] += " " + line.lstrip()
        in_code ^= bool(_FENCE.match(line))
    return "\n".join(lines)


def _begins_block(line: str, before: Sequence[str]) -> bool:
    if not line.strip() or not before[-1].strip():
        return True
    return bool(_FENCE.match(line) or _FENCE.match(before[-1])) or _begins_item(line, before)


def _begins_item(line: str, before: Sequence[str]) -> bool:
    """A sentence may go on with a number and a full stop. An item has the number 1, stands below a
    colon, or has the number after that of an earlier item."""
    number = _number(line)
    if number is None:
        return bool(_BULLET.match(line))
    return number == 1 or before[-1].endswith(":") or number - 1 in map(_number, before)


def _number(line: str) -> int | None:
    match = _NUMBER.match(line)
    return int(match[1]) if match else None
