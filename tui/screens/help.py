"""All keys, by place."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.actions import Place, actions_of
from tui.screens.sheet import Sheet
from tui.service_app import ServiceApp


class HelpScreen(Sheet[None]):
    """Made from the registry of actions. What an action does stands in a column of its own."""

    app: ServiceApp

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="sheet") as sheet:
            sheet.border_title = "Keys"
            sheet.border_subtitle = "esc: back"
            for place in Place:
                yield Static(Content.styled(place.value, "bold $primary"), classes="place")
                for action in actions_of(place):
                    keys = action.bound(self.app.settings.keys).shown_keys
                    with Horizontal(classes="action"):
                        yield Static(Content.styled(keys, "bold $accent"))
                        yield Static(Content(action.help), classes="does")
