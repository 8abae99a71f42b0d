"""The screen that stays open: box, ranked incidents, log, detail, talk, and the actions on them.

It shows one of the open cases; what belongs to a case comes to it by its key, on the screen or not.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import wrap_future
from concurrent.futures import Future
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.worker import Worker, get_current_worker

from kb.errors import KbError
from kb.paths import expand_user
from kb.service.input import UserInput, asked_again
from kb.service.service import SupersededError
from tui.actions import Place, actions_of, bindings
from tui.case import Case, View, Voiced
from tui.cases import MAX_CASES, Cases
from tui.clipboard import copy
from tui.service_app import ServiceApp
from tui.tasks import command_of, overview_line, suggested, title_of
from tui.tour import sample, tour
from tui.verdict_texts import explain, first_to_fail, verdict_line
from tui.widgets.case_bar import CaseBar
from tui.widgets.detail import Detail
from tui.widgets.hints import Hints
from tui.widgets.log_pane import LogPane
from tui.widgets.match_list import OVERVIEW, MatchList
from tui.widgets.paste_box import PasteBox
from tui.widgets.talk import Talk, TalkInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kb.conversation import Conversation
    from kb.conversation.next_step import Task
    from kb.diagnosis import Diagnosis, Match
    from kb.run import Plan
    from kb.service.voice import Speaker
    from kb.sessions import Session
    from tui.growth import Growth

_PLACES = ((PasteBox, Place.BOX), (TalkInput, Place.TALK), (MatchList, Place.LIST))
"""Parts of the screen with keys of their own."""
_SEVERAL = 2
_LOOK_SECONDS = 1.0
"""How often the files of the cases that are followed are looked at."""
_FRAME_ROWS = 3
"""Of the log pane, beside its lines: the border, and a scrollbar below them."""
_TOO_SMALL = "kb needs 60 columns and 20 lines."


class MainScreen(Screen[None]):
    """One case at a time, of several."""

    app: ServiceApp
    BINDINGS = bindings(Place.ANSWER)
    PLACES = (Place.ANSWER,)
    AUTO_FOCUS = "#box"
    HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (60, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-too-low"), (20, "-low"), (30, "-high")]  # noqa: RUF012

    def __init__(self, user_input: UserInput, session: Session | None = None) -> None:
        super().__init__()
        self.cases = Cases()
        self._keys = count(1)
        self._talking = asyncio.Lock()
        self._drawing = asyncio.Lock()
        self._search: Worker[None] | None = None
        self._looking: Worker[None] | None = None
        self._first = user_input
        self._session = session
        """A case that was kept, to go on with."""
        self._in_use: Widget | None = None
        """What had the focus last."""

    def compose(self) -> ComposeResult:
        yield Static(_TOO_SMALL, id="too-small")
        with Horizontal(id="head"):
            yield Static("incident-kb", id="name")
            yield Static(id="status")
        yield CaseBar()
        yield PasteBox()
        yield Static(tour(self.app.in_browser), id="tour")
        with Vertical(id="answer"):
            yield Static(id="verdict")
            yield Static(id="first-to-fail")
            yield MatchList("matches")
            yield LogPane()
            yield Detail(id="detail")
            yield Talk(id="talk")
        yield Hints(id="hints")

    def on_mount(self) -> None:
        """Type at once; the index loads meanwhile."""
        self.query_one("#talk").border_title = "Conversation"
        self.query_one(PasteBox).touring = True
        self.query_one(Hints).show(Place.BOX)
        self.set_interval(_LOOK_SECONDS, self._look_again)
        if self._session:
            self._go_on(self._session)
        elif self._first:
            self.ask(self._first)

    def _screen_resized(self, _size: Size) -> None:
        """Lay out for the size that the app has by now: of two sizes that come at once, Textual
        would bring back each after the other without end."""
        super()._screen_resized(self.app.size)

    @work(group="resume")
    async def _go_on(self, session: Session) -> None:
        """Ask again what a case began with, and say again what was said."""
        user_input, notices = await asyncio.to_thread(asked_again, session)
        for notice in notices:
            self.app.tell(notice, severity="warning")
        self.ask(user_input, session)

    @property
    def case(self) -> Case | None:
        """The one on the screen."""
        return self.cases.current

    @property
    def is_drawing(self) -> bool:
        """Whether the screen is about to show something else: keys would be meant for that."""
        return self._drawing.locked()

    @property
    def place(self) -> Place:
        """Where the user is."""
        if self.query_one(LogPane).has_focus_within:
            return Place.LOG
        return next(
            (place for kind, place in _PLACES if isinstance(self.focused, kind)), Place.ANSWER
        )

    @property
    def is_draft(self) -> bool:
        """Whether leaving would lose what was typed."""
        others = (case for case in self.cases if not self._is_seen(case.key))
        return self._is_typing or any(case.view.draft.strip() for case in others)

    @property
    def _is_typing(self) -> bool:
        return self.query_one(PasteBox).is_draft or bool(self.query_one(TalkInput).value.strip())

    def go_back(self) -> None:
        """From anywhere to the answer, and from the answer to the box."""
        if self.query_one(Detail).has_focus:
            self.action_paste()
            return
        self._leave_log()
        self.remove_class("-talking")
        self.query_one(Detail).focus()

    def say(self, status: str) -> None:
        """Tell in the first line what is going on."""
        self.query_one("#status", Static).update(Content(status))

    @on(PasteBox.Asked)
    def _asked(self, event: PasteBox.Asked) -> None:
        self.ask(event.user_input)

    @on(PasteBox.SampleChosen)
    def _sample_chosen(self, event: PasteBox.SampleChosen) -> None:
        self.ask(UserInput(text=sample(event.number)))

    def ask(self, user_input: UserInput, session: Session | None = None) -> None:
        """Diagnose what the user gave and show the answer; a newer question ends that."""
        self._search = self._begin(user_input, session, self.case.key if self.case else None)

    @work(exclusive=True, group="search")
    async def _begin(
        self, user_input: UserInput, session: Session | None, asked_in: int | None
    ) -> None:
        case = await self._diagnosed(next(self._keys), user_input)
        if case is None:
            return
        async with self._talking:  # what was said before is heard before
            if session:
                case = await self._gone_on(case, session)
                self.app.keeper.go_on(case.key, session)
            else:
                self.app.keeper.begin(case.key, user_input, case.diagnosis)
            self.app.keeper.stands(case)
            await self._open(case, asked_in)
        if session is None:
            self._speak(case.key, None)

    @work(exclusive=True, group="search")
    async def _begin_again(self, case: Case) -> None:
        """Read the log of a case anew, and say again what was said."""
        fresh = await self._diagnosed(case.key, case.user_input)
        if fresh is None:
            return
        async with self._talking:
            session = await wrap_future(self.app.keeper.session(case.key))
            fresh = await self._gone_on(fresh, session) if session else fresh
            self._note_view()
            old = self.cases.find(case.key)
            if old is None:
                return
            fresh.log.growth.is_followed = old.log.growth.is_followed
            self._put(old.begun_again(fresh))
            if self._is_seen(case.key):
                await self._show()

    async def _diagnosed(self, key: int, user_input: UserInput) -> Case | None:
        """A case with what its log says; None where that cannot be told, or is not wanted any
        more."""
        from kb.conversation import begin
        from tui.case_log import CaseLog

        self._entitle(user_input)
        self.say(f"reading {user_input.title}")
        growth = await self._growth_of(user_input)
        try:
            diagnosis = await wrap_future(self.app.service.diagnose(user_input.open))
            log = await asyncio.to_thread(CaseLog.of, user_input, diagnosis, growth)
        except SupersededError:
            return None
        except KbError as error:
            self._entitle(self.case.user_input if self.case else UserInput(text=user_input.text))
            self.say(self.app.readiness())
            self.app.tell(str(error), severity="error")
            return None
        self.app.remember(user_input, diagnosis)
        self._tell_notices(diagnosis)
        earlier = await asyncio.to_thread(self.app.outcomes.load)
        conversation = begin(diagnosis, earlier)
        task = await self._task_of(conversation)
        self.say(self.app.readiness(diagnosis.elapsed_ms))
        return Case(key, user_input, conversation, log, task=task)

    async def _growth_of(self, user_input: UserInput) -> Growth:
        """How long the files are before they are diagnosed: what is added comes after."""
        from tui.growth import Growth

        paths = () if user_input.spooled else user_input.paths
        growth = await asyncio.to_thread(Growth, paths)
        growth.is_followed = user_input.followed
        return growth

    def _tell_notices(self, diagnosis: Diagnosis) -> None:
        for notice in diagnosis.notices:
            self.app.tell(notice, severity="warning")

    # The open cases: how a new one gets its place, and how the screen comes to another.

    async def _open(self, case: Case, asked_in: int | None) -> None:
        """Show a new case, unless the user has gone to another one meanwhile, or is typing."""
        self._note_view()
        is_awaited = asked_in == (self.case.key if self.case else None)
        is_talking = bool(self.case and self.case.view.draft.strip())
        gone = self.cases.open(case, asked_in)
        if gone:
            self._leave_off(gone, f"{MAX_CASES} cases are open: {gone.title} was closed.")
        if self.case is None or self._is_seen(case.key) or (is_awaited and not is_talking):
            self.cases.show(case.key)
            await self._come()
            if not self._is_typing:  # do not interrupt the user while typing
                self.query_one(Detail).focus()
        else:
            self._entitle(self.case.user_input)
            self._show_bar()
            self.app.tell(f"Case {self.cases.number(case.key)} is ready: {case.title}")

    def _is_seen(self, key: int) -> bool:
        """Whether a case is the one on the screen."""
        return self.case is not None and self.case.key == key

    def _put(self, case: Case) -> None:
        """Let a case go on as this value, and keep it so."""
        self.cases.put(case)
        self.app.keeper.stands(case)

    def _note_view(self) -> None:
        """Remember how the case on the screen is seen."""
        if self.case:
            selected, draft = self.query_one(MatchList).selected, self.query_one(TalkInput).text
            view = View(selected, draft, self.query_one(LogPane).place)
            self.cases.put(msgspec.structs.replace(self.case, view=view))

    async def _come(self) -> None:
        """Show the case to which the user has gone."""
        if self.case:
            self.query_one(TalkInput).turn_to(self.case)
            self._entitle(self.case.user_input)
            self._show_bar()
            await self._show()

    def _leave_off(self, case: Case, sentence: str) -> None:
        """A case is open no more; say how to bring it back, if there is something in it."""
        kept = self.app.keeper.kept(case.key)
        self.app.keeper.forget(case.key)
        if not case.is_spare:
            self._tell_kept(sentence, kept)

    @work(group="kept")
    async def _tell_kept(self, sentence: str, kept: Future[Session | None]) -> None:
        session = await wrap_future(kept)
        back = f"kb --resume {session.id} brings it back." if session else "It is not kept."
        self.app.tell(f"{sentence} {back}")

    def _show_bar(self) -> None:
        place = self.cases.number(self.case.key) - 1 if self.case else 0
        self.query_one(CaseBar).show([case.title for case in self.cases], place)
        self._hint()

    async def _gone_on(self, case: Case, session: Session) -> Case:
        """After all that was said and done."""
        try:
            for message in session.messages:
                reply = self.app.service.reply(case.conversation, message)
                case = case.said(await wrap_future(reply), None)
        except KbError as error:
            self.app.tell(str(error), severity="error")
        task = await self._task_of(case.conversation)
        return msgspec.structs.replace(case, task=task, done=case.done | frozenset(session.done))

    def _entitle(self, user_input: UserInput) -> None:
        """Say in the box what the answer is about, unless something else is being typed."""
        box = self.query_one(PasteBox)
        if user_input.text != box.text and not box.is_draft:
            box.show_asked(user_input.text)
        box.placeholder = Content(user_input.name)  # no markup

    async def _task_of(self, conversation: Conversation) -> Task | None:
        """What to do now; nothing where that cannot be told: the answer is there without it."""
        try:
            return await wrap_future(self.app.service.task(conversation))
        except (SupersededError, KbError):
            return None

    async def _show(self) -> None:
        """Show all of the case, from the beginning."""
        async with self._drawing:
            if self.case:
                await self._show_all(self.case)

    async def _show_news(self) -> None:
        """Show what a turn has changed."""
        async with self._drawing:
            if self.case:
                await self._show_matches(self.case)

    async def _show_all(self, case: Case) -> None:
        self.set_class(True, "-answered")
        self.query_one(PasteBox).touring = False
        self.query_one(LogPane).show(case.log, case.view.log)
        self._fit_log()
        first = first_to_fail(case.diagnosis.job)
        self.query_one("#first-to-fail", Static).update(first)
        self.query_one("#first-to-fail").display = bool(first)
        self.query_one(PasteBox).show_line(_decisive_line(case))
        await self.query_one(Talk).clear()
        await self._show_matches(case)

    async def _show_matches(self, case: Case) -> None:
        conversation = case.conversation
        self.query_one("#verdict", Static).update(verdict_line(conversation.verdict))
        self.query_one(MatchList).show(
            conversation.matches,
            overview_line(case) if case.is_open else "",
            brief=self.has_class("-low") and not case.is_open,
            selected=case.view.selected,
        )
        self.set_class(not conversation.matches, "-without-matches")
        if not conversation.matches:
            await self._show_overview(case)
        await self.query_one(Talk).show(case, suggested(case))

    async def _show_overview(self, case: Case) -> None:
        explained = explain(case.diagnosis, has_matches=bool(case.matches))
        await self.query_one(Detail).show_overview(case, explained)

    @on(OptionList.OptionHighlighted, "#matches")
    async def _selected(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        match = self.case and self.case.match(event.option_id)
        if self.case and match:
            self.query_one(LogPane).mark(match.why)
            await self.query_one(Detail).show(match, self.case.done_of(match.incident.id))
        elif self.case and event.option_id == OVERVIEW:
            self.query_one(LogPane).mark(
                [why for match in self.case.matches[:1] for why in match.why]
            )
            await self._show_overview(self.case)

    @on(OptionList.OptionSelected, "#matches")
    def _chosen(self) -> None:
        self.query_one(Detail).focus()

    @on(MatchList.PageTurned)
    def _page_turned(self, event: MatchList.PageTurned) -> None:
        detail = self.query_one(Detail)
        detail.scroll_page_down() if event.by > 0 else detail.scroll_page_up()

    @on(TalkInput.Said)
    def _heard(self, event: TalkInput.Said) -> None:
        self._said(event.case, event.text)

    @work(group="talk")
    async def _said(self, key: int, text: str) -> None:
        """Hear what the user says in a case, and reply there."""
        async with self._talking:  # each turn follows from the one before
            before = self.cases.find(key)
            if before is None:
                return
            self.app.keeper.said(key, text)
            try:
                conversation = await wrap_future(self.app.service.reply(before.conversation, text))
            except KbError as error:
                self.app.tell(str(error), severity="error")
                return
            await self._replied(key, conversation, await self._task_of(conversation))
        self._speak(key, before.conversation)

    async def _replied(self, key: int, conversation: Conversation, task: Task | None) -> None:
        if self._is_seen(key):
            self._note_view()
        case = self.cases.find(key)
        if case:
            self.app.keep_outcome(case.conversation, conversation)
            self._put(case.said(conversation, task))
        if self._is_seen(key):
            await self._show_news()

    def _speak(self, key: int, before: Conversation | None) -> None:
        """Let the optional voice say it in its words; a newer turn ends that."""
        case = self.cases.find(key)
        if self.app.speaker and case:
            self._listen(self.app.speaker, case, before)

    @work(group="voice", exclusive=True)
    async def _listen(self, speaker: Speaker, case: Case, before: Conversation | None) -> None:
        worker, conversation = get_current_worker(), case.conversation
        words = speaker.words(conversation, before, lambda: not worker.is_cancelled)
        said, place = iter(words), len(conversation.turns) - 1
        voiced = Voiced(place, speaker.voice.model, conversation.language)
        while sentence := await asyncio.to_thread(next, said, None):
            voiced = voiced.with_sentence(sentence.text)
            if not await self._voice_says(case, voiced):
                return
        if voiced.sentences and words.dropped:
            await self._voice_says(case, msgspec.structs.replace(voiced, dropped=words.dropped))

    async def _voice_says(self, about: Case, voiced: Voiced) -> bool:
        """Whether that still belongs to what was said last in the case."""
        async with self._drawing:
            case = self.cases.find(about.key)
            if case is None or case.conversation is not about.conversation:
                return False
            self.cases.put(case.heard(voiced))
            if self._is_seen(case.key):
                await self.query_one(Talk).hear(voiced)
            return True

    # Following: the files of all cases that are followed are looked at for failures.

    def _look_again(self) -> None:
        is_busy = any(worker and not worker.is_finished for worker in (self._search, self._looking))
        if not is_busy and any(case.log.growth.is_followed for case in self.cases):
            self._looking = self._look()

    @work(group="look")
    async def _look(self) -> None:
        followed = [case.log.growth for case in self.cases if case.log.growth.is_followed]
        try:
            markers = await self.query_one(LogPane).loaded_markers()
        except KbError as error:
            self.app.tell(str(error), severity="error")
            for growth in followed:
                growth.is_followed = False
            return
        for growth in followed:
            if await asyncio.to_thread(growth.has_failed, markers):
                self._failing(growth)

    def _failing(self, growth: Growth) -> None:
        """Lines that tell of a failure were added to the log of a case."""
        case = next((case for case in self.cases if case.log.growth is growth), None)
        if case is None:
            return
        if not self._is_seen(case.key):
            self.app.tell(f"New errors in case {self.cases.number(case.key)}: {case.title}")
        elif case.is_talked_about:
            self.app.tell("New errors in the log. F5: diagnose again")
        else:
            self.action_again()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Say what can be done here."""
        self._in_use = event.widget
        self._hint()

    def on_resize(self) -> None:
        """What was in use is in use again when there is room: without a focus, what is typed would
        be keys."""
        self.call_after_refresh(self._take_up)

    def _take_up(self) -> None:
        if self.focused is None and self._in_use and self._in_use.focusable:
            self._in_use.focus()

    @on(Detail.StepChanged)
    def _hint(self) -> None:
        self.query_one(Hints).show(self.place, self._away())

    def _away(self) -> Iterator[str]:
        """The actions that would do nothing now."""
        from kb.conversation.done_steps import FixStep
        from kb.run import why_off

        case, task = self.case, self.current_task
        if case is None:
            yield from (
                action.identifier for action in actions_of(Place.ANSWER) if action.name != "paste"
            )
            return
        if not isinstance(task, FixStep):
            yield "tick"
        if self.selected is None:
            yield "next_step"
        if task is None or command_of(task) is None:
            yield "copy_command"
        if task is None or why_off(self.app.settings) or self._plan(task) is None:
            yield "run_here"
        if self.query_one(MatchList).option_count < _SEVERAL:
            yield "next_candidate"
        if not case.matches:
            yield "next_evidence"
        if len(self.cases) < _SEVERAL:
            yield "next_case"
        if case.diagnosis.job is None:
            yield "ranks"

    async def on_paste(self, event: events.Paste) -> None:
        """A paste is a new search wherever the user is, unless a box takes it."""
        box = self.query_one(PasteBox)
        box.focus()
        box.take(event.text)

    # The actions of the place *Answer*, in the order of the registry.

    @property
    def selected(self) -> Match | None:
        """The match whose detail is shown."""
        return self.case.match(self.query_one(MatchList).selected) if self.case else None

    @property
    def current_task(self) -> Task | None:
        """What is done, copied or run by a key: the current step, or the check of the overview."""
        from kb.conversation.done_steps import FixStep

        match, step = self.selected, self.query_one(Detail).step
        if match is None:
            return self.case.look if self.case else None
        return FixStep(match.incident, step + 1, match.incident.body.fix[step])

    def _brought(self) -> bool:
        """Whether the step that a key is about was on the screen; it is now."""
        detail = self.query_one(Detail)
        if detail.display and detail.shows_step:
            return True
        self._leave_log()
        self.remove_class("-talking")
        self.call_after_refresh(detail.bring_step)
        return False

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
        pane = self.query_one(LogPane)
        if not pane.has_evidence:
            self.app.tell("No line of the log supports this incident.")
            return
        self._bring_log()  # first: how far a line is moved sideways depends on the room
        self.call_after_refresh(pane.step, by)

    def _bring_log(self) -> None:
        """Where there is no room beside the answer, the log takes its place."""
        if self.has_class("-narrow"):
            self.add_class("-log")
            self._fit_log()
            self.query_one("LogView").focus()

    def action_again(self) -> None:
        """Diagnose what the log holds by now; what was said and done of the case stays."""
        if self.case:
            self._search = self._begin_again(self.case)

    def action_next_step(self) -> None:
        """Go to the next step of the fix."""
        self._step(1)

    def action_previous_step(self) -> None:
        """Go to the one before."""
        self._step(-1)

    def _step(self, by: int) -> None:
        self._leave_log()
        self.remove_class("-talking")
        self.query_one(Detail).go_to_step(by)

    def action_next_candidate(self) -> None:
        """Show the next candidate."""
        self.query_one(MatchList).select_next(1)

    def action_previous_candidate(self) -> None:
        """Show the one before."""
        self.query_one(MatchList).select_next(-1)

    def action_tick(self) -> None:
        """Tick the step, or take the tick away, and go to the next one that is not done."""
        from kb.conversation.done_steps import FixStep

        task = self.current_task
        if self.case and isinstance(task, FixStep) and self._brought():
            case = self.case.ticked(task.incident.id, task.number - 1)
            self._put(case)
            self.query_one(Detail).tick(case.done_of(task.incident.id))

    async def action_copy_command(self) -> None:
        """Copy the command of the current step."""
        task = self.current_task
        if task is None or not self._brought():
            return
        command = command_of(task)
        if command is None:
            self.app.tell(f"{title_of(task)} has no command.")
        else:
            self.app.tell(await copy(command, self.app), title=f"{title_of(task)}: command")

    async def action_copy_for_all(self) -> None:
        """Copy the command of the current step for all nodes; it is not run."""
        from kb.conversation.replies.everywhere import command_for_all

        task = self.current_task
        if self.case is None or task is None or not self._brought():
            return
        command = command_for_all(task, self.case.conversation)
        if command is None:
            self.app.tell("This is no command that looks at each node.")
        else:
            self.app.tell(await copy(command, self.app), title="For all nodes")

    @work(group="run", exclusive=True)
    async def action_run_here(self) -> None:
        """Run the command of the current step, if its record allows it and the user agrees."""
        from kb.run import why_off
        from tui.screens.run import RunScreen

        if self.app.stays_away():
            return
        case, task, off = self.case, self.current_task, why_off(self.app.settings)
        if case is None or task is None or not self._brought():
            return
        plan = self._plan(task)
        if off or plan is None:
            self.app.tell(off or self._why_not_run(task))
            return
        agreed = await self.app.push_screen_wait(RunScreen(plan))
        if agreed:
            await self._run(agreed, case.key)

    async def _run(self, plan: Plan, key: int) -> None:
        """Run it; what it prints is said in the case for which it was asked."""
        from kb.run import execute

        self.say(f"running {plan}")
        stop = threading.Event()
        try:
            output = await asyncio.to_thread(execute, plan, stop)
        except KbError as error:
            self.app.tell(str(error), severity="error")
            return
        finally:
            stop.set()
            self.say(self.app.readiness())
        for note in output.notes:
            self.app.tell(note, severity="warning")
        if self._is_seen(key):
            self.set_class(True, "-talking")
        self._said(key, output.text)

    def _plan(self, task: Task) -> Plan | None:
        from kb.service.running import plan_of

        try:
            return plan_of(task)
        except KbError:
            return None

    def _why_not_run(self, task: Task) -> str:
        from kb.service.running import plan_of

        try:
            plan_of(task)
        except KbError as error:
            return f"{error}."
        return ""

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
                self._tell_written(f"{written}")

    def _tell_written(self, what: str) -> None:
        self.app.tell(f"{'Downloaded' if self.app.in_browser else 'Written'}: {what}")

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
        elif self.case and question and number <= len(question.answers):
            self._said(self.case.key, question.answers[number - 1])

    def action_undo(self) -> None:
        """Take back what was last said."""
        if self.case:
            self._said(self.case.key, "undo")

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
        if self.case is None:
            return
        if self.has_class("-log"):
            self._leave_log()
            self.query_one(Detail).focus()
        else:
            self.add_class("-log")
            self._fit_log()
            self.query_one("LogView").focus()

    def _leave_log(self) -> None:
        self.remove_class("-log")
        self._fit_log()

    def _fit_log(self) -> None:
        """Leave the room that a short log does not need to others."""
        lines = self.case.diagnosis.evidence.total_lines if self.case else 0
        alone = self.has_class("-log")
        self.query_one(LogPane).styles.height = "1fr" if alone else lines + _FRAME_ROWS

    @work(group="draft", exclusive=True)
    async def action_new(self) -> None:
        """Draft a record of this case."""
        from tui.screens.draft import DraftScreen

        if self.case:
            record = await wrap_future(self.app.service.draft(self.case.diagnosis))
            directory = expand_user(next(iter(self.app.settings.incidents), Path.cwd()))
            written = await self.app.push_screen_wait(DraftScreen(record, directory))
            if written:
                self.app.service.refresh()
                self._tell_written(f"{written}. Fill in the TODOs, then run: kb lint {written}")

    @work(group="tour", exclusive=True)
    async def action_tour(self) -> None:
        """Show the first screen again."""
        from tui.screens.tour import TourScreen

        number = await self.app.push_screen_wait(TourScreen())
        if number:
            self.ask(UserInput(text=sample(number)))

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

        if self.app.stays_away():
            return
        screen = HistoryScreen(self.app.history.load(), self.app.settings.history)
        user_input = await self.app.push_screen_wait(screen)
        if user_input:
            self.ask(user_input)

    @work(group="open", exclusive=True)
    async def action_open(self) -> None:
        """Choose a log or a directory."""
        from tui.screens.pick import PickScreen

        if self.app.stays_away():
            return
        path = await self.app.push_screen_wait(PickScreen("Open a log, or the logs of one job"))
        if path:
            self.ask(UserInput(paths=(path,), name=str(path)))

    @work(group="batch", exclusive=True)
    async def action_batch(self) -> None:
        """Classify a directory, and open what is picked of it."""
        from tui.screens.batch import BatchScreen
        from tui.screens.pick import PickScreen

        if self.app.stays_away():
            return
        directory = await self.app.push_screen_wait(PickScreen("Classify all logs below"))
        if directory:
            path = await self.app.push_screen_wait(BatchScreen(directory, self.app.settings))
            if path:
                self.ask(UserInput(paths=(path,), name=str(path)))

    def action_next_case(self) -> None:
        """Go to the next open case."""
        self._step_case(1)

    def action_previous_case(self) -> None:
        """Go to the one before."""
        self._step_case(-1)

    @work(group="cases")
    async def _step_case(self, by: int) -> None:
        if len(self.cases) < _SEVERAL:
            self.app.tell("There is no other case.")
            return
        self._note_view()
        self.cases.step(by)
        await self._come()

    @on(CaseBar.Picked)
    @work(group="cases")
    async def _case_picked(self, event: CaseBar.Picked) -> None:
        self._note_view()
        self.cases.show_at(event.place)
        await self._come()

    @work(group="close", exclusive=True)
    async def action_close_case(self) -> None:
        """Close the case; ask first if something of it is not kept."""
        from tui.screens.confirm import ConfirmScreen

        self._note_view()
        case = self.case
        if case is None or len(self.cases) < _SEVERAL:
            self.app.tell("There is no other case.")
            return
        is_kept = await wrap_future(self.app.keeper.kept(case.key)) is not None
        if case.view.draft.strip() or (case.is_talked_about and not is_kept):
            question = "Close this case and discard what is not kept of it?"
            if not await self.app.push_screen_wait(ConfirmScreen(question)):
                return
        self._leave_off(case, f"{case.title} is closed.")
        self.cases.close(case.key)
        await self._come()


def _decisive_line(case: Case) -> int:
    """The number of the line that tells most: the first failure, or the first evidence."""
    job = case.diagnosis.job
    failures = [culprit.line for culprit in job.culprits if culprit.line] if job else []
    evidence = [why.line.number for match in case.matches for why in match.why]
    return next(iter([*failures, *evidence]), 1)
