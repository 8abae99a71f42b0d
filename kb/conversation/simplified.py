"""Traditional Chinese in simplified characters, in which all phrases and sentences here are."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path


def simplified(text: str) -> str:
    """The text with simplified characters, one for one; what has none stays as it is."""
    return text.translate(_table())


@cache
def _table() -> dict[int, str]:
    source = Path(__file__).with_name("simplified.toml").read_text(encoding="utf-8")
    return {ord(old): new for old, new in tomllib.loads(source)["pairs"].split()}
