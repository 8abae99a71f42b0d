"""The conversation about a case, below its detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Input, Static

from tui.actions import Place, bindings
from tui.prose import inline

if TYPE_CHECKING:
    from kb.conversation import Conversation, Turn
    from kb.diagnosis import Question


_GAP = Content("   ")


class TalkInput(Input):
    """Where the user says something."""

    BINDINGS = bindings(Place.TALK)

    async def action_say(self) -> None:
        """Hand over what is typed."""
        await self.action_submit()


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
    """What was said; the newest is read from its beginning."""

    def __init__(self, turn: Turn, *, newest: bool) -> None:
        text = inline(turn.text)
        said = text if turn.speaker == "tool" else Content.assemble("› ", text)
        super().__init__(said, classes=f"turn {turn.speaker}")
        self._newest = newest

    def on_resize(self) -> None:
        """Scroll after the layout, when the position of the turn is known."""
        if self._newest and isinstance(self.parent, VerticalScroll):
            self._newest = False
            self.parent.scroll_to(y=self.virtual_region.y, animate=False, force=True)


class Talk(Vertical):
    """What was said, the open question with its answers, and a line to say more."""

    class Said(Message):
        """The user says something, or picks an answer."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def compose(self) -> ComposeResult:
        yield VerticalScroll(id="turns", can_focus=False)
        yield QuestionView(id="question")
        yield TalkInput(
            placeholder="also with gloo · we run NCCL 2.18 · why not 2? · what next?", id="say"
        )

    async def show(self, conversation: Conversation) -> None:
        """Show all that was said and what is asked."""
        turns = self.query_one("#turns", VerticalScroll)
        shown = len(turns.children)
        # Of a case that goes on, the last turn of the user and the reply to it are the newest.
        newest = max(shown, len(conversation.turns) - 2)
        rows = [
            TurnRow(turn, newest=number == newest)
            for number, turn in enumerate(conversation.turns[shown:], shown)
        ]
        await turns.mount_all(rows)
        self.query_one(QuestionView).question = conversation.question

    async def clear(self) -> None:
        """Forget the case."""
        await self.query_one("#turns").remove_children()
        self.query_one(QuestionView).question = None

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Hand over what was said."""
        event.stop()
        if event.value.strip():
            event.input.clear()
            self.post_message(self.Said(event.value.strip()))


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
