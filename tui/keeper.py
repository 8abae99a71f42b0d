"""Keeps the open cases as they go on, in a thread of its own: masking their secrets takes a while,
and their directory may be a slow one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from kb.containment import contained
from kb.sessions import MAX_TEXT_CHARACTERS, Session, Sessions

if TYPE_CHECKING:
    from pathlib import Path

    from index.progress import Notify
    from kb.diagnosis import Diagnosis
    from kb.service.input import UserInput
    from kb.settings import Settings
    from tui.case import Case


class CaseKeeper:
    """Is told what happens in a case, by its key, and writes one thing after the other."""

    def __init__(self, settings: Settings, notify: Notify) -> None:
        self._sessions = Sessions(settings, notify)
        self._notify = notify
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="cases")
        self._sessions_by_key: dict[int, Session] = {}

    def begin(self, key: int, user_input: UserInput, diagnosis: Diagnosis) -> None:
        """A case begins."""
        lines = sorted(diagnosis.evidence.lines, key=lambda line: (line.file or "", line.number))
        telling = [line.text for line in lines]

        def begin() -> Session:
            paths = () if user_input.spooled else user_input.paths
            return Session.of(_text_of(user_input), paths, telling)

        self._do(key, lambda _session: begin())

    def go_on(self, key: int, session: Session) -> None:
        """One that was kept goes on."""
        self._do(key, lambda _session: session)

    def said(self, key: int, text: str) -> None:
        """The user said something."""
        self._do(key, lambda session: session and session.with_message(text))

    def stands(self, case: Case) -> None:
        """How it stands, with what was ticked."""
        first = next(iter(case.matches), None)
        incident = first.incident.id if first else None
        verdict, done = case.conversation.verdict, case.done
        self._do(case.key, lambda session: session and session.standing(verdict, incident, done))

    def session(self, key: int) -> Future[Session | None]:
        """All that happened in a case so far."""
        return self._pool.submit(self._sessions_by_key.get, key)

    def kept(self, key: int) -> Future[Session | None]:
        """The same, if it can be gone on with later; None where it could not be kept."""

        def keep() -> Session | None:
            session = self._sessions_by_key.get(key)
            return session if session and self._sessions.keep(session) else None

        return self._pool.submit(keep)

    def forget(self, key: int) -> None:
        """The case is open no more; what is kept of it stays."""
        self._pool.submit(self._sessions_by_key.pop, key, None)

    def close(self) -> None:
        """Write what is not written so far."""
        self._pool.shutdown()

    def _do(self, key: int, change: Callable[[Session | None], Session | None]) -> None:
        def work() -> None:
            with contained("this case cannot be kept", self._notify):
                session = change(self._sessions_by_key.get(key))
                if session is not None:
                    self._sessions_by_key[key] = session
                    self._sessions.keep(session)

        self._pool.submit(work)


def _text_of(user_input: UserInput) -> str:
    """What was typed, pasted or piped in: of a large one, its beginning and its end."""
    return _ends_of(user_input.paths[0]) if user_input.spooled else user_input.text


def _ends_of(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(MAX_TEXT_CHARACTERS)
        size = file.seek(0, 2)
        file.seek(max(len(head), size - MAX_TEXT_CHARACTERS))
        return (head + file.read()).decode("utf-8", "replace")
