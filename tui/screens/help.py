"""All keys, by place."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.actions import Place, actions_of
from tui.screens.sheet import Sheet

_KEY_COLUMNS = 16
"""Columns of the keys of an action."""


class HelpScreen(Sheet[None]):
    """Made from the registry of actions."""

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="sheet") as sheet:
            sheet.border_title = "Keys"
            sheet.border_subtitle = "esc: back"
            yield Static(Content("\n").join(_lines()))


def _lines() -> Iterator[Content]:
    for place in Place:
        yield Content.styled(place.value, "bold $primary")
        for action in actions_of(place):
            keys = (f"  {action.shown_keys:<{_KEY_COLUMNS}} ", "bold $accent")
            yield Content.assemble(keys, action.help)
        yield Content()
