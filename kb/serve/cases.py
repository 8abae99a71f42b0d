"""The cases of clients, by a handle that nobody can guess."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

from kb.conversation import Conversation
from kb.errors import KbError
from kb.evidence.secrets import blank_secrets
from kb.service.wire import Answer

if TYPE_CHECKING:
    from kb.serve.talks import Talks

MAX_CASES = 200
"""Remembered at a time, those used last."""
_HANDLE_BYTES = 8
_NO_CASE = "no such case, or it expired; call diagnose with the text again"


class Case:
    """One failure, and all that was said of it."""

    def __init__(self, answer: Answer, conversation: Conversation, told: list[str]) -> None:
        self.answer = answer
        """As it was diagnosed, with secrets masked."""
        self.conversation = conversation
        """As it stands now."""
        self.told = told
        """The text that was diagnosed, and what was said or pasted since."""
        self.turn = asyncio.Lock()
        """Held while something is said, so that nothing is lost where two are said at once."""


class Cases:
    """The cases of one process, those used last."""

    def __init__(self) -> None:
        self._cases: OrderedDict[str, Case] = OrderedDict()

    async def keep(self, case: Case) -> str:
        """Keep a case, and return its handle. The one not used for longest may go."""
        handle = secrets.token_hex(_HANDLE_BYTES)
        self._remember(handle, case)
        return handle

    async def find(self, handle: str) -> Case:
        """The case of a handle.

        Raises:
            KbError: there is none, or it had to go.
        """
        if handle not in self._cases:
            raise KbError(_NO_CASE)
        self._cases.move_to_end(handle)
        return self._cases[handle]

    async def tell(self, handle: str, case: Case, text: str) -> None:  # noqa: ARG002
        """Keep what was said.

        Raises:
            KbError: it cannot be kept.
        """
        case.told.append(text)

    def _remember(self, handle: str, case: Case) -> None:
        self._cases[handle] = case
        if len(self._cases) > MAX_CASES:
            self._cases.popitem(last=False)


class SharedCases(Cases):
    """The cases of several processes, which keep in one place what was told; each makes the same of
    it again."""

    def __init__(self, talks: Talks, again: Callable[[list[str]], Awaitable[Case]]) -> None:
        super().__init__()
        self._talks = talks
        self._again = again

    async def keep(self, case: Case) -> str:
        """Keep a case for all processes."""
        handle = await super().keep(case)
        opening = await asyncio.to_thread(blank_secrets, case.told.pop())
        with suppress(KbError):  # the diagnosis is told, and the next call that there is no case
            await self.tell(handle, case, opening)
        return handle

    async def find(self, handle: str) -> Case:
        """The case as it stands, whichever process it was told to."""
        from kb.serve.refusal import RefusedError

        try:
            told = await asyncio.to_thread(self._talks.messages, handle)
        except RefusedError as error:
            is_gone = error.status == HTTPStatus.NOT_FOUND
            raise KbError(_NO_CASE if is_gone else error.sentence) from None
        case = self._cases.get(handle)
        if case is None or case.told != told:
            case = await self._again(told)
            self._remember(handle, case)
        return case

    async def tell(self, handle: str, case: Case, text: str) -> None:
        """Keep what was said for all processes."""
        from kb.serve.refusal import RefusedError
        from kb.serve.talks import check_fits

        try:
            check_fits(case.told, text)
            await asyncio.to_thread(self._talks.add, handle, case.told, text)
        except RefusedError as error:
            raise KbError(error.sentence) from None
        await super().tell(handle, case, text)
