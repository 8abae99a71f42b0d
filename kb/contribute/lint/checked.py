"""A file of the right shape, as the rules see it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from kb.guides import Guide
from kb.incident import Incident


class CheckedText(msgspec.Struct, frozen=True):
    """A file of the right shape, of any kind."""

    name: str
    lines: tuple[str, ...]
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


class CheckedFile(CheckedText, frozen=True):
    """The file of an incident."""

    incident: Incident


class CheckedGuide(CheckedText, frozen=True):
    """The file of a check or playbook."""

    guide: Guide


class GuideLibrary(msgspec.Struct, frozen=True):
    """Whatever a guide can name."""

    guides: Sequence[CheckedGuide]
    incidents: Collection[str]
    """Their ids."""

    @property
    def chosen(self) -> list[CheckedGuide]:
        """The files that the user asked about."""
        return [file for file in self.guides if file.chosen]
