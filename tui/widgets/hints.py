"""The last line: at most six actions that are at hand here."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from tui.actions import Place, hints


class Hints(Static):
    """What can be done here."""

    def show(self, place: Place) -> None:
        """Name the actions of a place."""
        pieces = [
            Content.assemble((action.shown_key(place), "bold $accent"), " ", (action.hint, "dim"))
            for action in hints(place)
        ]
        self.update(Content("   ").join(pieces))
