"""Keys as terminals without the newer keyboard protocol send them, where Textual does not know."""

from __future__ import annotations

from enum import StrEnum
from typing import cast

from textual import _ansi_sequences


class Sent(StrEnum):
    """The key by what the terminal sends for it."""

    ALT_ENTER = "alt+enter"


def know_alt_enter() -> None:
    """Tell it from enter: most terminals send escape before the carriage return."""
    sequences = cast("dict[str, object]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    sequences["\x1b\r"] = (Sent.ALT_ENTER,)
