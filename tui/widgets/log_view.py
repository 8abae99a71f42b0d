"""A log of any length on the screen, with the numbers of the evidence beside its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.worker import get_current_worker

from tui.visible import WRITTEN_OUT
from tui.widgets.overview import overview
from tui.widgets.selection import highlighted, selected_text

if TYPE_CHECKING:
    from tui.lines import Lines  # imports NumPy, which the first screen does not wait for

_MAX_STRIPS_KEPT = 512
"""Number of drawn lines kept: several screens, so that scrolling back draws nothing again."""
_SIDEWAYS_COLUMNS = 8
"""Columns that one key scrolls."""
_GONE = "[this line is no longer in the file]"
_DIM = Style(dim=True)


class LogView(ScrollView):
    """Shows `Lines` as they are: no markup, no escape sequence in them is obeyed.

    Every cue is a character too, not only a colour: evidence carries its number in the gutter
    and in the scrollbar, the current line a `>`.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--current",
        "log-view--gutter",
        "log-view--mark",
    }
    DEFAULT_CSS = """
    LogView {
        background: $surface;
        color: $foreground;
        overflow-y: scroll;
        scrollbar-size-horizontal: 1;
        & > .log-view--gutter { text-style: dim; }
        & > .log-view--mark { color: $text-warning; text-style: bold; }
        & > .log-view--current { background: $primary 30%; text-style: bold; }
        &:ansi > .log-view--current { background: ansi_default; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Scroll down", show=False),
        Binding("k", "scroll_up", "Scroll up", show=False),
        Binding("g", "scroll_home", "First line", show=False),
        Binding("G", "scroll_end", "Last line", show=False),
    ]

    line_count: reactive[int] = reactive(0)
    """The lines known so far."""
    current: reactive[int | None] = reactive(None)
    """The number of the highlighted line."""

    class Grown(Message):
        """More lines are known, or all of them."""

        def __init__(self, log_view: LogView, lines: Lines, line_count: int) -> None:
            super().__init__()
            self.log_view = log_view
            self.lines = lines
            self.line_count = line_count

        @property
        def control(self) -> LogView:
            """The view whose lines these are."""
            return self.log_view

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._lines: Lines | None = None
        self._marks: Mapping[int, int] = {}
        self._strips: LRUCache[int, Strip] = LRUCache(_MAX_STRIPS_KEPT)
        self._widest = 0
        self._jumping_to: int | None = None

    def on_mount(self) -> None:
        """Let the scrollbar show where the evidence lies."""
        self._refresh_scrollbars()
        # The library documents an assignment to one scrollbar, its annotation forbids it.
        self.vertical_scrollbar.renderer = overview(self.evidence_rows)  # type: ignore[misc]

    def show(self, lines: Lines) -> None:
        """Show other lines, from the first; they are counted in a thread."""
        self._lines = lines
        self._marks = {}
        self._widest = 0
        self._jumping_to = None
        self._strips.clear()
        self.current = None
        self.line_count = lines.line_count
        self.scroll_to(0, 0, animate=False, force=True)
        self._fit()
        self.run_worker(self._count, thread=True, exclusive=True, group="count")

    def mark(self, marks: Mapping[int, int]) -> None:
        """Write the numbers of evidence beside their lines: line number to evidence number."""
        self._marks = dict(marks)
        self._fit()

    def jump(self, number: int, *, highlight: bool = True) -> None:
        """Scroll a line to a third of the height, as soon as it is counted."""
        if highlight:
            self.current = number
        self._jumping_to = number
        self.call_after_refresh(self._arrive)

    def evidence_rows(self, height: int, width: int) -> dict[int, Segment]:
        """By row of the scrollbar: the number of the evidence there, `+` if it is too long. None
        where all lines are in sight."""
        rows: dict[int, int] = {}
        if self.line_count <= self.size.height:
            return {}
        for line, number in self._marks.items():
            row = min(height - 1, (line - 1) * height // max(1, self.line_count))
            rows[row] = min(number, rows.get(row, number))
        style = self._component("log-view--mark")
        return {
            row: Segment((str(number) if number < 10**width else "+").rjust(width), style)
            for row, number in rows.items()
        }

    def render_line(self, y: int) -> Strip:
        """One row: the gutter, which stays, and the visible part of the line."""
        number = self.scroll_offset.y + y + 1
        base = self._line_style(number)
        if self._lines is None or number > self.line_count:
            return self._beyond(y).adjust_cell_length(self.size.width, base)
        row = Strip([*self._gutter(number), *self._visible_part(number)])
        return row.adjust_cell_length(self.size.width).apply_style(base)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that is selected with the mouse, without the gutter."""
        return (selected_text(self._lines, selection), "\n") if self._lines else None

    def action_scroll_left(self) -> None:
        """Scroll some columns at once: lines of a log are long."""
        self.scroll_relative(x=-_SIDEWAYS_COLUMNS, animate=False)

    def action_scroll_right(self) -> None:
        """Scroll some columns at once."""
        self.scroll_relative(x=_SIDEWAYS_COLUMNS, animate=False)

    def watch_line_count(self) -> None:
        """Make room for the new lines."""
        self._fit()

    def watch_current(self) -> None:
        """Draw the old and the new highlight."""
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Make room for the lines that come into sight."""
        super().watch_scroll_y(old_value, new_value)
        self._fit()

    def on_resize(self) -> None:
        """Make room for the lines that come into sight, and go on with a jump."""
        self._fit()
        self._arrive()

    def _count(self) -> None:
        lines, worker = self._lines, get_current_worker()
        if lines is None:
            return
        for line_count in lines.count():
            if worker.is_cancelled:
                return
            self.post_message(self.Grown(self, lines, line_count))

    @on(Grown)
    def _grow(self, event: Grown) -> None:
        if event.lines is not self._lines:
            event.stop()
            return
        if event.lines.complete:
            self._strips.clear()
        self.line_count = event.line_count
        self.refresh()
        self.call_after_refresh(self._arrive)

    def _arrive(self) -> None:
        """Go where a jump led, once there are so many lines."""
        number = self._jumping_to
        if number is None or self._lines is None or not self.size.height:
            return
        # All lines may be counted already, with the message that says so still on its way.
        all_here = self._lines.complete and self.line_count == self._lines.line_count
        if number <= self.line_count or all_here:
            self._jumping_to = None
            self.scroll_to(0, max(0, number - 1 - self.size.height // 3), animate=False, force=True)

    def _fit(self) -> None:
        """Make the virtual screen as large as the lines seen so far need it."""
        first = self.scroll_offset.y + 1
        last = min(first + self.size.height - 1, self.line_count)
        widths = (self._strip(number).cell_length for number in range(first, last + 1))
        self._widest = max(self._widest, *widths, 0)
        self.virtual_size = Size(self._gutter_width() + self._widest, self.line_count)
        self.vertical_scrollbar.refresh()
        self.refresh()

    def _strip(self, number: int) -> Strip:
        strip = self._strips.get(number)
        if strip is None:
            text = self._lines.line(number) if self._lines else None
            strip = self._strips[number] = Strip(_segments(_GONE if text is None else text))
        return strip

    def _visible_part(self, number: int) -> Strip:
        """What is to be seen of a line, which knows where in the text it stands."""
        strip, y = self._strip(number), number - 1
        left = self.scroll_offset.x
        hidden = len(strip.crop(0, left).text)
        if self.text_selection is not None:
            style = self.screen.get_component_rich_style("screen--selection")
            strip = highlighted(strip, self.text_selection, y, style)
        part = strip.crop(left, left + self.size.width - self._gutter_width())
        return Strip([*part, Segment("")]).apply_offsets(hidden, y)

    def _gutter(self, number: int) -> list[Segment]:
        """`>[2] 4711 `: the current line, the number of the evidence, the number of the line."""
        mark = f"[{self._marks[number]}]" if number in self._marks else ""
        cue = ">" if number == self.current else " "
        width = self._gutter_width() - self._mark_width() - 2
        return [
            Segment(f"{cue}{mark:<{self._mark_width()}}", self._component("log-view--mark")),
            Segment(f"{number:>{width}} ", self._component("log-view--gutter")),
        ]

    def _gutter_width(self) -> int:
        return self._mark_width() + len(str(self.line_count)) + 3

    def _mark_width(self) -> int:
        return len(f"[{max(self._marks.values())}]") if self._marks else 0

    def _line_style(self, number: int) -> Style:
        if number == self.current:
            return self.get_component_rich_style("log-view--current")
        return self.rich_style

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    def _beyond(self, y: int) -> Strip:
        """Rows below the last line; the first one says why the log has no lines."""
        if y or self._lines is None or self.line_count:
            return Strip([])
        text = "[the log is empty]" if self._lines.complete else "[reading ...]"
        return Strip([Segment(text, self.rich_style + _DIM)])


def _segments(text: str) -> Iterator[Segment]:
    """The text, with what stands for control characters dimmed."""
    end = 0
    for control in WRITTEN_OUT.finditer(text):
        if control.start() > end:
            yield Segment(text[end : control.start()])
        yield Segment(control[0], _DIM)
        end = control.end()
    yield Segment(text[end:])
