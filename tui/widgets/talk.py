"""The conversation about a case: what was said, what is asked, and a box to say more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

from kb.service.input import is_large
from tui.actions import Place, bindings
from tui.pasted import cleaned, folded, is_long, with_line_ends
from tui.prose import inline, spoken
from tui.widgets.chat_box import ChatBox

if TYPE_CHECKING:
    from kb.conversation import Conversation, Turn
    from kb.diagnosis import Question
    from tui.case import Case, Voiced


_GAP = Content("   ")
_BETWEEN = " · "
_MARK = re.compile(r"\[pasted [\d,]+ lines(?:, \d+)?\]")
"""Stands in the box for a long paste."""
_TOO_LONG = "This is too long for a message. Press esc and p, and paste it there: it is a log."


class TalkInput(ChatBox):
    """Where the user says something. A paste of many lines stands in it as `[pasted 12 lines]`."""

    BINDINGS = bindings(Place.TALK)

    class Said(Message):
        """The user says something in a case, by its key."""

        def __init__(self, case: int, text: str) -> None:
            super().__init__()
            self.case, self.text = case, text

    def __init__(self) -> None:
        super().__init__("say")
        self._case = 0
        self._pastes: dict[str, str] = {}
        self._said: list[str] = []
        self._suggested: Sequence[str] = ()
        self._recalled = 0
        """How many messages back."""

    def suggest(self, suggested: Sequence[str]) -> None:
        """Show what could be said, as much of it as fits into a line."""
        self._suggested = suggested
        self.on_resize()

    def on_resize(self) -> None:
        """More or less of it fits."""
        self.placeholder = Content(_fitting(self._suggested, self.size.width))

    def turn_to(self, case: Case) -> None:
        """Take what is typed from now on for said in this case; what was sent is said in the one
        before."""
        self.send_now()
        self._case = case.key
        self.load_text(case.view.draft)
        self.move_cursor(self.document.end)

    @property
    def value(self) -> str:
        """What is typed, with what was pasted in its place."""
        return _MARK.sub(lambda mark: self._pastes.get(mark[0], mark[0]), self.text)

    def action_say(self) -> None:
        """Hand over what is typed."""
        self.send_soon()

    def send(self) -> None:
        """Say it at once."""
        if not self.text.strip():
            return
        self.post_message(self.Said(self._case, self.value.strip()))
        self._said = [*(text for text in self._said if text != self.text), self.text]
        self._recalled = 0
        self.clear()

    def action_earlier(self) -> None:
        """From the first line, bring back what was said before."""
        if self.cursor_location[0] == 0:
            self._recall(self._recalled + 1)
        else:
            self.action_cursor_up()

    def action_later(self) -> None:
        """From the last line, what was said after it."""
        if self.cursor_at_last_line:
            self._recall(self._recalled - 1)
        else:
            self.action_cursor_down()

    def action_turns_up(self) -> None:
        """Scroll the conversation back."""
        self._scroll(-1)

    def action_turns_down(self) -> None:
        """Scroll the conversation on."""
        self._scroll(1)

    def _scroll(self, by: int) -> None:
        if isinstance(self.parent, Talk):
            self.parent.scroll_page(by)

    def _recall(self, back: int) -> None:
        if not 0 <= back <= len(self._said):
            return
        self._recalled = back
        self.load_text(self._said[-back] if back else "")
        self.move_cursor(self.document.end)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = cleaned(with_line_ends(event.text)).strip("\n")
        if is_large(text):
            self.notify(_TOO_LONG, severity="error", markup=False)
        else:
            self.insert(self._marked(text) if is_long(text) else text)

    def _marked(self, text: str) -> str:
        """What stands for a long paste."""
        lines = f"pasted {text.count(chr(10)) + 1:,} lines"
        same = sum(mark.startswith(f"[{lines}") for mark in self._pastes)
        mark = f"[{lines}, {same + 1}]" if same else f"[{lines}]"
        self._pastes[mark] = text
        return mark


class QuestionView(Static):
    """The open question, and its answers by number."""

    question: reactive[Question | None] = reactive(None)

    def watch_question(self) -> None:
        """Draw it, or nothing."""
        self.display = self.question is not None
        self._draw()

    def on_resize(self) -> None:
        """Fill the lines anew."""
        self._draw()

    def _draw(self) -> None:
        if self.question:
            lines = _filled(self.question.answers, self.size.width)
            self.update(Content("\n").join([inline(self.question.text), *lines]))


class TurnRow(Static):
    """What was said."""

    def __init__(self, turn: Turn, read: Sequence[str]) -> None:
        super().__init__(_said(turn, read), classes=f"turn {turn.speaker}")


class VoiceRow(Static):
    """What the voice says of the turn above it."""

    def __init__(self, voiced: Voiced) -> None:
        super().__init__(classes="turn")
        self.hear(voiced)

    def hear(self, voiced: Voiced) -> None:
        """Show all that it has said of the turn so far."""
        self.turn = voiced.turn
        self.update(Content("\n").join(_voiced(voiced)))


class Turns(VerticalScroll):
    """All that was said; the newest is read from its beginning."""

    newest: TurnRow | None = None

    def watch_virtual_size(self) -> None:
        """Scroll after the layout. Textual tells a row that is below the visible ones nothing of
        its layout."""
        self.bring_newest()

    def bring_newest(self) -> None:
        """Scroll to the newest, if its place is known."""
        if self.newest and (place := self.newest.virtual_region):
            self.scroll_to(y=place.y, animate=False, force=True)


class Talk(Vertical):
    """What was said, the open question with its answers, and a box to say more."""

    def compose(self) -> ComposeResult:
        yield Turns(id="turns", can_focus=False)
        yield QuestionView(id="question")
        yield TalkInput()

    async def show(self, case: Case, suggested: Sequence[str]) -> None:
        """Show all that was said, what is asked, and what could be said next."""
        turns, conversation = self.query_one(Turns), case.conversation
        shown = len(turns.query(TurnRow))
        rows = [TurnRow(turn, _read_in(turn, conversation)) for turn in conversation.turns[shown:]]
        if rows:
            # Of a case that goes on, the last turn of the user and the reply to it are the newest.
            turns.newest = rows[max(0, len(rows) - 2)]
        voiced = {one.turn: VoiceRow(one) for one in case.voiced if one.turn >= shown}
        both = ((row, voiced.get(place)) for place, row in enumerate(rows, shown))
        await turns.mount_all(filter(None, chain.from_iterable(both)))
        if rows:  # a layout before the rows had their place may have been the last one
            turns.call_after_refresh(turns.bring_newest)
        self.query_one(QuestionView).question = conversation.question
        self.query_one(TalkInput).suggest(suggested)

    async def hear(self, voiced: Voiced) -> None:
        """Show what the voice says of the newest turn."""
        turns = self.query_one(Turns)
        row = next((row for row in turns.query(VoiceRow) if row.turn == voiced.turn), None)
        if row:
            row.hear(voiced)
        else:
            await turns.mount(VoiceRow(voiced))

    async def clear(self) -> None:
        """Forget the case."""
        turns = self.query_one(Turns)
        turns.newest = None
        await turns.remove_children()
        self.query_one(QuestionView).question = None

    def scroll_page(self, by: int) -> None:
        """Go through what was said."""
        turns = self.query_one(Turns)
        turns.scroll_page_down() if by > 0 else turns.scroll_page_up()


def _read_in(turn: Turn, conversation: Conversation) -> tuple[str, ...]:
    """The checks of which a message holds the output."""
    said = (one.checks for one in conversation.statements if one.text == turn.text)
    return () if turn.speaker == "tool" else next(said, ())


def _said(turn: Turn, read: Sequence[str]) -> Content:
    if turn.speaker == "tool":
        return spoken(turn.text)
    text = Content(folded(turn.text)) if is_long(turn.text) else inline(turn.text)
    as_output = f"\n  read as the output of {', '.join(read)}" if read else ""
    return Content.assemble("› ", text, (as_output, "dim"))


def _voiced(voiced: Voiced) -> Iterator[Content]:
    from kb.conversation.language import say

    yield Content.styled(say("voice", voiced.language, model=voiced.model), "dim")
    for sentence in voiced.sentences:
        yield Content.assemble("  ", inline(sentence))
    if voiced.dropped:
        dropped = say("voice-dropped", voiced.language, number=voiced.dropped)
        yield Content.assemble("  ", (dropped, "dim"))


def _fitting(suggested: Sequence[str], width: int) -> str:
    number = len(suggested)
    while number > 1 and len(_BETWEEN.join(suggested[:number])) >= width:
        number -= 1
    return _BETWEEN.join(suggested[:number])


def _filled(answers: Sequence[str], width: int) -> Iterator[Content]:
    """Lines of numbered answers, none of which is broken in two unless it is longer than a line."""
    line: list[Content] = []
    for number, answer in enumerate(answers, 1):
        piece = Content.assemble((str(number), "bold $accent"), " ", answer)
        if line and sum(len(_GAP) + part.cell_length for part in (*line, piece)) > width + len(
            _GAP
        ):
            yield _GAP.join(line)
            line = []
        line.append(piece)
    yield _GAP.join(line)
