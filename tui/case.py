"""The case on the screen: what was asked, what was said, what was done. A value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from kb.conversation import Conversation
    from kb.diagnosis import Diagnosis, Match
    from tui.subject import Subject


class Case(msgspec.Struct, frozen=True):
    """One search and all that came of it."""

    subject: Subject
    conversation: Conversation
    done: frozenset[tuple[str, int]] = frozenset()
    """Steps that are done: id of the incident, place of the step in its fix."""

    @property
    def diagnosis(self) -> Diagnosis:
        """What the log said."""
        return self.conversation.diagnosis

    def match(self, identifier: str | None) -> Match | None:
        """The match with an incident."""
        matches = self.conversation.matches
        return next((match for match in matches if match.incident.id == identifier), None)

    def done_of(self, identifier: str) -> frozenset[int]:
        """The steps of an incident that are done."""
        return frozenset(step for incident, step in self.done if incident == identifier)

    def ticked(self, identifier: str, step: int) -> Case:
        """The case with a step done, or not done again."""
        return msgspec.structs.replace(self, done=self.done ^ {(identifier, step)})
