"""The draft of a new incident, to be completed and written."""

from __future__ import annotations

from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static, TextArea

from kb.errors import OutputError
from kb.files import write_new
from kb.incident import Incident
from kb.log.clean import strip_controls
from kb.markdown import render
from kb.paths import expand_user
from tui.actions import Place, bindings
from tui.service_app import ServiceApp
from tui.widgets.hints import Hints


class DraftScreen(Screen[Path | None]):
    """An editor of one record; ends with the path that was written, or the name of what the browser
    got."""

    app: ServiceApp
    BINDINGS = bindings(Place.DRAFT)
    PLACES = (Place.DRAFT,)
    AUTO_FOCUS = "#draft"

    def __init__(self, record: Incident, directory: Path) -> None:
        super().__init__()
        self._draft = render(record)
        self._path = directory / f"{record.id}.md"
        self._is_written = False

    @property
    def is_draft(self) -> bool:
        """Whether leaving loses what was typed."""
        return not self._is_written and self.query_one("#draft", TextArea).text != self._draft

    def compose(self) -> ComposeResult:
        with Vertical(classes="pane") as pane:
            pane.border_title = "Draft of an incident"
            pane.border_subtitle = "fill in the parts marked TODO"
            yield TextArea(self._draft, language=None, id="draft", show_line_numbers=True)
        path = self._path.name if self.app.in_browser else self._path
        yield Input(str(path), id="path", select_on_focus=False)
        yield Static(id="wrong")
        hints = Hints(id="hints")
        yield hints
        hints.show(Place.DRAFT)

    def action_save(self) -> None:
        """Write it to a new file."""
        name, text = self.query_one("#path", Input).value, self.query_one("#draft", TextArea).text
        try:
            if self.app.in_browser:
                written = Path(self.app.hand_over(Path(name).name, text))
            else:
                written = write_new(expand_user(name), text.encode())
        except OutputError as error:
            self.query_one("#wrong", Static).update(Content(strip_controls(str(error))))
            return
        self._is_written = True
        self.dismiss(written)
