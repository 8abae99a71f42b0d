"""The ranked incidents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from kb.verdict import percent

if TYPE_CHECKING:
    from kb.diagnosis import Match

_BAR_CELLS = 8
"""Columns of the bar of a confidence."""
_MAX_SYSTEMS = 3
"""Number of systems named in a row."""
_MAX_TITLE_CHARACTERS = 80
"""Of a title in the list, where it wraps."""
_ASIDE = re.compile(r" \([^)]*\)")
_BECAUSE = re.compile(r",? because ")
"""Before it stands what is seen, behind it the cause."""


class MatchList(OptionList):
    """How sure, which systems, and what is seen."""

    _first: Sequence[str] = ()

    def show(self, matches: Sequence[Match]) -> None:
        """List the matches, best first. The selected one stays selected unless another is first."""
        ids = [match.incident.id for match in matches]
        kept = self.selected if ids[:1] == self._first else None
        self._first = ids[:1]
        self.clear_options()
        self.add_options(Option(_line(match), id=match.incident.id) for match in matches)
        if ids:
            self.highlighted = ids.index(kept) if kept in ids else 0

    @property
    def selected(self) -> str | None:
        """The id of the selected incident."""
        option = self.highlighted_option
        return option.id if option else None


def what_is_seen(title: str) -> str:
    """The first part of a title, short enough for a list."""
    seen = _ASIDE.sub("", _BECAUSE.split(title)[0])
    return shorten(seen, _MAX_TITLE_CHARACTERS, placeholder=" …")


def bar(share: float, cells: int) -> Content:
    """A bar that is full at 1."""
    full = round(share * cells)
    return Content.assemble(("━" * full, "$success"), ("╌" * (cells - full), "dim"))


def _line(match: Match) -> Content:
    systems = ", ".join(match.incident.header.systems[:_MAX_SYSTEMS])
    return Content.assemble(
        (f"{percent(match.confidence):>4} ", "bold"),
        bar(match.confidence, _BAR_CELLS),
        (f" {systems}\n", "dim"),
        what_is_seen(match.incident.title),
    )
