"""The first screen, called again."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from tui.screens.sheet import Sheet
from tui.service_app import ServiceApp
from tui.tour import SAMPLE_COUNT, tour


class TourScreen(Sheet[int | None]):
    """Ends with the number of the sample that is picked."""

    app: ServiceApp

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="sheet") as sheet:
            sheet.border_title = "Tour"
            sheet.border_subtitle = "1-3: try a sample, esc: back"
            yield Static(tour(self.app.in_browser))

    def on_key(self, event: events.Key) -> None:
        """Pick a sample."""
        if event.key.isdecimal() and 1 <= int(event.key) <= SAMPLE_COUNT:
            self.dismiss(int(event.key))
