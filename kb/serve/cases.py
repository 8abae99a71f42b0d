"""The cases of clients, kept in memory by a handle that nobody can guess."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict

from kb.conversation import Conversation
from kb.errors import KbError
from kb.service.wire import Answer

MAX_CASES = 200
"""Kept at a time, those used last."""
_HANDLE_BYTES = 8


class Case:
    """One failure, and all that was said of it."""

    def __init__(self, answer: Answer, conversation: Conversation) -> None:
        self.answer = answer
        """As it was diagnosed, with secrets masked."""
        self.conversation = conversation
        """As it stands now."""
        self.turn = asyncio.Lock()
        """Held while something is said, so that nothing is lost where two are said at once."""


class Cases:
    """The cases used last."""

    def __init__(self) -> None:
        self._cases: OrderedDict[str, Case] = OrderedDict()

    def keep(self, case: Case) -> str:
        """Keep a case, and return its handle. The one not used for longest may go."""
        handle = secrets.token_hex(_HANDLE_BYTES)
        self._cases[handle] = case
        if len(self._cases) > MAX_CASES:
            self._cases.popitem(last=False)
        return handle

    def find(self, handle: str) -> Case:
        """The case of a handle.

        Raises:
            KbError: there is none, or it had to go.
        """
        if handle not in self._cases:
            raise KbError("no such case, or it expired; call diagnose with the text again")
        self._cases.move_to_end(handle)
        return self._cases[handle]
