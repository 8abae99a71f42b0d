"""The last line: what can be done here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from textual.content import Content
from textual.widgets import Static

from tui.actions import Action, Place, hints
from tui.service_app import ServiceApp

_GAP = Content("  ")


class Hints(Static):
    """The actions at hand, as many as fit; the last ones, which are at hand anywhere, always do."""

    app: ServiceApp
    _place = Place.BOX
    _away: frozenset[str] = frozenset()

    def show(self, place: Place, away: Iterable[str] = ()) -> None:
        """Name the actions of a place, without those that are not at hand now."""
        self._place, self._away = place, frozenset(away)
        self._draw()

    def on_resize(self) -> None:
        """More or fewer of them fit."""
        self._draw()

    def _draw(self) -> None:
        keys = self.app.settings.keys
        at_hand = (one for one in hints(self._place) if one.identifier not in self._away)
        shown = [one.bound(keys) for one in at_hand]
        own = [_hint(one, self._place) for one in shown if one.place is not Place.ANYWHERE]
        general = [_hint(one, self._place) for one in shown if one.place is Place.ANYWHERE]
        room = self.content_size.width - _width(general)
        self.update(_GAP.join([*_fitting(own, room), *general]))


def _hint(action: Action, place: Place) -> Content:
    return Content.assemble((action.shown_key(place), "bold $accent"), " ", (action.hint, "dim"))


def _width(pieces: Iterable[Content]) -> int:
    return sum(piece.cell_length + len(_GAP) for piece in pieces)


def _fitting(pieces: Iterable[Content], room: int) -> Iterator[Content]:
    for piece in pieces:
        room -= piece.cell_length + len(_GAP)
        if room < 0:
            return
        yield piece
