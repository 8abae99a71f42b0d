"""What lies in an imported folder, and what is left out of it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec


class Why(StrEnum):
    """Why something is left out; the words that a summary counts."""

    BOT = "written by a bot"
    PULL_REQUEST = "a pull request"
    EMPTY = "nothing is told in it"
    NO_REPORTS = "no reports in it"
    NOT_TEXT = "not text"
    TOO_LARGE = "too large"
    OUTSIDE = "a link out of the folder"
    BROKEN = "cannot be read"


_UNREAD = frozenset((Why.NOT_TEXT, Why.TOO_LARGE, Why.BROKEN))


class Skipped(msgspec.Struct, frozen=True):
    """One thing that is left out."""

    source: str
    """As in a thread: the file below the imported folder, with "#part" where it holds several."""
    why: Why
    detail: str = ""
    """What is wrong with it, for a broken one."""

    @property
    def is_unread(self) -> bool:
        """It may hold reports, and nobody could read them."""
        return self.why in _UNREAD

    def __str__(self) -> str:
        """The notice about it."""
        return f"{self.source}: {self.why}" + (f" ({self.detail})" if self.detail else "")


class UnreadableError(Exception):
    """The rest of a source cannot be read."""

    def __init__(self, why: Why, detail: str) -> None:
        self.why, self.detail = why, detail
        super().__init__(detail)


class Source(msgspec.Struct, frozen=True):
    """What is read together: one file, issues with the file of their comments, or the days of a
    channel."""

    name: str
    """The first file below the imported folder."""
    paths: tuple[Path, ...]
    stamp: str
    """Changes when a file of it does: sizes and times."""
    size: int
    """Bytes of all its files."""
