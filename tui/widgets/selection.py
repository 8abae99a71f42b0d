"""Text of a log that is selected with the mouse."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

MAX_LINES_COPIED = 10_000
"""Maximum number of lines copied from a selection, which may be a whole log."""


def selected_text(text: Callable[[int], str], rows: int, selection: Selection) -> str:
    """The text as it is shown, of so many rows, each given by its place; where some are left out at
    the end, it says how many."""
    start, end = selection
    first = start.y if start else 0
    last = min(end.y if end else rows, rows - 1)
    kept = min(last, first + MAX_LINES_COPIED - 1)
    texts = [text(y) for y in range(first, kept + 1)]
    if end and texts and kept == end.y:
        texts[-1] = texts[-1][: end.x]
    if start and texts:
        texts[0] = texts[0][start.x :]
    if kept < last:
        texts.append(f"[... {last - kept:,} more lines not copied]")
    return "\n".join(texts)


def highlighted(strip: Strip, selection: Selection, y: int, style: Style) -> Strip:
    """A line with the selected part of its text in another style."""
    span = selection.get_span(y)
    if span is None:
        return strip
    start, end = span
    return styled(strip, start, len(strip.text) if end < 0 else end, style)


def styled(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """A line with a part of its text in another style."""
    text = strip.text
    left, right = cell_len(text[:start]), cell_len(text[:end])
    selected = strip.crop(left, right).apply_style(style)
    return Strip.join([strip.crop(0, left), selected, strip.crop(right)])
