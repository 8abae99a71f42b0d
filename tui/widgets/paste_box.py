"""The box in which errors are pasted and questions typed."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.timer import Timer

from kb.errors import OutputError
from kb.service.input import UserInput, attach, is_large
from tui.actions import Place, bindings
from tui.pasted import cleaned, with_line_ends
from tui.widgets.chat_box import ChatBox

_QUIET_SECONDS = 0.15
"""A paste is searched for after so much quiet: terminals hand over long ones in parts."""
_SAMPLE_KEYS = ("1", "2", "3")


class PasteBox(ChatBox):
    """Searches by itself for what is pasted; a large paste becomes an attachment."""

    BINDINGS = bindings(Place.BOX)

    class Asked(Message):
        """The user wants to know about this."""

        def __init__(self, user_input: UserInput) -> None:
            super().__init__()
            self.user_input = user_input

    class SampleChosen(Message):
        """A key of the tour was pressed while the box is empty."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__("box")
        self.border_title = "Paste an error or a log, or type a question"
        self.touring = False
        """Whether the keys of the tour are at hand."""
        self._asked = ""
        self._shown_row = 0
        self._quiet: Timer | None = None

    @property
    def is_draft(self) -> bool:
        """Whether something was typed that was not searched for."""
        return bool(self.text.strip()) and self.text != self._asked

    def take(self, text: str) -> None:
        """Put a text into the box, as if pasted."""
        text = with_line_ends(text)
        if is_large(text):
            self._take_large(text)
            return
        if self.text == self._asked:
            self.clear()
        self.insert(cleaned(text))
        if self._quiet:
            self._quiet.stop()
        self._quiet = self.set_timer(_QUIET_SECONDS, self.send)

    def _take_large(self, text: str) -> None:
        try:
            self.post_message(self.Asked(attach(text)))
        except OutputError as error:
            self.notify(str(error), severity="error", markup=False)

    def action_search(self) -> None:
        """Ask about what is in the box."""
        self.send_soon()

    def send(self) -> None:
        """Ask at once."""
        self._asked = self.text
        if self.text.strip():
            self.post_message(self.Asked(UserInput(text=self.text)))

    def show_asked(self, text: str) -> None:
        """Show what was asked elsewhere."""
        self._asked = text
        self.load_text(text)

    def show_line(self, number: int) -> None:
        """Show this line of what was asked while the box is small."""
        self._shown_row = min(number, self.document.line_count) - 1
        if not self.has_focus:
            self.on_blur()

    def on_blur(self) -> None:
        """Show what tells most of what was asked."""
        self.move_cursor((self._shown_row, 0))

    def on_resize(self) -> None:
        """Keep it in view where the box gets smaller."""
        if not self.has_focus:
            self.scroll_cursor_visible(animate=False)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.take(event.text)

    async def _on_key(self, event: events.Key) -> None:
        if self.touring and not self.text and event.character in _SAMPLE_KEYS:
            event.stop()
            event.prevent_default()
            self.post_message(self.SampleChosen(int(event.character)))
        else:
            await super()._on_key(event)
