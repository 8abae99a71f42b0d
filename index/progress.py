"""Callbacks for the progress of long work. Each face passes its own; the default does nothing."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[int, int], None]
"""Called with what is done and the total: passages that are encoded, logs that are classified."""
Notify = Callable[[str], None]
"""Called with one sentence that the user should read."""


def silent_report(_done: int, _total: int) -> None:
    """A `Report` to nobody."""


def silent_notify(_sentence: str) -> None:
    """A `Notify` to nobody."""
