"""Sizes as programs print them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([KMGTP]?)(?:i?B|i)?")
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}

GIB = 1 << 30
"""Bytes."""


def read_size(text: str, unit: int = 1) -> float | None:
    """Bytes of `64M`, `1.5Ti`, `12.3 GiB`; of a bare number in units of so many bytes. None if it
    is no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number, factor = match.groups()
    return float(number) * (_FACTORS[factor] if factor else unit)


def gib(size: float) -> str:
    """Bytes in words."""
    return f"{size / GIB:.1f} GiB"
