"""Text of a log that is selected with the mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

if TYPE_CHECKING:
    from tui.lines import Lines  # imports NumPy, which the first screen does not wait for


MAX_LINES_COPIED = 10_000
"""Maximum number of lines copied from a selection, which may be a whole log."""


def selected_text(lines: Lines, selection: Selection) -> str:
    """The text as it is shown; where lines are left out at the end, it says how many."""
    start, end = selection
    first = start.y if start else 0
    last = min(end.y if end else lines.line_count, lines.line_count - 1)
    kept = min(last, first + MAX_LINES_COPIED - 1)
    texts = [lines.line(y + 1) or "" for y in range(first, kept + 1)]
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
    text, (start, end) = strip.text, span
    left = cell_len(text[:start])
    right = strip.cell_length if end < 0 else cell_len(text[:end])
    selected = strip.crop(left, right).apply_style(style)
    return Strip.join([strip.crop(0, left), selected, strip.crop(right)])
