"""A log of any length on the screen, with the numbers of the evidence beside its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import on, work
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.worker import Worker, get_current_worker

from tui.visible import WRITTEN_OUT
from tui.widgets.overview import overview
from tui.widgets.selection import highlighted, selected_text, styled

if TYPE_CHECKING:
    from tui.lines import Lines  # imports NumPy, which the first screen does not wait for
    from tui.picked import Picked, Rows

_MAX_STRIPS_KEPT = 512
"""Number of drawn lines kept: several screens, so that scrolling back draws nothing again."""
_SIDEWAYS_COLUMNS = 8
"""Columns that one key scrolls, and that are seen behind words which are scrolled to."""
_LOOK_SECONDS = 0.5
"""How often it is looked whether the file has grown."""
_MAX_FOUND_IN_A_LINE = 100
"""Places of the words that are looked for, marked in one line."""

_Place = tuple[int, int]
"""A row, and which of the parts into which its line is wrapped."""
_GONE = "[this line is no longer in the file]"
_DIM = Style(dim=True)


class LogView(ScrollView):
    """Shows `Lines` as they are: no markup, no escape sequence in them is obeyed.

    Every cue is a character too, not only a colour: evidence carries its number in the gutter
    and in the scrollbar, the current line a `>`.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--current",
        "log-view--found",
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
        & > .log-view--found { text-style: reverse bold; }
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
    words: reactive[str] = reactive("")
    """What is marked wherever it stands. Capitals count only if there are capitals in it."""
    wrapped: reactive[bool] = reactive(False)
    """Whether a long line goes on in the next row."""

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

    class Sifted(Message):
        """More of the lines are known that are shown alone."""

        def __init__(self, log_view: LogView) -> None:
            super().__init__()
            self.log_view = log_view

        def can_replace(self, message: Message) -> bool:
            """Only how many they are now matters."""
            return isinstance(message, LogView.Sifted)

    class Replaced(Message):
        """The file was cut, or another one has its name."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._lines: Lines | None = None
        self._picked: Picked | None = None
        self._rows: Rows | None = None
        self._row_count = 0
        self._marks: Mapping[int, int] = {}
        self._strips: LRUCache[int, Strip] = LRUCache(_MAX_STRIPS_KEPT)
        self._widest = 0
        self._hidden_parts = 0
        """Parts of the first line that lie above the view, where lines are wrapped."""
        self._jumping_to: int | None = None
        self._aim = ""
        self._above = 0.0
        """Share of the height that is to be seen before the line to which a jump leads."""
        self._looking: Worker[None] | None = None

    def on_mount(self) -> None:
        """Let the scrollbar show where the evidence lies, and look whether the file grows."""
        self.set_interval(_LOOK_SECONDS, self._look_again)
        self._refresh_scrollbars()
        # The library documents an assignment to one scrollbar, its annotation forbids it.
        self.vertical_scrollbar.renderer = overview(self.evidence_rows)  # type: ignore[misc]

    def show(self, lines: Lines) -> None:
        """Show other lines, from the first; they are counted in a thread."""
        self._lines = lines
        self._marks = {}
        self._strips.clear()
        self.current = None
        self.line_count = lines.line_count
        self.pick(None)
        self._jumping_to = None
        self.scroll_to(0, 0, animate=False, force=True)
        self.run_worker(self._count, thread=True, exclusive=True, group="count")

    @property
    def lines(self) -> Lines | None:
        """What is shown."""
        return self._lines

    @property
    def first_seen(self) -> int:
        """The number of the line in the first row."""
        return self._number(self._top[0]) or 1

    @property
    def place(self) -> int:
        """The number of the line that is read: the highlighted one, if it is in sight."""
        last = self._number(self._walk(self._top, self.size.height - 1)[0]) or 0
        is_seen = self.current is not None and self.first_seen <= self.current <= last
        return self.current if self.current and is_seen else self.first_seen

    @property
    def top_line(self) -> int:
        """The number of the line in the first row, or of the one to which a jump leads."""
        return self._jumping_to or self.first_seen

    def pick(self, picked: Picked | None) -> None:
        """Show only some of the lines, or all again. The line that is read stays in sight."""
        from tui.picked import Everything

        if self._lines is None:
            return
        read = self.current or self._number(self._top[0]) or 1
        self._picked = picked
        self._rows = picked or Everything(self._lines)
        self._widest = 0
        self._take_rows()
        self._go(read, "", above=1 / 3)
        if picked:
            self.run_worker(self._sift, thread=True, exclusive=True, group="sift")
        else:
            self.workers.cancel_group(self, "sift")

    def mark(self, marks: Mapping[int, int]) -> None:
        """Write the numbers of evidence beside their lines: line number to evidence number."""
        self._marks = dict(marks)
        self._fit()

    def jump(self, number: int, *, highlight: bool = True, words: str = "") -> None:
        """Scroll a line to a third of the height, as soon as it is counted, and to words in it."""
        if highlight:
            self.current = number
        self._go(number, words, above=1 / 3)

    def come_back(self, number: int) -> None:
        """Scroll a line to the first row, as soon as it is counted."""
        self._go(number, "", above=0)

    def _go(self, number: int, words: str, above: float) -> None:
        self._jumping_to, self._aim, self._above = number, words, above
        self.call_after_refresh(self._arrive)

    @property
    def is_at_end(self) -> bool:
        """Whether the last line is in sight."""
        return self._walk(self._top, self.size.height - 1) >= self._last

    def evidence_rows(self, height: int, width: int) -> dict[int, Segment]:
        """By row of the scrollbar: the number of the evidence there, `+` if it is too long. None
        where all lines are in sight."""
        rows: dict[int, int] = {}
        if self._rows is None or self._row_count <= self.size.height:
            return {}
        for line, number in self._marks.items():
            if self._rows.has_come_to(line):
                row = min(height - 1, self._rows.row(line) * height // self._row_count)
                rows[row] = min(number, rows.get(row, number))
        style = self._component("log-view--mark")
        return {
            row: Segment((str(number) if number < 10**width else "+").rjust(width), style)
            for row, number in rows.items()
        }

    def render_line(self, y: int) -> Strip:
        """One row: the gutter, which stays, and the visible part of the line."""
        row, part = self._walk_on(self._top, y)
        number = self._number(row)
        base = self._line_style(number)
        if number is None:
            return self._beyond(y).adjust_cell_length(self.size.width, base)
        shown = Strip([*self._gutter(number, part), *self._visible_part(row, number, part)])
        return shown.adjust_cell_length(self.size.width).apply_style(base)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that is selected with the mouse, without the gutter."""
        return selected_text(self._text, self._row_count, selection), "\n"

    def action_scroll_left(self) -> None:
        """Scroll some columns at once: lines of a log are long."""
        self.scroll_relative(x=-_SIDEWAYS_COLUMNS, animate=False)

    def action_scroll_right(self) -> None:
        """Scroll some columns at once."""
        self.scroll_relative(x=_SIDEWAYS_COLUMNS, animate=False)

    def action_scroll_down(self) -> None:
        """Scroll by a row, which may be a part of a line."""
        self._scroll(self._walk(self._top, 1))

    def action_scroll_up(self) -> None:
        """The same upwards."""
        self._scroll(self._walk(self._top, -1))

    def action_page_down(self) -> None:
        """Scroll by a page."""
        self._scroll(self._walk(self._top, self.size.height))

    def action_page_up(self) -> None:
        """The same upwards."""
        self._scroll(self._walk(self._top, -self.size.height))

    def action_scroll_end(self) -> None:
        """Go to the end, wherever it is by now."""
        self._scroll(self._last)

    def watch_line_count(self) -> None:
        """Make room for the new lines."""
        self._take_rows()

    def watch_words(self) -> None:
        """Mark them in what is seen, at once."""
        self.refresh()

    def watch_wrapped(self) -> None:
        """Draw all anew, with the same line on top."""
        top = self._top[0]
        self._widest = self._hidden_parts = 0
        self._fit()
        self.scroll_to(0, top, animate=False, force=True)

    def watch_current(self) -> None:
        """Draw the old and the new highlight."""
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Make room for the lines that come into sight."""
        super().watch_scroll_y(old_value, new_value)
        self._hidden_parts = 0
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

    def _sift(self) -> None:
        picked, worker = self._picked, get_current_worker()
        if picked is None:
            return
        for _count in picked.find():
            if worker.is_cancelled:
                return
            self.post_message(self.Sifted(self))

    def _look_again(self) -> None:
        if self._looking is None or self._looking.is_finished:
            self._looking = self._look()

    @work(thread=True, group="look")
    def _look(self) -> None:
        """In a thread, because a file server may keep it waiting."""
        lines = self._lines
        if lines is None or not lines.complete:
            return
        if lines.is_replaced():
            self.post_message(self.Replaced())
        elif lines.grow():
            for line_count in lines.count():
                self.post_message(self.Grown(self, lines, line_count))

    @on(Grown)
    def _grow(self, event: Grown) -> None:
        if event.lines is not self._lines:
            event.stop()
            return
        if event.lines.complete:
            self._strips.clear()
            if self._picked:
                self.run_worker(self._sift, thread=True, exclusive=True, group="sift")
        self.line_count = event.line_count
        self.refresh()
        self.call_after_refresh(self._arrive)

    @on(Sifted)
    def _more_sifted(self) -> None:
        self._take_rows()
        self.call_after_refresh(self._arrive)

    def _take_rows(self) -> None:
        """Show as many rows as are known by now. Who sees the end goes on to see it."""
        if self._rows is None:
            return
        stays_at_end = self._jumping_to is None and self._row_count > 0 and self.is_at_end
        self._row_count = self._rows.count
        self._fit()
        if stays_at_end and not self.is_at_end:
            self._scroll(self._last)

    def _arrive(self) -> None:
        """Go where a jump led, once there are so many lines."""
        number, rows = self._jumping_to, self._rows
        if number is None or rows is None or not self.size.height:
            return
        # All may be known already, with the message that says so still on its way.
        if not rows.has_come_to(number) or self._row_count != rows.count:
            return
        self._jumping_to = None
        row = min(rows.row(number), self._row_count - 1)
        left = self._left_of_aim(row)
        part = left // self._text_width if self.wrapped else 0
        self._scroll(self._walk((row, part), -int(self.size.height * self._above)))
        if not self.wrapped:
            self._scroll_sideways(left, left + cell_len(self._aim))

    def _left_of_aim(self, row: int) -> int:
        """The column of the words that a jump aims at."""
        text = self._text(row)
        place = text.lower().find(self._aim.lower()) if self._aim else -1
        return cell_len(text[: max(place, 0)])

    def _scroll_sideways(self, left: int, right: int) -> None:
        """Bring some columns of the text into sight; the first ones, if they are among them."""
        if right > self._text_width:
            self._widest = max(self._widest, right + _SIDEWAYS_COLUMNS)
        self._fit()
        x = max(0, min(left, right + _SIDEWAYS_COLUMNS - self._text_width))
        self.scroll_to(
            0 if right <= self._text_width else x, animate=False, force=True, immediate=True
        )

    @property
    def _top(self) -> _Place:
        return self.scroll_offset.y, self._hidden_parts

    @property
    def _last(self) -> _Place:
        row = max(0, self._row_count - 1)
        return row, self._parts(row) - 1

    def _scroll(self, top: _Place) -> None:
        """Put a part of a line on top, at most so far that the last one is in the last row."""
        row, part = max((0, 0), min(top, self._walk(self._last, 1 - self.size.height)))
        self.scroll_to(y=row, animate=False, force=True, immediate=True)
        self._hidden_parts = part
        self.refresh()

    def _walk(self, place: _Place, by: int) -> _Place:
        """So many rows of the screen further down, or up, as far as there are lines."""
        return min(self._walk_on(place, by), self._last) if by > 0 else self._walk_back(place, -by)

    def _walk_on(self, place: _Place, by: int) -> _Place:
        row, part = place
        if not self.wrapped:
            return row + by, 0
        while by > (left := self._parts(row) - part - 1):
            row, part, by = row + 1, 0, by - left - 1
        return row, part + by

    def _walk_back(self, place: _Place, by: int) -> _Place:
        row, part = place
        if not self.wrapped:
            return max(0, row - by), 0
        while by > part and row:
            row, by = row - 1, by - part - 1
            part = self._parts(row) - 1
        return row, max(0, part - by)

    def _parts(self, row: int) -> int:
        """The rows that a line takes."""
        number = self._number(row) if self.wrapped else None
        if number is None:
            return 1
        return max(1, -(-self._strip(number).cell_length // self._text_width))

    def _number(self, row: int) -> int | None:
        is_known = self._rows is not None and row < self._row_count
        return self._rows.number(row) if self._rows and is_known else None

    def _text(self, row: int) -> str:
        number = self._number(row)
        return "" if number is None else self._strip(number).text

    @property
    def _text_width(self) -> int:
        return max(1, self.size.width - self._gutter_width())

    def _fit(self) -> None:
        """Make the virtual screen as large as the lines seen so far need it."""
        top, height = self.scroll_offset.y, self.size.height
        if self.wrapped:
            self.virtual_size = Size(1, self._row_count + max(0, height - 1))
        else:
            numbers = filter(None, map(self._number, range(top, top + height)))
            widths = (self._strip(number).cell_length for number in numbers)
            self._widest = max(self._widest, *widths, 0)
            self.virtual_size = Size(self._gutter_width() + self._widest, self._row_count)
        self.vertical_scrollbar.refresh()
        self.refresh()

    def _strip(self, number: int) -> Strip:
        strip = self._strips.get(number)
        if strip is None:
            text = self._lines.line(number) if self._lines else None
            strip = self._strips[number] = Strip(_segments(_GONE if text is None else text))
        return strip

    def _visible_part(self, row: int, number: int, part: int) -> Strip:
        """What is to be seen of a line, which knows where in the text it stands."""
        strip, width = self._strip(number), self._text_width
        left = part * width if self.wrapped else self.scroll_offset.x
        hidden = len(strip.crop(0, left).text)
        for start in islice(_found(strip.text, self.words), _MAX_FOUND_IN_A_LINE):
            style = self._component("log-view--found")
            strip = styled(strip, start, start + len(self.words), style)
        if self.text_selection is not None:
            style = self.screen.get_component_rich_style("screen--selection")
            strip = highlighted(strip, self.text_selection, row, style)
        return Strip([*strip.crop(left, left + width), Segment("")]).apply_offsets(hidden, row)

    def _gutter(self, number: int, part: int) -> list[Segment]:
        """`>[2] 4711 `: the current line, the number of the evidence, the number of the line."""
        mark = f"[{self._marks[number]}]" if number in self._marks and not part else ""
        cue = ">" if number == self.current else " "
        width = self._gutter_width() - self._mark_width() - 2
        return [
            Segment(f"{cue}{mark:<{self._mark_width()}}", self._component("log-view--mark")),
            Segment(f"{'' if part else number:>{width}} ", self._component("log-view--gutter")),
        ]

    def _gutter_width(self) -> int:
        return self._mark_width() + len(str(self.line_count)) + 3

    def _mark_width(self) -> int:
        return len(f"[{max(self._marks.values())}]") if self._marks else 0

    def _line_style(self, number: int | None) -> Style:
        if number is not None and number == self.current:
            return self.get_component_rich_style("log-view--current")
        return self.rich_style

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    def _beyond(self, y: int) -> Strip:
        """Rows below the last line; the first one says why the log has no lines."""
        if y or self._lines is None or self._row_count:
            return Strip([])
        is_read = self._lines.complete and (self._picked is None or self._picked.share == 1)
        nothing = "[no line is like this]" if self._picked else "[the log is empty]"
        text = nothing if is_read else "[reading ...]"
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


def _found(text: str, words: str) -> Iterator[int]:
    """Where words stand in a line."""
    searched = text.lower() if words == words.lower() else text
    if not words or len(searched) != len(text):  # a few letters have more than one in small
        return
    at = searched.find(words)
    while at >= 0:
        yield at
        at = searched.find(words, at + len(words))
