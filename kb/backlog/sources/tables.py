"""Tables of tickets: CSV, TSV, and objects with flat fields. Their columns are guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def guess_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Mapping[str, str]:
    """Which column holds which field of a thread, by its name and what stands in it."""
    raise NotImplementedError
