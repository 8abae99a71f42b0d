"""A case: what was asked, what was said, what was done, and how it was left. A value."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kb.conversation import Conversation
    from kb.conversation.language import Language
    from kb.conversation.next_step import Task
    from kb.diagnosis import Diagnosis, Match
    from kb.service.handoff import HandOff
    from kb.service.input import UserInput
    from tui.case_log import CaseLog, LogPlace


_MAX_TITLE_CHARACTERS = 60
"""Of a title in a sentence; the bar cuts it further."""


class View(msgspec.Struct, frozen=True):
    """How a case was left on the screen, to come back to it."""

    selected: str | None = None
    """The row of the candidates."""
    draft: str = ""
    """What is typed in the conversation and not sent."""
    log: LogPlace | None = None


class Voiced(msgspec.Struct, frozen=True):
    """What the optional voice has said of a turn."""

    turn: int
    """Place of the turn in the conversation."""
    model: str
    language: Language
    sentences: tuple[str, ...] = ()
    dropped: int = 0
    """Sentences that are not shown."""

    def with_sentence(self, sentence: str) -> Voiced:
        """The same and one more."""
        return msgspec.structs.replace(self, sentences=(*self.sentences, sentence))


class Case(msgspec.Struct, frozen=True):
    """One search and all that came of it."""

    key: int
    """Tells it from all others of this process, and stays with it."""
    user_input: UserInput
    conversation: Conversation
    log: CaseLog
    done: frozenset[tuple[str, int]] = frozenset()
    """Steps that are done: id of the incident, place of the step in its fix."""
    task: Task | None = None
    """What to do now, as far as the conversation goes."""
    voiced: tuple[Voiced, ...] = ()
    view: View = View()

    @property
    def title(self) -> str:
        """A few words that tell it from others, fit for a line: of a path its last two parts."""
        from kb.log.clean import decode_path, strip_controls

        asked = self.user_input
        ends = ["/".join(path.parts[-2:]) for path in asked.paths if not asked.spooled]
        title = decode_path(", ".join(ends)) or asked.title
        return " ".join(strip_controls(title).split())[:_MAX_TITLE_CHARACTERS]

    @property
    def diagnosis(self) -> Diagnosis:
        """What the log said."""
        return self.conversation.diagnosis

    @property
    def matches(self) -> tuple[Match, ...]:
        """The incidents in their current order."""
        return self.conversation.matches

    @property
    def is_talked_about(self) -> bool:
        """Whether the user has told or ticked something, which would be lost with the case."""
        return bool(self.done or self.conversation.statements)

    @property
    def is_spare(self) -> bool:
        """Whether a new question may take its place: nothing was told, ticked or typed, and nobody
        waits for what its log will say."""
        waits = self.is_talked_about or self.log.growth.is_followed
        return not (waits or self.view.draft.strip())

    def match(self, identifier: str | None) -> Match | None:
        """The match with an incident."""
        return next((match for match in self.matches if match.incident.id == identifier), None)

    def done_of(self, identifier: str) -> frozenset[int]:
        """The steps of an incident that are done."""
        return frozenset(step for incident, step in self.done if incident == identifier)

    def handoff(self) -> HandOff:
        """The note for the next engineer, as things stand."""
        from kb.service.handoff import HandOff

        return HandOff.of(
            self.diagnosis,
            datetime.now().astimezone(),
            (self.user_input.title,),
            self.conversation.matches,
            {match.incident.id: self.done_of(match.incident.id) for match in self.matches},
            self.conversation.turns,
        )

    @property
    def is_open(self) -> bool:
        """Whether it is not sure what is wrong, though something is: then look first."""
        return self.conversation.verdict in ("possible", "unknown")

    @property
    def look(self) -> Task | None:
        """What to look at before anything is changed, while it is open."""
        from kb.conversation.done_steps import FixStep, only_looks

        changes = isinstance(self.task, FixStep) and not only_looks(self.task.step)
        return self.task if self.is_open and not changes else None

    def said(self, conversation: Conversation, task: Task | None) -> Case:
        """The case after a turn; steps that the user told of are done."""
        told = {(name, number - 1) for name, number in conversation.done - self.conversation.done}
        after = msgspec.structs.replace(
            self, conversation=conversation, task=task, done=self.done | told
        )
        return after if after._first == self._first else after.seen(selected=None)

    @property
    def _first(self) -> tuple[bool, Task | None, list[str]]:
        """What stands first in the list."""
        return self.is_open, self.look, [match.incident.id for match in self.matches[:1]]

    def seen(self, **view: object) -> Case:
        """The case with something else in how it was left."""
        return msgspec.structs.replace(self, view=msgspec.structs.replace(self.view, **view))

    def heard(self, voiced: Voiced) -> Case:
        """The case with what the voice has said of a turn so far."""
        others = tuple(one for one in self.voiced if one.turn != voiced.turn)
        return msgspec.structs.replace(self, voiced=(*others, voiced))

    def begun_again(self, fresh: Case) -> Case:
        """What was diagnosed again, with what was ticked, typed and selected in this one."""
        selected = self.view.selected if fresh._first == self._first else None
        view = View(selected, self.view.draft)
        return msgspec.structs.replace(fresh, done=fresh.done | self.done, view=view)

    def ticked(self, identifier: str, step: int) -> Case:
        """The case with a step done, or not done again."""
        return msgspec.structs.replace(self, done=self.done ^ {(identifier, step)})
