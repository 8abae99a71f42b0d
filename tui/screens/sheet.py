"""A screen above another one."""

from __future__ import annotations

from textual.screen import ModalScreen, ScreenResultType

from tui.actions import Place, bindings


class Sheet(ModalScreen[ScreenResultType]):
    """Hides the keys of what is below; those that work anywhere work here too."""

    BINDINGS = bindings(Place.ANYWHERE, "app.")
