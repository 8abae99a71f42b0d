"""What went wrong on the way and was made good: the forms are rows of `kb/rules/setbacks.toml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from kb.expression import Expression
from kb.rules import read_rows
from kb.rules.rows import Setback

_MAX_LINE = 2_000
"""Characters of a line that are looked at."""
_NAMED = "<of>"
_GRAVE = Expression(
    r"\b(?:CUDA|NCCL|HIP|RCCL|Xid|ECC|NaN|OOM|out of memory|illegal|segmentation|segfault|assert\w*"
    r"|killed|traceback|no space|quota|read-only)\b|[a-z](?:Error|Exception)\b"
    r"|\u663e\u5b58|\u78c1\u76d8|\u5185\u5b58\u4e0d\u8db3",
    re.IGNORECASE,
)
"""What is worth a look though the work went on."""


def without_setbacks(lines: Sequence[str]) -> list[str] | None:
    """The lines without those that tell of a setback; None if there is none, or if one of them was
    not made good."""
    told = {place: rows for place, line in enumerate(lines) if (rows := _setbacks_in(line))}
    if not told or not all(
        any(is_overcome(row, lines, place) for row in rows) for place, rows in told.items()
    ):
        return None
    return ["" if place in told else line for place, line in enumerate(lines)]


def is_overcome(row: Setback, lines: Sequence[str], place: int) -> bool:
    """Whether a line behind that of a setback says that it was made good."""
    found = re.search(row.pattern, lines[place][:_MAX_LINE])
    if found is None:
        return False
    named = found.groupdict().get("of") or ""
    answer = re.compile(row.overcome.replace(_NAMED, re.escape(named.strip())))
    return any(answer.search(line[:_MAX_LINE]) for line in lines[place + 1 :])


def _setbacks_in(line: str) -> list[Setback]:
    line = line[:_MAX_LINE]
    if _GRAVE.search(line):
        return []
    return [row for row in _setbacks() if re.search(row.pattern, line)]


@cache
def _setbacks() -> tuple[Setback, ...]:
    return read_rows("setbacks", "setback", Setback)
