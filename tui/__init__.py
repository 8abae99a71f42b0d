"""The screen that stays open: the Textual app."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import FrameType

    from kb.sessions import Session
    from kb.settings import Settings


def run(
    settings: Settings,
    paths: Sequence[Path],
    follow: bool = False,
    session: Session | None = None,
    in_browser: bool = False,
) -> int:
    """Open the app, with files, a directory, what is piped in or a case that was kept already asked
    about; `follow` files that are still being written. In a browser, the standard streams lead to
    it, and nothing of this machine is at hand.

    Raises:
        KbError: a path cannot be read, or the configuration names what does not exist; or the
            screen broke down.
    """
    from kb.errors import KbError
    from kb.service.input import UserInput, from_arguments
    from tui.app import KbApp

    fresh = session or in_browser
    user_input = UserInput() if fresh else from_arguments(paths, follow)
    app = KbApp(settings, user_input, session, in_browser)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        app.run()
    finally:
        if running := sys.modules.get("kb.run"):
            running.end_all()
    app.keeper.close()
    if app.return_code != 0:  # Textual has printed why
        raise KbError("the screen broke down; kb ask answers without it")
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Do what Python's own handler does. That one asyncio replaces, and Textual takes what asyncio
    does then for a failure."""
    raise KeyboardInterrupt
