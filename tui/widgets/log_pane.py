"""The log of a case: one of its files at a time, with the evidence marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from tui.widgets.log_view import LogView

if TYPE_CHECKING:
    from kb.diagnosis import Diagnosis, Why
    from kb.log import Source
    from kb.service.input import UserInput
    from tui.lines import Lines


class LogPane(Vertical):
    """Shows the file that is spoken of."""

    def __init__(self) -> None:
        super().__init__(id="log")
        self._sources: dict[str | None, Source] = {}
        self._text = ""
        self._why: tuple[Why, ...] = ()
        self._current: int | None = None
        self._file: str | None = None
        self._about = ""
        self._first_failure: tuple[str | None, int] | None = None

    def compose(self) -> ComposeResult:
        yield LogView()

    def show(self, user_input: UserInput, diagnosis: Diagnosis) -> None:
        """Show the first of the files."""
        self._sources = {source.name: source for source in user_input.sources}
        self._text = user_input.text
        self._about = _ranks(diagnosis)
        self._why, self._current = (), None
        self._first_failure = _first_failure(diagnosis)
        self._open(next(iter(self._sources), None))

    def mark(self, why: Sequence[Why]) -> None:
        """Mark the lines that speak for the selected incident. Shown is the first of them, of a job
        the first failure."""
        self._why, self._current = tuple(why), None
        places = [(reason.line.file, reason.line.number) for reason in why[:1]]
        for file, number in [self._first_failure] if self._first_failure else places:
            self._turn_to(file)
            self._view.jump(number, highlight=False)
        self._mark()

    def step(self, by: int) -> int | None:
        """Go to another evidence line and return its place, from 0; None where there is none."""
        if not self._why:
            return None
        first = 0 if by > 0 else len(self._why) - 1
        place = first if self._current is None else (self._current + by) % len(self._why)
        self._current = place
        line = self._why[place].line
        self.go_to(line.file, line.number)
        return place

    def go_to(self, file: str | None, number: int) -> None:
        """Bring a line into view."""
        self._turn_to(file)
        self._view.jump(number)

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
                for number, why in enumerate(self._why, 1)
                if why.line.file == self._file
            }
        )

    def _open(self, file: str | None) -> None:
        from tui.lines import Lines

        self._file = file
        source = self._sources.get(file)
        path = source.path if source else None
        lines = Lines.open(path) if path else Lines.from_text(self._text)
        self._view.show(lines)
        self._entitle(lines)

    def on_log_view_grown(self, event: LogView.Grown) -> None:
        """Say how many lines are known by now."""
        self._entitle(event.lines)

    def _entitle(self, lines: Lines) -> None:
        more = "" if lines.complete else "+"
        count = f"{lines.line_count:,}{more} {'line' if lines.line_count == 1 else 'lines'}"
        self.border_title = Content(self._file or "log")  # no markup
        self.border_subtitle = ", ".join(filter(None, [count, self._about]))


def _first_failure(diagnosis: Diagnosis) -> tuple[str | None, int] | None:
    culprits = diagnosis.job.culprits if diagnosis.job else ()
    return next(
        ((culprit.file, culprit.line) for culprit in culprits if culprit.line is not None), None
    )


def _ranks(diagnosis: Diagnosis) -> str:
    size = diagnosis.job.world_size if diagnosis.job else None
    return f"ranks 0-{size - 1}" if size and size > 1 else ""
