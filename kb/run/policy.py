"""Where commands may be run at all."""

from __future__ import annotations

import sys

from kb.settings import Settings


def why_off(settings: Settings) -> str:
    """Why nothing is run here, in a sentence; empty where it may be, with a person's yes."""
    if not settings.run:
        return "The configuration has `run = false`: copy the command and run it yourself."
    if not sys.stdin.isatty():
        return "Commands are only run for a person at a terminal."
    return ""
