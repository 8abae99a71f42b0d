"""The open cases in one line, where there are several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from tui.actions import ACTIONS
from tui.service_app import ServiceApp
from tui.visible import shortened

_MIN_TITLE_CELLS = 8
"""Of a title that is cut; the hint gives way to that."""
_AROUND_CELLS = len("▸1 ") + len(" ")
"""Columns that a case takes beside its title."""
_GAP = Content(" ")
_PLACE = "case"
"""What the cells of a case carry: its place."""


class CaseBar(Static):
    """Number and title of each case; `▸` marks the one on the screen."""

    class Picked(Message):
        """A case was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place
            """Of the case in the row, from 0."""

    app: ServiceApp
    _titles: Sequence[str] = ()
    _current = 0

    def show(self, titles: Sequence[str], current: int) -> None:
        """Name the cases, if there are several; `current`: the place of the one on the screen."""
        self._titles, self._current = titles, current
        self.display = len(titles) > 1
        self._draw()

    def on_resize(self) -> None:
        """More or less of the titles fits."""
        self._draw()

    def on_click(self, event: events.Click) -> None:
        """Ask for the case under the pointer."""
        place = event.style.meta.get(_PLACE)
        if place is not None:
            self.post_message(self.Picked(place))

    def _draw(self) -> None:
        hint, room = self._hint(), self.content_size.width - len(self._titles) * _AROUND_CELLS
        widths = [cell_len(title) for title in self._titles]
        most = _most(widths, room - hint.cell_length)
        if most >= min(_MIN_TITLE_CELLS, max(widths, default=0)):
            self.update(_GAP.join([*self._named(most), hint]))
        else:
            self.update(_GAP.join(self._named(_most(widths, room))))

    def _named(self, most: int) -> Iterator[Content]:
        for place, title in enumerate(self._titles):
            is_current = place == self._current
            style = "bold" if is_current else "dim"
            yield Content.assemble(
                ("▸" if is_current else " ", "bold $accent"),
                (f"{place + 1} ", "bold $accent"),
                (_cut(title, most), style),
            ).stylize(Style.from_meta({_PLACE: place}))

    def _hint(self) -> Content:
        action = next(action for action in ACTIONS if action.name == "next_case")
        keys = action.bound(self.app.settings.keys).shown_keys
        return Content.assemble(" ", (keys, "bold $accent"), " ", (action.hint, "dim"))


def _most(widths: Sequence[int], room: int) -> int:
    """The columns that each title may take, so that all fit."""
    longest = max(widths, default=0)
    fitting = (n for n in range(longest, 0, -1) if sum(min(width, n) for width in widths) <= room)
    return next(fitting, 1)


def _cut(title: str, cells: int) -> str:
    """A title without its middle, where it is wider."""
    shorter = (shortened(title, characters) for characters in range(len(title), 0, -1))
    return next((cut for cut in shorter if cell_len(cut) <= cells), "…")
