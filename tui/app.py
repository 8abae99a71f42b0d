"""The app: themes, keys, general actions, and the screen that stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from textual import events, on, work
from textual.app import SystemCommand
from textual.await_complete import AwaitComplete
from textual.driver import Driver
from textual.filter import LineFilter
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input, TextArea

from kb.errors import KbError, SettingsError
from kb.service.input import UserInput
from tui.actions import ACTIONS, Place, bindings, keymap
from tui.browser import BrowserDriver
from tui.driver import TerminalDriver
from tui.keys import know_alt_enter
from tui.screens.main import MainScreen
from tui.service_app import ServiceApp
from tui.themes import THEMES
from tui.visible import NothingObeyed

if TYPE_CHECKING:
    from kb.sessions import Session
    from kb.settings import Settings

_SMALLEST = Size(20, 5)
"""What the screens are laid out for in a terminal that is smaller still, which shows a corner of
it: Textual cannot fill a widget whose border leaves no column for its text."""

_WAIT_SECONDS, _MAX_WAITS = 0.02, 50
"""Between two keys that may open or leave a screen: less than a held key takes to repeat, and at
most a second."""


class KbApp(ServiceApp, inherit_bindings=False):
    """incident-kb on a terminal."""

    TITLE = "incident-kb"
    CSS_PATH = "styles.tcss"
    BINDINGS = bindings(Place.ANYWHERE)
    NOTIFICATION_TIMEOUT = 6

    def __init__(
        self,
        settings: Settings,
        user_input: UserInput,
        session: Session | None = None,
        in_browser: bool = False,
    ) -> None:
        """`session` is a case that was kept, to go on with. In a browser, nothing of this machine
        is at hand: whoever looks at it is somebody else, at another machine."""
        if in_browser:
            settings = msgspec.structs.replace(settings, history=False, run=False)
        super().__init__(settings)
        self.in_browser = in_browser
        self.driver_class = BrowserDriver if in_browser else TerminalDriver
        self.animation_level = "none"  # a slow line shows each frame, and keys come meanwhile
        know_alt_enter()
        self._user_input = user_input
        self._session = session
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
        return MainScreen(self._user_input, self._session)

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
            self.record_count = await asyncio.wrap_future(self.service.open())
        except KbError as error:
            self.tell(str(error), severity="error")
        self.main.say(self.readiness())

    async def on_event(self, event: events.Event) -> None:
        """Whatever happens; a terminal that is made too small is taken for a larger one."""
        if isinstance(event, events.Resize):
            size = Size(*map(max, event.size, _SMALLEST))
            event = events.Resize(size, size, pixel_size=event.pixel_size)
        await super().on_event(event)
        if isinstance(event, events.Key) and not self._is_typed(event):
            await self._settled()

    def _is_typed(self, event: events.Key) -> bool:
        return event.is_printable and isinstance(self.focused, Input | TextArea)

    async def _settled(self) -> None:
        """Wait for the screen that a key opens or leaves: a slow line hands over many keys at once,
        and the next one is meant for what comes then."""
        for _ in range(_MAX_WAITS):
            await asyncio.sleep(_WAIT_SECONDS)
            if self.screen.is_mounted and not self.main.is_drawing:
                return

    @on(Driver.SignalResume)
    def _paint_again(self) -> None:
        """The shell has used the terminal meanwhile."""
        self.refresh()

    def pop_screen(self) -> AwaitComplete:
        """Leave the screen on top; a second Enter on what is being left leaves nothing else."""
        return super().pop_screen() if len(self.screen_stack) > 1 else AwaitComplete()

    def on_service_app_building(self, event: ServiceApp.Building) -> None:
        """Say how far the index is."""
        self.main.say(f"building the index: {event.done} of {event.total} passages")

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
            for owner in (screen, *screen.query("LogPane")):
                if action.place in getattr(owner, "PLACES", ()):
                    run = partial(self.run_action, action.name, owner)
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

    async def action_quit(self) -> None:
        """Leave the app; who is asked whether to, and says so again, means it."""
        from tui.screens.confirm import LeaveScreen

        if isinstance(self.screen, LeaveScreen):
            self.screen.action_answer(True)
        else:
            self._leave()

    @work(group="leave", exclusive=True)
    async def _leave(self) -> None:
        if await self._may_leave(*self.screen_stack):
            self.service.close()
            self.exit(0)

    async def _may_leave(self, *screens: Screen[Any]) -> bool:
        """Ask where something that was typed would be lost."""
        from tui.screens.confirm import LeaveScreen

        if not any(getattr(screen, "is_draft", False) for screen in screens):
            return True
        return await self.push_screen_wait(LeaveScreen("Quit and discard the text you typed?"))
