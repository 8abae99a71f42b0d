"""The screen that stays open: the box, the ranked incidents, the log, the detail, the talk."""

from __future__ import annotations

import asyncio
from asyncio import wrap_future
from typing import TYPE_CHECKING

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from kb.errors import KbError
from kb.service.input import UserInput
from kb.service.service import SupersededError
from tui.actions import Place, bindings
from tui.case import Case
from tui.screens.case_actions import CaseActions
from tui.tour import sample, tour
from tui.verdict_texts import explain, first_to_fail, verdict_line
from tui.widgets.detail import Detail
from tui.widgets.hints import Hints
from tui.widgets.log_pane import LogPane
from tui.widgets.match_list import MatchList
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import Talk, TalkInput

if TYPE_CHECKING:
    from tui.app import KbApp

_TOO_SMALL = "kb needs 60 columns and 20 lines."


class MainScreen(CaseActions):
    """One case at a time."""

    app: KbApp
    BINDINGS = bindings(Place.ANSWER)
    PLACES = (Place.ANSWER,)
    AUTO_FOCUS = "#box"
    HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (60, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-too-low"), (20, "-low"), (30, "-high")]  # noqa: RUF012

    def __init__(self, user_input: UserInput) -> None:
        super().__init__()
        self.case: Case | None = None
        self._talking = asyncio.Lock()
        self._first = user_input

    def compose(self) -> ComposeResult:
        yield Static(_TOO_SMALL, id="too-small")
        with Horizontal(id="head"):
            yield Static("incident-kb", id="name")
            yield Static(id="status")
        yield PasteBox()
        yield Static(tour(), id="tour")
        with Horizontal(id="answer"):
            with Vertical(id="left"):
                yield Static(id="verdict")
                yield Static(id="first-to-fail")
                yield MatchList(id="matches")
                yield LogPane()
            with Vertical(id="right"):
                yield Detail(id="detail")
                yield Talk(id="talk")
        yield Hints(id="hints")

    def on_mount(self) -> None:
        """Type at once; the index loads meanwhile."""
        self.query_one("#talk").border_title = "Conversation"
        self.query_one(PasteBox).touring = True
        self.query_one(Hints).show(Place.BOX)
        if self._first:
            self.ask(self._first)

    @property
    def place(self) -> Place:
        """Where the user is."""
        if isinstance(self.focused, PasteBox):
            return Place.BOX
        return Place.TALK if isinstance(self.focused, TalkInput) else Place.ANSWER

    @property
    def is_draft(self) -> bool:
        """Whether leaving would lose what was typed."""
        return self.query_one(PasteBox).is_draft or bool(self.query_one(TalkInput).value.strip())

    def go_back(self) -> None:
        """From a box or the log to the list; from the list to the box."""
        if self.place is Place.ANSWER and not self.has_class("-log"):
            self.action_paste()
            return
        self.remove_class("-log", "-talking")
        self.query_one(
            MatchList if self.case and self.case.conversation.matches else Detail
        ).focus()

    def say(self, status: str) -> None:
        """Tell in the first line what is going on."""
        self.query_one("#status", Static).update(Content(status))

    @on(PasteBox.Asked)
    def _asked(self, event: PasteBox.Asked) -> None:
        self.ask(event.user_input)

    @on(PasteBox.SampleChosen)
    def _sample_chosen(self, event: PasteBox.SampleChosen) -> None:
        self.ask(UserInput(text=sample(event.number)))

    @work(exclusive=True, group="search")
    async def ask(self, user_input: UserInput) -> None:
        """Diagnose what the user gave and show the answer; a newer one replaces it."""
        from kb.conversation import begin

        self._entitle(user_input)
        self.say(f"reading {user_input.title}")
        try:
            diagnosis = await wrap_future(self.app.service.diagnose(user_input.open))
        except SupersededError:
            return
        except KbError as error:
            self._entitle(self.case.user_input if self.case else UserInput(text=user_input.text))
            self.app.say_ready()
            self.app.tell(str(error), severity="error")
            return
        self.app.remember(user_input, diagnosis)
        await self._show(Case(user_input, begin(diagnosis)))
        for notice in diagnosis.notices:
            self.app.tell(notice, severity="warning")

    def _entitle(self, user_input: UserInput) -> None:
        """Say in the box what the answer is about, unless something else is being typed."""
        box = self.query_one(PasteBox)
        if user_input.text != box.text and not box.is_draft:
            box.show_asked(user_input.text)
        box.placeholder = user_input.name

    async def _show(self, case: Case) -> None:
        """Show a new case."""
        self.case = case
        self.set_class(True, "-answered")
        self.query_one(PasteBox).touring = False
        self.query_one(LogPane).show(case.user_input, case.diagnosis)
        first = first_to_fail(case.diagnosis.job)
        self.query_one("#first-to-fail", Static).update(first)
        self.query_one("#first-to-fail").display = bool(first)
        await self.query_one(Talk).clear()
        self.app.say_ready(case.diagnosis.elapsed_ms)
        await self._show_matches(case)
        if not self.is_draft:  # do not interrupt the user while typing
            self.query_one(MatchList if case.conversation.matches else Detail).focus()

    async def _show_matches(self, case: Case) -> None:
        conversation = case.conversation
        self.query_one("#verdict", Static).update(verdict_line(conversation.verdict))
        self.query_one(MatchList).show(conversation.matches)
        self.set_class(not conversation.matches, "-without-matches")
        if not conversation.matches:
            await self.query_one(Detail).show_state("No match", explain(case.diagnosis))
        await self.query_one(Talk).show(conversation)

    @on(OptionList.OptionHighlighted, "#matches")
    async def _selected(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        match = self.case and self.case.match(event.option_id)
        if self.case and match:
            self.query_one(LogPane).mark(match.why)
            await self.query_one(Detail).show(match, self.case.done_of(match.incident.id))

    @on(Talk.Said)
    @work(group="talk")
    async def _said(self, event: Talk.Said) -> None:
        async with self._talking:  # each turn follows from the one before
            case = self.case
            if case is None:
                return
            reply = self.app.service.reply(case.conversation, event.text)
            conversation = await wrap_future(reply)
            if self.case and self.case.user_input is case.user_input:
                self.case = self.case.said(conversation)
                await self._show_matches(self.case)

    def on_descendant_focus(self, _event: events.DescendantFocus) -> None:
        """Say what can be done here."""
        self.query_one(Hints).show(self.place)

    async def on_paste(self, event: events.Paste) -> None:
        """A paste is a new search wherever the user is, unless a box takes it."""
        box = self.query_one(PasteBox)
        box.focus()
        box.take(event.text)
