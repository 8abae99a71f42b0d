"""The app: settings, themes, keys, the service, and the screen that stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

from textual import work
from textual.app import App, SystemCommand
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen

from kb.errors import KbError, SettingsError
from kb.service.input import UserInput
from kb.service.service import Service
from tui.actions import ACTIONS, Place, bindings, keymap
from tui.keys import know_alt_enter
from tui.screens.main import MainScreen
from tui.themes import THEMES
from tui.visible import NothingObeyed

if TYPE_CHECKING:
    from kb.diagnosis import Diagnosis
    from kb.service.history import History
    from kb.settings import Settings


class KbApp(App[int], inherit_bindings=False):
    """incident-kb on a terminal."""

    TITLE = "incident-kb"
    CSS_PATH = "styles.tcss"
    BINDINGS = bindings(Place.ANYWHERE)
    NOTIFICATION_TIMEOUT = 6

    class Building(Message):
        """The index is being built."""

        def __init__(self, done: int, total: int) -> None:
            super().__init__()
            self.done, self.total = done, total

        def can_replace(self, message: Message) -> bool:
            """Only how far it is now matters."""
            return isinstance(message, KbApp.Building)

    class Noticed(Message):
        """There is something that the user should know."""

        def __init__(self, sentence: str) -> None:
            super().__init__()
            self.sentence = sentence

    def __init__(self, settings: Settings, user_input: UserInput) -> None:
        super().__init__()
        know_alt_enter()
        self.settings = settings
        self.service = Service(settings, self._report, self._notice)
        self._user_input = user_input
        self._incidents = 0
        self._nothing_obeyed = NothingObeyed()
        for theme in THEMES:
            self.register_theme(theme)
        if settings.theme not in self.available_themes:
            raise SettingsError(
                f"unknown theme '{settings.theme}' in the configuration;"
                f" choose one of: {', '.join(sorted(self.available_themes))}"
            )
        self.theme = settings.theme
        self.set_keymap(keymap(settings.keys))

    def get_default_screen(self) -> MainScreen:
        """The screen that stays open."""
        return MainScreen(self._user_input)

    @property
    def main(self) -> MainScreen:
        """The screen that stays open."""
        screen = self.screen_stack[0]
        assert isinstance(screen, MainScreen)  # noqa: S101  for the type
        return screen

    def on_ready(self) -> None:
        """The first screen is painted: now load what is heavy."""
        self._load()

    @work(group="load")
    async def _load(self) -> None:
        self.main.say("loading")
        try:
            self._incidents = await asyncio.wrap_future(self.service.open())
        except KbError as error:
            self.tell(str(error), severity="error")
        self.say_ready()

    def say_ready(self, elapsed_ms: float | None = None) -> None:
        """Say how much is known, and how long an answer took."""
        took = "" if elapsed_ms is None else f"{_duration(elapsed_ms)}, "
        known = f"{self._incidents} records, offline" if self._incidents else "no index"
        self.main.say(f"{took}{known}")

    def tell(
        self,
        sentence: str,
        severity: Literal["information", "warning", "error"] = "information",
        title: str = "",
    ) -> None:
        """Show a sentence for a while. Names of files in it are hostile input."""
        from kb.log.clean import strip_controls

        self.notify(strip_controls(sentence), title=title, severity=severity, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy what is selected, and say how."""
        self._copy(text)

    @work(group="copy")
    async def _copy(self, text: str) -> None:
        from tui.clipboard import copy

        self.tell(await copy(text, self))

    def on_kb_app_building(self, event: Building) -> None:
        """Say how far the index is."""
        self.main.say(f"building the index: {event.done} of {event.total} passages")

    def on_kb_app_noticed(self, event: Noticed) -> None:
        """Say what the user should know."""
        self.tell(event.sentence, "warning")

    # Called in other threads, which must not wait for this one: it may be gone.

    def _report(self, done: int, total: int) -> None:
        if total:
            self.post_message(self.Building(done, total))

    def _notice(self, sentence: str) -> None:
        self.post_message(self.Noticed(sentence))

    @work(thread=True, group="history")
    def remember(self, user_input: UserInput, diagnosis: Diagnosis) -> None:
        """Keep a search in the history. In a thread: its directory may be a slow one."""
        from kb.service.history import Search

        self.history.add(Search.of(diagnosis, user_input.kept_text(), user_input.kept_paths()))

    @cached_property
    def history(self) -> History:
        """The last searches."""
        from kb.service.history import History

        return History(self.settings, self._notice)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What is done to every line on its way to the terminal."""
        return (*super().get_line_filters(), self._nothing_obeyed)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The actions that are at hand, by name."""
        for action in ACTIONS:
            if "{key}" in action.name or action.name == "command_palette":
                continue
            if action.place is Place.ANYWHERE:
                yield SystemCommand(action.hint, action.help, partial(self.run_action, action.name))
            elif action.place in getattr(screen, "PLACES", ()):
                run = partial(self.run_action, action.name, screen)
                yield SystemCommand(action.hint, action.help, run)

    @work(group="leave", exclusive=True)
    async def action_back(self) -> None:  # type: ignore[override]
        """Go back one level."""
        if isinstance(self.screen, MainScreen):
            self.screen.go_back()
        elif await self._may_leave(self.screen):
            self.screen.dismiss()

    def action_help(self) -> None:
        """Show all keys."""
        from tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen())

    @work(group="leave", exclusive=True)
    async def action_quit(self) -> None:  # type: ignore[override]
        """Leave the app."""
        if await self._may_leave(*self.screen_stack):
            self.service.close()
            self.exit(0)

    async def _may_leave(self, *screens: Screen[Any]) -> bool:
        """Ask where something that was typed would be lost."""
        from tui.screens.confirm import ConfirmScreen

        if not any(getattr(screen, "is_draft", False) for screen in screens):
            return True
        return await self.push_screen_wait(ConfirmScreen("Quit and discard the text you typed?"))


def _duration(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"
