"""The case on the screen: what was asked, what was said, what was done. A value."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kb.conversation import Conversation
    from kb.conversation.next_step import Task
    from kb.diagnosis import Diagnosis, Match
    from kb.service.handoff import HandOff
    from kb.service.input import UserInput


class Case(msgspec.Struct, frozen=True):
    """One search and all that came of it."""

    user_input: UserInput
    conversation: Conversation
    done: frozenset[tuple[str, int]] = frozenset()
    """Steps that are done: id of the incident, place of the step in its fix."""
    task: Task | None = None
    """What to do now, as far as the conversation goes."""

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
        return msgspec.structs.replace(
            self, conversation=conversation, task=task, done=self.done | told
        )

    def ticked(self, identifier: str, step: int) -> Case:
        """The case with a step done, or not done again."""
        return msgspec.structs.replace(self, done=self.done ^ {(identifier, step)})
