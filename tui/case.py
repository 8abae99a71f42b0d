"""The case on the screen: what was asked, what was said, what was done. A value."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kb.conversation import Conversation
    from kb.diagnosis import Diagnosis, Match
    from kb.service.handoff import HandOff
    from kb.service.input import UserInput


class Case(msgspec.Struct, frozen=True):
    """One search and all that came of it."""

    user_input: UserInput
    conversation: Conversation
    done: frozenset[tuple[str, int]] = frozenset()
    """Steps that are done: id of the incident, place of the step in its fix."""

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

    def said(self, conversation: Conversation) -> Case:
        """The case after a turn; steps that the user told of are done."""
        told = {(name, number - 1) for name, number in conversation.done - self.conversation.done}
        return msgspec.structs.replace(self, conversation=conversation, done=self.done | told)

    def ticked(self, identifier: str, step: int) -> Case:
        """The case with a step done, or not done again."""
        return msgspec.structs.replace(self, done=self.done ^ {(identifier, step)})
