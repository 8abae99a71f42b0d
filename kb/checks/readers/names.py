"""Names in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

MAX_NAMED = 6
"""More are counted."""


def named(names: Sequence[str]) -> str:
    """`a, b, c and 9 more`."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def ranks(numbers: Sequence[int]) -> str:
    """`rank 3`, `ranks 3, 4`."""
    return f"rank{'s' if len(numbers) > 1 else ''} {named([str(number) for number in numbers])}"


def capital(text: str) -> str:
    """The sentence with a capital."""
    return text[:1].upper() + text[1:]
