"""How cases on this machine ended, so that the next one like it is told what helped."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from index.progress import Notify
from kb.kept import KeptList, Named
from kb.outcome import Outcome
from kb.settings import Settings

if TYPE_CHECKING:
    from kb.conversation import Conversation

MAX_OUTCOMES_KEPT = 200
"""Number of outcomes, one for each record; older ones are forgotten."""

_NAMED = Named("outcomes", "outcome of this case", "outcome", "outcomes")


class Outcomes:
    """The file of the outcomes. Errors are reported with `notify` and never raised.

    With `history = false` in the settings it is empty and stays so.
    """

    def __init__(self, settings: Settings, notify: Notify) -> None:
        self._kept = settings.history
        self._list = KeptList(_NAMED, Outcome, notify)

    def load(self) -> tuple[Outcome, ...]:
        """The outcomes, newest first. A damaged file is set aside."""
        return self._list.load() if self._kept else ()

    def take(self, before: Conversation, after: Conversation) -> None:
        """Keep what a turn says of the end of the case, if it says anything."""
        solved = after.solved
        if self._kept and solved and solved.record and solved != before.solved:
            outcome = Outcome(datetime.now(UTC), solved.record, solved.step)
            self._list.add(outcome, lambda one: one.record, MAX_OUTCOMES_KEPT)
