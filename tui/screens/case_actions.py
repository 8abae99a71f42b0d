"""What can be done with the case on the screen: steps, evidence, copies, other screens."""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.screen import Screen

from kb.service.input import UserInput
from tui.clipboard import copy
from tui.tour import sample
from tui.widgets.detail import Detail
from tui.widgets.log_pane import LogPane
from tui.widgets.match_list import MatchList
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import Talk, TalkInput

if TYPE_CHECKING:
    from kb.diagnosis import Match
    from tui.app import KbApp
    from tui.case import Case


class CaseActions(Screen[None]):
    """The actions of the place *Answer*."""

    app: KbApp
    case: Case | None
    ask: Callable[[UserInput], object]

    @property
    def selected(self) -> Match | None:
        """The match whose detail is shown."""
        return self.case.match(self.query_one(MatchList).selected) if self.case else None

    def action_paste(self) -> None:
        """Go to the box."""
        self.query_one(PasteBox).focus()
        self.query_one(PasteBox).select_all()

    def action_next_evidence(self) -> None:
        """Go to the next line that speaks for the incident."""
        self._step_evidence(1)

    def action_previous_evidence(self) -> None:
        """Go to the one before."""
        self._step_evidence(-1)

    def _step_evidence(self, by: int) -> None:
        if self.query_one(LogPane).step(by) is None:
            self.app.tell("No line of the log supports this incident.")
        else:
            self._bring_log()

    def _bring_log(self) -> None:
        """Where there is no room beside the answer, the log takes its place."""
        if self.has_class("-narrow"):
            self.add_class("-log")

    def action_next_step(self) -> None:
        """Go to the next step of the fix."""
        detail = self.query_one(Detail)
        detail.go_to_step(detail.step + 1)

    def action_previous_step(self) -> None:
        """Go to the one before."""
        detail = self.query_one(Detail)
        detail.go_to_step(detail.step - 1)

    def action_tick(self) -> None:
        """Tick the step, or take the tick away, and go to the next one that is not done."""
        match, detail = self.selected, self.query_one(Detail)
        if not (self.case and match):
            return
        self.case = self.case.ticked(match.incident.id, detail.step)
        done = self.case.done_of(match.incident.id)
        detail.tick(done)
        if detail.step in done:
            left = [n for n in range(len(match.incident.body.fix)) if n not in done]
            detail.go_to_step(next((n for n in left if n > detail.step), detail.step))

    async def action_copy_command(self) -> None:
        """Copy the command of the current step."""
        match, detail = self.selected, self.query_one(Detail)
        if match is None:
            return
        command = match.incident.body.fix[detail.step].command
        if command is None:
            self.app.tell(f"Step {detail.step + 1} has no command.")
        else:
            self.app.tell(await copy(command, self.app), title=f"Step {detail.step + 1}: command")

    async def action_copy_note(self) -> None:
        """Copy the hand-off note."""
        from kb.views.handoff import to_markdown

        if self.case:
            note = to_markdown(self.case.handoff())
            self.app.tell(await copy(note, self.app), title="Hand-off note")

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        """Write the hand-off note to a file."""
        from tui.screens.export import ExportScreen

        if self.case:
            name = f"incident-{datetime.now():%Y-%m-%d-%H%M}.md"
            written = await self.app.push_screen_wait(ExportScreen(self.case.handoff(), name))
            if written:
                self.app.tell(f"Written: {written}")

    def action_talk(self) -> None:
        """Go to the conversation."""
        if self.case:
            self.set_class(True, "-talking")
            self.query_one(TalkInput).focus()

    def action_answer(self, key: str) -> None:
        """Pick an answer to the open question; before the first search, a sample."""
        number = int(key)
        question = self.case and self.case.conversation.question
        if self.case is None and number <= 3:
            self.ask(UserInput(text=sample(number)))
        elif question and number <= len(question.answers):
            self.query_one(Talk).post_message(Talk.Said(question.answers[number - 1]))

    def action_undo(self) -> None:
        """Take back what was last said."""
        if self.case:
            self.query_one(Talk).post_message(Talk.Said("undo"))

    @work(group="ranks", exclusive=True)
    async def action_ranks(self) -> None:
        """Show who failed first, and go to the line that is picked."""
        from tui.screens.ranks import RanksScreen

        job = self.case.diagnosis.job if self.case else None
        if job is None:
            self.app.tell("This log does not show several ranks.")
            return
        picked = await self.app.push_screen_wait(RanksScreen(job))
        if picked:
            self.query_one(LogPane).go_to(*picked)
            self._bring_log()

    def action_log(self) -> None:
        """Give the log the whole screen, or take it back."""
        if self.case:
            self.toggle_class("-log")
            self.query_one("LogView" if self.has_class("-log") else MatchList).focus()

    @work(group="draft", exclusive=True)
    async def action_new(self) -> None:
        """Draft a record of this case."""
        from tui.screens.draft import DraftScreen

        if self.case:
            record = await wrap_future(self.app.service.draft(self.case.diagnosis))
            directory = Path(next(iter(self.app.settings.incidents), Path.cwd())).expanduser()
            written = await self.app.push_screen_wait(DraftScreen(record, directory))
            if written:
                self.app.service.refresh()
                self.app.tell(f"Written: {written}. Fill in the TODOs, then run: kb lint {written}")

    @work(group="browse", exclusive=True)
    async def action_browse(self) -> None:
        """Read all records."""
        from tui.screens.browse import BrowseScreen

        incidents = await wrap_future(self.app.service.incidents())
        self.app.push_screen(BrowseScreen(incidents))

    @work(group="history", exclusive=True)
    async def action_history(self) -> None:
        """Choose one of the last searches."""
        from tui.screens.history import HistoryScreen

        screen = HistoryScreen(self.app.history.load(), self.app.settings.history)
        user_input = await self.app.push_screen_wait(screen)
        if user_input:
            self.ask(user_input)

    @work(group="open", exclusive=True)
    async def action_open(self) -> None:
        """Choose a log or a directory."""
        from tui.screens.pick import PickScreen

        path = await self.app.push_screen_wait(PickScreen("Open a log, or the logs of one job"))
        if path:
            self.ask(UserInput(paths=(path,), name=str(path)))

    @work(group="batch", exclusive=True)
    async def action_batch(self) -> None:
        """Classify a directory, and open what is picked of it."""
        from tui.screens.batch import BatchScreen
        from tui.screens.pick import PickScreen

        directory = await self.app.push_screen_wait(PickScreen("Classify all logs below"))
        if directory:
            path = await self.app.push_screen_wait(BatchScreen(directory, self.app.settings))
            if path:
                self.ask(UserInput(paths=(path,), name=str(path)))
