"""A file of the right shape, as the rules see it."""

from __future__ import annotations

import msgspec

from kb.incident import Incident


class CheckedFile(msgspec.Struct, frozen=True):
    """A file of the right shape."""

    name: str
    lines: tuple[str, ...]
    incident: Incident
    chosen: bool
    """Whether the user asked about this file; the others are there to compare with."""
    shipped: bool
    """Whether it comes with the package, where a team of its own records cannot change it."""

    @property
    def source(self) -> bytes:
        """The content of the file."""
        return "\n".join(self.lines).encode()

    def line_of(self, text: str) -> int:
        """Number of the first line that holds the text, from 1; 1 when none does."""
        return next((number for number, line in enumerate(self.lines, 1) if text in line), 1)
