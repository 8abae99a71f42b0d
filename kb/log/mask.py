"""Hide what differs between two prints of the same line: times, addresses, paths, numbers.

Two lines with the same mask say the same. Identifiers with digits in them (`H100`, `zero3`,
`fp16`) are names and stay; a path keeps its last two parts, and an address its kind: what listens
on the loopback is not reached from another host. The details are rows of `kb/rules/masks.toml`.
"""

from __future__ import annotations

import re
from functools import cache

from kb.rules import read_rows, without_names
from kb.rules.rows import Mask

_DIGITS = re.compile(r"\d+")


def mask(text: str) -> str:
    """Return the text with its details hidden."""
    details, shown = _details()
    return details.sub(lambda match: shown[match.lastgroup or ""], text)


def shape_of(text: str) -> str:
    """The part that like lines of different ranks and steps share: a number may be part of a word,
    such as the name of a rank or a time with its unit."""
    return _DIGITS.sub("#", mask(text))


@cache
def _details() -> tuple[re.Pattern[str], dict[str, str]]:
    """All rows as one expression, and what stands for each of its groups. At most places the
    character alone tells that no row begins there."""
    rows = {f"m{number}": row for number, row in enumerate(read_rows("masks", "mask", Mask))}
    begins = "".join(row.begins for row in rows.values())
    any_detail = "|".join(
        f"(?P<{group}>(?=[{row.begins}]){without_names(row.pattern)})"
        for group, row in rows.items()
    )
    shown = {group: row.shown for group, row in rows.items()}
    return re.compile(f"(?=[{begins}])(?:{any_detail})"), shown
