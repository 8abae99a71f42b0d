"""The ranked incidents, and above them what to do first where none of them is sure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from kb.verdict import percent
from tui.actions import Place, bindings
from tui.titles import name_cut, told_apart

if TYPE_CHECKING:
    from kb.diagnosis import Match

_BAR_CELLS = 8
"""Columns of the bar of a confidence, where all names leave it that room."""
_INDENT = "     "
"""Of a title, below the confidence."""
_ONE_ROW_COLUMNS = 60
"""A list with fewer columns has two rows for a title."""
OVERVIEW = "?"
"""The id of the row above the incidents, which no record can have."""


class MatchList(OptionList):
    """How sure, which incident, and in what it differs from the others."""

    BINDINGS = bindings(Place.LIST)

    class PageTurned(Message):
        """What the selected row says is to be scrolled."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, identifier: str) -> None:
        super().__init__(id=identifier)
        self._matches: Sequence[Match] = ()
        self._overview = ""
        self._brief = False

    def show(
        self, matches: Sequence[Match], overview: str, *, brief: bool, selected: str | None = None
    ) -> None:
        """List the matches, best first, below an `overview` where it is not empty; `brief`: each in
        one row. Selected is the row with an id, by default the first."""
        self._matches, self._overview, self._brief = matches, overview, brief
        self._list(selected)

    @property
    def selected(self) -> str | None:
        """The id of the selected incident, or `OVERVIEW`."""
        option = self.highlighted_option
        return option.id if option else None

    def select_next(self, by: int) -> None:
        """Select another row, and after the last one the first."""
        if self.option_count:
            self.highlighted = ((self.highlighted or 0) + by) % self.option_count

    def action_read_candidate(self) -> None:
        """Go to what the row says."""
        self.action_select()

    def action_page_down(self) -> None:
        """Scroll what the row says."""
        self.post_message(self.PageTurned(1))

    def action_page_up(self) -> None:
        """Scroll it back."""
        self.post_message(self.PageTurned(-1))

    def on_resize(self) -> None:
        """Cut the titles anew; what is selected stays as it is."""
        for row, option in enumerate(self._described()):
            self.replace_option_prompt_at_index(row, option.prompt)

    def _list(self, kept: str | None) -> None:
        options = list(self._described())
        ids = [option.id for option in options]
        self.clear_options()
        self.add_options(options)
        if ids:
            self.highlighted = ids.index(kept) if kept in ids else 0

    def _described(self) -> list[Option]:
        width = self.scrollable_content_region.width - len(_INDENT)
        rows = 1 if width >= _ONE_ROW_COLUMNS else 2
        titles = told_apart([match.incident.title for match in self._matches], rows * width)
        told = [_wrapped(title, width, 0 if self._brief else rows) for title in titles]
        longest = max((len(match.incident.id) for match in self._matches), default=0)
        cells = max(0, min(_BAR_CELLS, width - 1 - longest))
        options = [
            Option(_line(match, cells, width, title), id=match.incident.id)
            for match, title in zip(self._matches, told, strict=True)
        ]
        if not self._overview:
            return options
        first = Content.styled(name_cut(f"→ {self._overview}", width + len(_INDENT)), "bold")
        return [Option(first, id=OVERVIEW), *options]


def bar(share: float, cells: int) -> Content:
    """A bar that is full at 1."""
    full = round(share * cells)
    return Content.assemble(("━" * full, "$success"), ("╌" * (cells - full), "dim"))


def _line(match: Match, cells: int, width: int, title: str) -> Content:
    share = bar(match.confidence, cells)
    name = name_cut(match.incident.id, width - share.cell_length - bool(cells))
    return Content.assemble(
        (f"{percent(match.confidence):>4} ", "bold"),
        share,
        (f" {name}" if cells else name, "$primary"),
        title,
    )


def _wrapped(title: str, width: int, rows: int) -> str:
    """The title in so many rows of its own, below the confidence."""
    lines = textwrap.wrap(title, max(width, 1), max_lines=rows, placeholder=" …") if rows else []
    return "".join(f"\n{_INDENT}{line}" for line in lines)
