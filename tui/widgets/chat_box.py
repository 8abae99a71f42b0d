"""A box in which Enter sends what is typed, as in every chat."""

from __future__ import annotations

from time import monotonic

from textual import events
from textual.timer import Timer
from textual.widgets import TextArea

_PASTE_GAP_SECONDS = 0.05
"""A key that comes within it after Enter belongs to a paste, whose lines end in Enter on terminals
that do not mark pastes: nobody types so fast."""


class ChatBox(TextArea):
    """Enter sends; another key begins a new line."""

    def __init__(self, identifier: str) -> None:
        super().__init__(
            show_line_numbers=False, soft_wrap=True, id=identifier, tab_behavior="focus"
        )
        self.match_cursor_bracket = False
        self._sending: Timer | None = None
        self._line_ends = 0
        """Enter keys behind which nothing came so far."""
        self._went_on = 0.0
        """When a key came behind them."""

    def send(self) -> None:
        """Hand over what is typed."""
        raise NotImplementedError

    def send_now(self) -> None:
        """Send what is about to be sent, without waiting for more."""
        if self._sending:
            self._wait_no_more()
            self._send()

    def send_soon(self) -> None:
        """Send, unless more comes at once: then the line has only ended."""
        if not self._line_ends and monotonic() - self._went_on < _PASTE_GAP_SECONDS:
            return  # the key that went on overtook the binding of Enter
        self._wait_no_more()
        self._sending = self.set_timer(_PASTE_GAP_SECONDS, self._send)

    def action_new_line(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def _send(self) -> None:
        self._sending, self._line_ends = None, 0
        self.send()

    def _wait_no_more(self) -> None:
        if self._sending:
            self._sending.stop()
            self._sending = None

    def _go_on_below(self) -> None:
        """What was about to be sent goes on."""
        if self._line_ends:
            self.insert("\n" * self._line_ends)
            self._line_ends, self._went_on = 0, monotonic()
            self._wait_no_more()

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            self._line_ends += 1
            event.prevent_default()  # a binding sends
            return
        if event.is_printable:
            self._go_on_below()
        await super()._on_key(event)
