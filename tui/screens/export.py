"""Where the hand-off note goes."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from kb.errors import OutputError
from kb.files import write_new
from kb.log.clean import strip_controls
from kb.paths import expand_user
from kb.service.handoff import HandOff, to_json
from kb.views.handoff import to_markdown
from tui.screens.sheet import Sheet
from tui.service_app import ServiceApp


class ExportScreen(Sheet[Path | None]):
    """Ends with the path that was written, or the name of what the browser got."""

    app: ServiceApp

    def __init__(self, note: HandOff, suggested: str) -> None:
        super().__init__()
        self._note = note
        self._suggested = suggested

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Write the hand-off note"
            dialog.border_subtitle = "enter: write, esc: back"
            yield Static("A name ending in .json writes JSON; any other name writes Markdown.")
            directory = Path() if self.app.in_browser else Path.cwd()
            yield Input(str(directory / self._suggested), id="path", select_on_focus=False)
            yield Static(id="wrong")

    @on(Input.Submitted)
    def _write(self, event: Input.Submitted) -> None:
        path = Path(event.value) if self.app.in_browser else expand_user(event.value)
        text = to_json(self._note) if path.suffix == ".json" else to_markdown(self._note)
        if self.app.in_browser:
            self.dismiss(Path(self.app.hand_over(path.name, text)))
            return
        try:
            self.dismiss(write_new(path, text.encode()))
        except OutputError as error:
            self.query_one("#wrong", Static).update(Content(strip_controls(str(error))))
