"""The engine behind the screen: one thread owns the knowledge, so that nothing blocks typing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kb.conversation import Conversation
    from kb.diagnosis import Diagnosis
    from kb.incident import Incident
    from kb.knowledge import Knowledge, Notify, Report
    from kb.settings import Settings
    from tui.subject import Subject

Result = TypeVar("Result")


class SupersededError(Exception):
    """A newer search began while this one still read its log."""


class Engine:
    """Answers one request after the other. A newer search stops an older one.

    The modules of `kb` that search are imported in the thread: they take as long as all else.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._knowledge: Knowledge | None = None
        self._stop = threading.Event()

    async def open(self, report: Report, notify: Notify) -> int:
        """Load the index, after building it where it is missing; return the number of incidents.

        Raises:
            KbError, SearchIndexError: with one sentence for the user.
        """

        def load() -> int:
            from kb.knowledge import Knowledge

            self._knowledge = Knowledge.open(self._settings, report, notify)
            return len(self._knowledge.snapshot)

        return await self._run(load)

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

        def search() -> Diagnosis:
            from kb.conversation import CANDIDATES
            from kb.diagnosis import diagnose
            from kb.log import Log

            check()
            log = Log(source.watched(check) for source in subject.sources)
            return diagnose(log, self._opened, CANDIDATES)

        return await self._run(search)

    async def reply(self, conversation: Conversation, text: str) -> Conversation:
        """Take in what the user says."""

        def answer() -> Conversation:
            from kb.conversation import reply

            return reply(conversation, text, self._opened)

        return await self._run(answer)

    async def draft(self, diagnosis: Diagnosis) -> str:
        """A new record of this case, for a person to complete."""

        def write() -> str:
            from kb.contribute.draft import draft

            return draft(diagnosis, self._opened)

        return await self._run(write)

    async def incidents(self) -> list[Incident]:
        """All records, in order of their ids."""
        return await self._run(lambda: self._opened.incidents())

    def close(self) -> None:
        """Stop reading and release the index; does not wait."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def _opened(self) -> Knowledge:
        if self._knowledge is None:
            raise SupersededError
        return self._knowledge

    async def _run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)
