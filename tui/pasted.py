"""Pasted text: hostile, and often long."""

from __future__ import annotations

_MAX_LINES_SHOWN = 3
"""Of what was said; a longer message is a paste and is shown folded."""
_MAX_PRINTED_LINES = 12
"""Of a command and its output."""
_MAX_FIRST_CHARACTERS = 60
"""Shown of the first line of a paste that is folded."""


def with_line_ends(text: str) -> str:
    """The text with the line ends of files: terminals hand over those of pastes as carriage
    returns."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def cleaned(text: str) -> str:
    """The text without what a terminal would interpret."""
    from kb.log.clean import clean_block, strip_controls  # not before the first screen

    return strip_controls(clean_block(text.encode("utf-8", "replace")).decode("utf-8", "replace"))


def is_long(text: str) -> bool:
    """Whether a message is shown folded."""
    return text.startswith("$ ") or text.count("\n") >= _MAX_LINES_SHOWN


def folded(text: str) -> str:
    """A message in short: how many lines were pasted, and how they begin; of a command that was run
    what it printed first."""
    lines = text.split("\n")
    if text.startswith("$ "):
        more = len(lines) - _MAX_PRINTED_LINES
        rest = [f"… {more:,} more lines"] if more > 0 else []
        return "\n".join([*lines[:_MAX_PRINTED_LINES], *rest])
    first = next((line.strip() for line in lines if line.strip()), "")
    cut = first if len(first) <= _MAX_FIRST_CHARACTERS else f"{first[:_MAX_FIRST_CHARACTERS]} …"
    return f"pasted {len(lines):,} lines: {cut}"
