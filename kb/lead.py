"""A report of the user's own backlog that may be about the same case. Nobody reviewed it."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Lead(msgspec.Struct, frozen=True):
    """What is shown of it. All text is quoted from what was imported."""

    id: str
    title: str
    url: str | None
    source: str
    """The file below the imported folder, with "#part" where it holds several."""
    backlog: str
    """The name of the import."""
    score: float
    """The share of such leads that were the right report. It is no confidence."""
    opened: datetime | None
    resolved: bool
    fix: str | None
    """What ended it, as somebody wrote it."""
    fix_by: str | None
    """Who wrote that: reporter, maintainer or other."""
    fix_from: str | None
    """Where, if in another report of the same case."""
    quote: str
    """What of it matches: the line that shares most with the question."""
    environment: tuple[str, ...] = ()
    """Systems and versions that it names, such as "pytorch 2.4.0"."""
    seen: int = 1
    """Reports of the same case, with itself."""
    also: tuple[str, ...] = ()
    """Where the others of them are."""

    @property
    def where(self) -> str:
        """Its address, else its file."""
        return self.url or f"{self.backlog}: {self.source}"

    @property
    def standing(self) -> str:
        """When it was, and how it ended, in a few words."""
        day = f"{self.opened:%Y-%m-%d}, " if self.opened else ""
        ended = "solved" if self.resolved else "answered" if self.fix else "no remedy in it"
        times = f", seen {self.seen} times" if self.seen > 1 else ""
        return f"{day}{ended}{times}"
