"""The screen that stays open: the Textual app."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kb.settings import Settings


def run(settings: Settings, paths: Sequence[Path]) -> int:
    """Open the app, with files, a directory or what is piped in already asked about.

    Raises:
        KbError: a path cannot be read, or the configuration names what does not exist; or the
            screen broke down.
    """
    from kb.errors import KbError
    from kb.service.input import from_arguments
    from tui.app import KbApp

    app = KbApp(settings, from_arguments(paths))
    app.run()
    if app.return_code != 0:  # Textual has printed why
        raise KbError("the screen broke down; kb ask answers without it")
    return 0
