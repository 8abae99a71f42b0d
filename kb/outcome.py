"""How a case ended: what the tool remembers of it for the next time."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """A case that the user said is solved."""

    time: datetime
    """With its time zone."""
    record: str
    """The id of the incident; empty where none was known."""
    step: int = 0
    """The step of its fix that helped, from 1; 0 where nobody knows."""

    def __post_init__(self) -> None:
        """A time of no clock is damage, and cannot be shown in every zone."""
        self.time.astimezone()
