"""The last searches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from kb.history import Search
from kb.service.input import UserInput
from tui.actions import Place, bindings
from tui.widgets.hints import Hints

_EMPTY = "No searches yet."
_MAX_TITLE_CHARACTERS = 90
"""A title fits on one row of a wide terminal."""
_OFF = "Searches are not saved, because the configuration sets history = false."


class HistoryScreen(Screen[UserInput | None]):
    """Ends with what is to be searched for again."""

    BINDINGS = bindings(Place.HISTORY)
    PLACES = (Place.HISTORY,)

    def __init__(self, searches: Sequence[Search], on: bool) -> None:
        super().__init__()
        self._searches = searches
        self._on = on

    def compose(self) -> ComposeResult:
        listed = OptionList(*(Option(_line(search)) for search in self._searches), classes="pane")
        listed.border_title = "Last searches"
        yield listed
        if not self._searches:
            listed.display = False
            yield Static(_EMPTY if self._on else _OFF, classes="headline")
        hints = Hints(id="hints")
        yield hints
        hints.show(Place.HISTORY)

    @on(OptionList.OptionSelected)
    def action_search_again(self) -> None:
        """Search for what is selected."""
        place = self.query_one(OptionList).highlighted
        if place is not None:
            search = self._searches[place]
            name = ", ".join(search.paths)
            self.dismiss(UserInput(search.text, tuple(map(Path, search.paths)), name))


def _line(search: Search) -> Content:
    when = search.time.astimezone().strftime("%Y-%m-%d %H:%M")
    found = search.incident or search.verdict
    return Content.assemble(
        (f"{when}  ", "dim"),
        shorten(search.title, _MAX_TITLE_CHARACTERS, placeholder=" …"),
        "\n",
        (f"{'':18}{found}", "$primary"),
    )
