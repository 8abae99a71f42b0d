"""The engine behind the screen: one thread owns the knowledge, so that nothing blocks typing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kb.errors import CorpusError

if TYPE_CHECKING:
    from kb.conversation import Conversation
    from kb.corpus.base import KnowledgeBase
    from kb.corpus.sync import Notify, Report
    from kb.diagnosis import Diagnosis
    from kb.incident import Incident
    from kb.service.input import Subject
    from kb.settings import Settings

Result = TypeVar("Result")


class SupersededError(Exception):
    """Nobody waits for this any more: a newer search began, or the app is gone."""


class Engine:
    """Answers one request after the other. A newer search stops an older one.

    The modules of `kb` that search are imported in the thread: they take as long as all else.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._knowledge: KnowledgeBase | None = None
        self._opened = asyncio.Event()
        self._closed = False
        self._stop = threading.Event()

    async def open(self, report: Report, notify: Notify) -> int:
        """Load the index, after building it where it is missing; return the number of incidents.

        Raises:
            KbError: with one sentence for the user.
        """

        def load() -> int:
            from kb.corpus.base import KnowledgeBase

            self._knowledge = KnowledgeBase.open(self._settings, reported, notify)
            return len(self._knowledge)

        def reported(done: int, total: int) -> None:
            if self._closed:
                raise SupersededError
            report(done, total)

        try:
            return await self._run(load)
        finally:
            self._opened.set()

    async def diagnose(self, subject: Subject) -> Diagnosis:
        """Say what is known about a subject.

        Raises:
            LogError: it cannot be read.
            SupersededError: another search began.
        """
        self._stop.set()
        self._stop = stop = threading.Event()

        def check() -> None:
            if stop.is_set():
                raise SupersededError

        def search(knowledge: KnowledgeBase) -> Diagnosis:
            from kb.diagnosis import diagnose
            from kb.log import Log

            check()
            log = Log(source.watched(check) for source in subject.sources)
            return diagnose(log, knowledge)

        return await self._ask(search)

    async def reply(self, conversation: Conversation, text: str) -> Conversation:
        """Take in what the user says."""

        def answer(knowledge: KnowledgeBase) -> Conversation:
            from kb.conversation import reply

            return reply(conversation, text, knowledge)

        return await self._ask(answer)

    async def draft(self, diagnosis: Diagnosis) -> Incident:
        """A new record of this case, for a person to complete."""

        def write(knowledge: KnowledgeBase) -> Incident:
            from kb.contribute.draft import draft_record

            return draft_record(diagnosis, knowledge)

        return await self._ask(write)

    async def incidents(self) -> list[Incident]:
        """All records, in order of their ids."""
        return await self._ask(lambda knowledge: knowledge.incidents())

    def close(self) -> None:
        """Stop reading and release the index; does not wait."""
        self._closed = True
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, question: Callable[[KnowledgeBase], Result]) -> Result:
        await self._opened.wait()
        if self._knowledge is None:
            raise CorpusError("there is no index to search; kb doctor says what is wrong with it")
        return await self._run(partial(question, self._knowledge))

    async def _run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)
