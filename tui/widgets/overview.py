"""A scrollbar that shows where the evidence lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment, Segments
from rich.style import Style
from textual.scrollbar import ScrollBarRender


def overview(marks: Callable[[int, int], Mapping[int, Segment]]) -> type[ScrollBarRender]:
    """A vertical scrollbar with marks on some rows: `marks(height, width)`, by row from 0."""

    class Overview(ScrollBarRender):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            height = options.height or console.height
            width = options.max_width or console.width
            on_rows = marks(height, width)
            for bar in super().__rich_console__(console, options):
                rows = bar.segments if isinstance(bar, Segments) else []
                yield Segments(
                    (_marked(row, on_rows.get(y)) for y, row in enumerate(rows)), new_lines=True
                )

    return Overview


def _marked(row: Segment, mark: Segment | None) -> Segment:
    """The mark on the bar, which can be grabbed and clicked there as well."""
    if mark is None:
        return row
    return Segment(mark.text, (row.style or Style()) + mark.style)
