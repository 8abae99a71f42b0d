"""What reads like trouble and is none: the forms are rows of `[[notice]]` in `endings.toml`."""

from __future__ import annotations

import re
from functools import cache

from kb.rules import any_of, read_rows
from kb.rules.rows import Notice


def is_notice(line: str) -> bool:
    """Whether healthy runs print this line too, though it has words of trouble or of a person."""
    return _any_notice().search(line) is not None


@cache
def _any_notice() -> re.Pattern[str]:
    rows = read_rows("endings", "notice", Notice)
    return any_of(row.pattern for row in rows)
