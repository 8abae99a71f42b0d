"""The reasons that an operating system or a server names: rows of `kb/rules/reasons.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from kb.rules import read_rows
from kb.rules.rows import Reason


def reasons_in(text: str) -> frozenset[str]:
    """The names of the reasons that a text states."""
    return frozenset(name for name, pattern in _patterns().items() if pattern.search(text))


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {row.name: re.compile(row.pattern) for row in read_rows("reasons", "reason", Reason)}
