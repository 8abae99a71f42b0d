"""Textual's way to a browser: the standard streams, on which the server of the screen hands over
keys and takes what is drawn."""

from __future__ import annotations

from textual.drivers import web_driver
from textual.events import Resize
from textual.geometry import Size
from textual.messages import ExitApp

from tui.driver import TerminalParser


class BrowserDriver(web_driver.WebDriver):
    """Ends with its server, however that ends."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        web_driver.XTermParser = TerminalParser  # type: ignore[attr-defined]

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Hear what the page tells beside keys. A size goes the way of the first one, which it
        would overtake else."""
        match packet_type, payload:
            case "resize", {"width": int(width), "height": int(height)}:
                self._size = (width, height)
                self.send_message(Resize(Size(width, height), Size(width, height)))
            case _:
                super().on_meta(packet_type, payload)

    def run_input_thread(self) -> None:
        """Read to the end, which comes when the server is gone; a screen that hears nothing more
        ends."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(ExitApp())
