"""One registry feeds bindings, footer, palette, help and documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.dom import DOMNode
from textual.widgets import Static

from kb.errors import SettingsError
from tests.tui.conftest import (
    WATCHDOG,
    Start,
    app_of,
    paste,
    press,
    shown,
    until,
    until_shown,
)
from tui.actions import ACTIONS, MAX_HINTS, Place, actions_of, hints, keymap, keys_table
from tui.app import KbApp
from tui.screens.batch import BatchScreen
from tui.screens.browse import BrowseScreen
from tui.screens.draft import DraftScreen
from tui.screens.history import HistoryScreen
from tui.screens.main import MainScreen
from tui.screens.ranks import RanksScreen
from tui.widgets.log_pane import LogPane
from tui.widgets.match_list import MatchList
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import TalkInput

AT: dict[Place, type[DOMNode]] = {
    Place.ANYWHERE: KbApp,
    Place.BOX: PasteBox,
    Place.ANSWER: MainScreen,
    Place.LIST: MatchList,
    Place.LOG: LogPane,
    Place.TALK: TalkInput,
    Place.RANKS: RanksScreen,
    Place.BROWSE: BrowseScreen,
    Place.HISTORY: HistoryScreen,
    Place.BATCH: BatchScreen,
    Place.DRAFT: DraftScreen,
}
TAKEN = {"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+q"}
"""tmux, screen, flow control."""


@pytest.mark.parametrize("place", Place)
def test_every_action_can_be_done_where_it_is_said_to_be(place: Place) -> None:
    for action in actions_of(place):
        assert hasattr(AT[place], f"action_{action.identifier}"), action.name


@pytest.mark.parametrize("place", Place)
def test_bindings_are_those_of_the_registry(place: Place) -> None:
    bound = {key for binding in AT[place].__dict__["BINDINGS"] for key in binding.key.split(",")}
    assert bound == {key for action in actions_of(place) for key in action.keys.split(",")}


def test_no_key_is_taken_by_tmux_or_the_terminal() -> None:
    assert not TAKEN & {key for action in ACTIONS for key in action.keys.split(",")}
    assert not TAKEN & set(KbApp.BINDINGS and [b.key for b in KbApp.BINDINGS])  # type: ignore[union-attr]


def test_a_key_means_one_thing_at_a_place() -> None:
    for place in Place:
        keys = [
            key
            for action in (*actions_of(place), *actions_of(Place.ANYWHERE) * (place != "Anywhere"))
            for key in action.keys.split(",")
        ]
        assert len(keys) == len(set(keys)), place


@pytest.mark.parametrize("place", Place)
def test_the_footer_has_room_for_its_hints(place: Place) -> None:
    assert 0 < len(hints(place)) <= MAX_HINTS


@pytest.mark.slow
async def test_help_tells_of_every_action(start: Start) -> None:
    async with start(size=(120, 100)) as pilot:
        await pilot.press("f1")
        await pilot.pause()
        told = "\n".join(str(one.visual) for one in pilot.app.screen.query(Static))
        for action in ACTIONS:
            assert action.help in told
            assert action.shown_keys in told
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)


async def test_help_wraps_in_its_own_column(start: Start) -> None:
    async with start(size=(80, 60)) as pilot:
        await pilot.press("f1")
        await pilot.pause()
        rows = shown(pilot).splitlines()
        first = next(n for n, row in enumerate(rows) if "Search for the typed text." in row)
        assert rows[first + 1].index("searched") == rows[first].index("Search for")


@pytest.mark.slow
async def test_the_first_screen_can_be_called_again(start: Start) -> None:
    async with start() as pilot:
        await paste(pilot, WATCHDOG)
        await press(pilot, "T")
        await until_shown(pilot, "Nothing leaves this machine.")
        await press(pilot, "escape", "T")
        await until_shown(pilot, "Nothing leaves this machine.")
        case = app_of(pilot).main.case
        await press(pilot, "1")
        await until(pilot, lambda: app_of(pilot).main.case is not case)


async def test_the_palette_offers_every_action_of_the_screen(start: Start) -> None:
    async with start() as pilot:
        offered = {command.help for command in pilot.app.get_system_commands(pilot.app.screen)}
        wanted = {
            action.help
            for place in (Place.ANYWHERE, Place.ANSWER, Place.LOG)
            for action in actions_of(place)
            if action.name != "command_palette" and "{key}" not in action.name
        }
        assert offered == wanted


def test_the_documentation_has_the_table_of_keys() -> None:
    page = Path("docs/tui.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- keys -->\n\n(.*?)\n\n<!-- end -->", page, re.DOTALL)
    assert found is not None
    assert found[1] == keys_table(), "make it again: python -m benchmarks.pictures"


async def test_keys_can_be_changed(start: Start) -> None:
    async with start(keys={"help": "f12"}) as pilot:
        await pilot.press("f12")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, MainScreen)


async def test_keys_that_were_changed_are_the_ones_that_are_shown(start: Start) -> None:
    async with start(keys={"help": "ctrl+g", "talk": "m"}) as pilot:
        footer = shown(pilot).splitlines()[-1]
        assert "ctrl+g help" in footer
        assert "? help" not in footer
        await pilot.press("escape", "ctrl+g")
        await until_shown(pilot, "ctrl+g   ")
        assert re.search(r"^\W*m +Go to the conversation", shown(pilot), re.MULTILINE)


def test_keys_of_an_unknown_action_are_refused() -> None:
    with pytest.raises(SettingsError, match="unknown action 'fly'"):
        keymap({"fly": "f"})
