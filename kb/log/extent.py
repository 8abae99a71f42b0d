"""A part of a plain file that is named by its place, and read when it is looked at."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kb.containment import reason
from kb.errors import LogError
from kb.log.clean import clean_block


class Extent(msgspec.Struct, frozen=True):
    """The text of a block that was read before: small, so that it can be handed to another process.
    All sizes are in bytes."""

    path: Path
    begin: int
    length: int
    """In the file."""
    size: int
    """Of the clean text."""
    is_clean: bool
    """The file holds the clean text as it is."""

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """The clean text.

        Raises:
            LogError: the file cannot be read, or is another one by now.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self.begin)
                raw = file.read(self.length)
        except OSError as error:
            raise LogError(self.path, reason(error)) from error
        text = raw if self.is_clean else clean_block(raw)
        if len(text) != self.size:
            raise has_changed(self.path)
        return text


def has_changed(path: Path) -> LogError:
    """The error for a file of which something is gone that was there before."""
    return LogError(path, "it was changed while it was read; try again when nobody writes to it")
