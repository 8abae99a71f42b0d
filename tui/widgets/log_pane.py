"""The log of a case: one of its files at a time, with the evidence marked; searched, filtered, and
followed."""

from __future__ import annotations

import asyncio
from asyncio import wrap_future
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input
from textual.worker import get_current_worker

from kb.errors import LogError
from tui.actions import Place, bindings
from tui.log_filter import LogFilter
from tui.service_app import ServiceApp
from tui.widgets.log_prompt import LogPrompt
from tui.widgets.log_view import LogView

if TYPE_CHECKING:
    from index.signatures import Scanner
    from kb.diagnosis import Why
    from kb.evidence import EvidenceLine
    from kb.log import Source
    from kb.log.layout import Origin
    from tui.case_log import CaseLog, LogPlace
    from tui.conditions import Condition
    from tui.lines import Lines
    from tui.picked import Picked

_SAMPLE_LINES = 200
"""By which it is learnt how a file names its ranks."""
_AIM_CHARACTERS = 20
"""Of what a pattern matches, to which the log is scrolled sideways."""


class LogPane(Vertical):
    """Shows the file that is spoken of."""

    app: ServiceApp
    BINDINGS = bindings(Place.LOG)
    PLACES = (Place.LOG,)

    class Found(Message):
        """A search has come to a line; to none, where it is 0."""

        def __init__(self, lines: Lines, number: int, words: str) -> None:
            super().__init__()
            self.lines, self.number, self.words = lines, number, words

    class Counted(Message):
        """So many lines hold what is searched for, so far."""

        def can_replace(self, message: Message) -> bool:
            """Only how many they are now matters."""
            return isinstance(message, LogPane.Counted)

    def __init__(self) -> None:
        super().__init__(id="log")
        self._log: CaseLog | None = None
        self._why: tuple[Why, ...] | None = None
        """What is marked; None before anything is."""
        self._current: int | None = None
        self._file: str | None = None
        self._filter = LogFilter()
        self._picked: Picked | None = None
        """The lines that the filter leaves; None where it leaves all."""
        self._only: tuple[Condition, ...] = ()
        """What the filter wants of the lines of this file."""
        self._found: Picked | None = None
        """The lines with the words that are searched for."""
        self._markers: Scanner | None = None

    def compose(self) -> ComposeResult:
        yield LogView()
        yield LogPrompt(placeholder="search for words", id="find")
        yield LogPrompt(placeholder="see only: rank 3, host node-1, error, words", id="only")

    def show(self, log: CaseLog, place: LogPlace | None) -> None:
        """Show where one was in a log; for None, the first of its files."""
        self._log = log
        self._filter = LogFilter()
        self._view.words = ""
        if place is None:
            self._why, self._current = None, None
            self._open(next(iter(log.sources), None))
            return
        self._why, self._current = place.why, place.step
        self._show_lines(place.file, place.lines)
        self._filter, self._view.words = place.only, place.words
        self._mark()
        self._view.current = place.current
        self._come_back(place)

    @work(exclusive=True, group="sift")
    async def _come_back(self, place: LogPlace) -> None:
        """See the lines that one saw."""
        if self._filter:
            await self._pick()
        if place.lines is self._view.lines:
            self._view.come_back(place.top)
            if place.words:
                self._count_found()

    @property
    def place(self) -> LogPlace | None:
        """Where one is."""
        from tui.case_log import LogPlace

        view = self._view
        if view.lines is None:
            return None
        return LogPlace(
            self._file,
            view.lines,
            view.top_line,
            view.current,
            self._why,
            self._current,
            self._filter,
            view.words,
        )

    def mark(self, why: Sequence[Why]) -> None:
        """Mark the lines that speak for the selected incident. Shown is the first of them, of a job
        the first failure; what is marked already moves nothing."""
        if self._log is None or self._why == tuple(why):
            return
        self._why, self._current = tuple(why), None
        places = [(reason.line.file, reason.line.number) for reason in why[:1]]
        for file, number in [self._log.first_failure] if self._log.first_failure else places:
            self._turn_to(file)
            self._view.jump(number, highlight=False)
        self._mark()

    @property
    def has_evidence(self) -> bool:
        """Whether a line speaks for the selected incident."""
        return bool(self._why)

    def step(self, by: int) -> int | None:
        """Go to another evidence line and return its place, from 0; None where there is none."""
        if not self._why:
            return None
        first = 0 if by > 0 else len(self._why) - 1
        place = first if self._current is None else (self._current + by) % len(self._why)
        self._current = place
        line = self._why[place].line
        self.go_to(line.file, line.number, self._matched(line))
        return place

    def go_to(self, file: str | None, number: int, words: str = "") -> None:
        """Bring a line into view, and words in it; all lines are seen for that."""
        if self._filter:
            self._see(LogFilter())
        self._turn_to(file)
        self._view.jump(number, words=words)

    # The actions of the place *Log*, in the order of the registry.

    def action_find_text(self) -> None:
        """Ask for what to search for."""
        self.query_one("#find", LogPrompt).open()

    def action_next_found(self) -> None:
        """Go to the next line with it."""
        self._find(1)

    def action_previous_found(self) -> None:
        """Go to the one before."""
        self._find(-1)

    def action_next_error(self) -> None:
        """Go to the next line that tells of a failure."""
        self._hunt_error(1)

    def action_previous_error(self) -> None:
        """Go to the one before."""
        self._hunt_error(-1)

    def action_filter_lines(self) -> None:
        """Ask which lines to see."""
        self.query_one("#only", LogPrompt).open()

    def action_wrap(self) -> None:
        """Let long lines go on in the next row, or not."""
        self._view.wrapped = not self._view.wrapped

    def action_next_file(self) -> None:
        """Show the next file that may hold what is to be seen."""
        self._step_file(1)

    def action_previous_file(self) -> None:
        """Show the one before."""
        self._step_file(-1)

    def action_follow(self) -> None:
        """Go to the end, and diagnose again when something fails; or stop that."""
        if self._log is None:
            return
        growth = self._log.growth
        growth.is_followed = not growth.is_followed
        if growth.is_followed:
            self._view.action_scroll_end()
        self._entitle()

    # Searching: what is near is found at once, how many there are in the background.

    @on(Input.Changed, "#find")
    def _typing(self, event: Input.Changed) -> None:
        self._view.words = event.value

    @on(Input.Submitted, "#find")
    def _search(self, event: Input.Submitted) -> None:
        self._leave_prompt(event)
        self._view.words = event.value
        self._found = None
        self._entitle()
        if event.value and self._view.lines:
            self._hunt(self._sought(), self._view.first_seen - 1, 1, event.value)

    def _find(self, step: int) -> None:
        if self._view.words:
            self._hunt(self._sought(), self._view.place, step, self._view.words)
        else:
            self.action_find_text()

    def _sought(self) -> tuple[Condition, ...]:
        from tui.conditions import with_text

        return (*self._only, with_text(self._view.words))

    @work(exclusive=True, group="hunt error")
    async def _hunt_error(self, step: int) -> None:
        from tui.conditions import Severity, as_severe_as

        place = self._view.place
        error = as_severe_as(Severity.ERROR, await self.loaded_markers())
        self._hunt((*self._only, error), place, step, "")

    @work(thread=True, exclusive=True, group="hunt")
    def _hunt(self, conditions: Sequence[Condition], number: int, step: int, words: str) -> None:
        from tui.conditions import every
        from tui.picked import hunt

        lines, worker = self._view.lines, get_current_worker()
        if lines is None:
            return
        for found in hunt(lines, every(conditions), number, step):
            if worker.is_cancelled:
                return
            if found is not None:
                self.post_message(self.Found(lines, found, words))

    @on(Found)
    def _arrive(self, event: Found) -> None:
        if event.lines is not self._view.lines:
            return
        if event.words and self._found is None:
            self._count_found()  # only now, so that the line is found at once
        if event.number:
            self._view.jump(event.number, words=event.words)
            self._entitle()
        else:
            what = f'has "{event.words}"' if event.words else "tells of a failure"
            self.app.tell(f"No line {what}.")

    @work(thread=True, exclusive=True, group="count found")
    def _count_found(self) -> None:
        from tui.conditions import every
        from tui.picked import Picked

        lines, worker = self._view.lines, get_current_worker()
        if lines is None:
            return
        self._found = found = Picked(lines, every(self._sought()))
        for _count in found.find():
            if worker.is_cancelled:
                return
            self.post_message(self.Counted())

    @on(Counted)
    @on(LogView.Sifted)
    def _more_found(self) -> None:
        self._entitle()

    # Filtering: of a job, the files by what their names tell, and of each the lines.

    @on(Input.Submitted, "#only")
    def _filter_typed(self, event: Input.Submitted) -> None:
        self._leave_prompt(event)
        self._see(LogFilter.parse(event.value))

    def _see(self, only: LogFilter) -> None:
        """See only some of the lines, in this file or in the first that may hold any."""
        self._filter = only
        files = self._files
        if not files:
            self.app.tell(f"No file is of {only}.")
            self._filter = LogFilter()
        elif self._file not in files:
            self._open(files[0])
            self._mark()
        else:
            self._sift()

    @property
    def _files(self) -> list[str | None]:
        return [name for name, origin in self._origins.items() if self._filter.admits(origin)]

    @property
    def _sources(self) -> Mapping[str | None, Source]:
        return self._log.sources if self._log else {}

    @property
    def _origins(self) -> Mapping[str | None, Origin]:
        return self._log.origins if self._log else {}

    def _step_file(self, by: int) -> None:
        files = self._files
        if len(files) < 2:
            self.app.tell("There is no other file.")
        else:
            place = files.index(self._file) if self._file in files else 0
            self._open(files[(place + by) % len(files)])
            self._mark()

    @work(exclusive=True, group="sift")
    async def _sift(self) -> None:
        """Show the lines that the filter leaves of this file."""
        await self._pick()
        if self._found:
            self._count_found()

    async def _pick(self) -> None:
        from tui.conditions import every
        from tui.picked import Picked

        lines = self._view.lines
        only = self._filter.within(self._origins[self._file])
        conditions: tuple[Condition, ...] = ()
        if only and lines:
            markers = await self.loaded_markers() if only.severity else None
            conditions = await asyncio.to_thread(_conditions, only, markers, lines)
        if lines is not self._view.lines:
            return
        self._only = conditions
        self._picked = Picked(lines, every(conditions)) if lines and conditions else None
        self._view.pick(self._picked)
        self._entitle()

    async def loaded_markers(self) -> Scanner:
        """A scanner for the signs of failure; its own, because it serves one thread."""
        from index.signatures import Scanner
        from kb.evidence.markers import MARKER_PATTERNS

        if self._markers is None:
            blob = await wrap_future(self.app.service.markers())
            self._markers = Scanner.cached(MARKER_PATTERNS, blob, first_only=False)
        return self._markers

    def _leave_prompt(self, event: Input.Submitted) -> None:
        event.input.display = False
        self._view.focus()

    @on(LogPrompt.Left)
    def _back_to_log(self) -> None:
        self._view.focus()

    @on(LogView.Replaced)
    def _reopen(self) -> None:
        """Another file has the name of the one that is shown: show that."""
        self._open(self._file)
        self._view.action_scroll_end()

    @property
    def _view(self) -> LogView:
        return self.query_one(LogView)

    def _turn_to(self, file: str | None) -> None:
        if file != self._file and file in self._sources:
            self._open(file)
            self._mark()

    def _mark(self) -> None:
        self._view.mark(
            {
                why.line.number: number
                for number, why in enumerate(self._why or (), 1)
                if why.line.file == self._file
            }
        )

    def _open(self, file: str | None) -> None:
        self._show_lines(file, self._lines_of(file))

    def _lines_of(self, file: str | None) -> Lines:
        from tui.lines import Lines

        source = self._sources.get(file)
        if source is None or not (source.name or source.path):
            return Lines.from_text(self._log.text if self._log else "")
        try:
            return Lines.of(source)
        except LogError as error:  # the case was opened a while ago
            self.app.tell(str(error), severity="error")
            return Lines.from_text("")

    def _show_lines(self, file: str | None, lines: Lines) -> None:
        self._file = file
        self._only, self._found, self._picked = (), None, None
        self._view.show(lines)
        self._entitle()
        if self._filter:
            self._sift()

    def _matched(self, line: EvidenceLine) -> str:
        """What a signature matches in a line: a part of it that is short enough to be seen."""
        from index.signatures import Scanner

        pattern = self._log.hits.get((line.file, line.number)) if self._log else None
        if pattern is None or not pattern.regex:
            return pattern.text[:_AIM_CHARACTERS] if pattern else ""
        text = line.text.encode()
        ends = [end for _number, end in Scanner([pattern]).scan(text)]
        before = text[: ends[0]] if ends else b""
        return before.decode("utf-8", "ignore")[-_AIM_CHARACTERS:]

    def on_log_view_grown(self) -> None:
        """Say how many lines are known by now."""
        self._entitle()

    def _entitle(self) -> None:
        self.border_title = Content(self._file or "log")  # no markup
        self.border_subtitle = Content(", ".join(filter(None, self._facts())))

    def _facts(self) -> Iterator[str]:
        """What is to be said of the log, shortly."""
        log, lines = self._log, self._view.lines
        if log is None or lines is None:
            return
        more = "" if lines.complete else "+"
        noun = "line" if lines.line_count == 1 else "lines"
        if self._picked:
            yield f"{self._picked.count:,} of {lines.line_count:,}{more} {noun}: {self._filter}"
        else:
            yield f"{lines.line_count:,}{more} {noun}"
        if self._found:
            searched = "" if self._found.share == 1 else f" in {self._found.share:.0%}"
            yield f'{self._found.count:,} with "{self._view.words}"{searched}'
        yield log.ranks
        yield "following" if log.growth.is_followed else ""


def _conditions(only: LogFilter, markers: Scanner | None, lines: Lines) -> tuple[Condition, ...]:
    """What the filter wants of the lines. In a thread: how they name who says them is learnt from
    the first of them."""
    from kb.log.clean import clean_block
    from kb.log.speakers import learn_way

    next(lines.count(), None)
    sample = clean_block(lines.passage(0, 1).data).decode("utf-8", "replace").split("\n")
    return tuple(only.conditions(markers, learn_way(sample[:_SAMPLE_LINES])))
