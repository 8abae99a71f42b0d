"""The last conversations, on this machine only, so that one can be gone on with.

What is kept is what the user gave: the text, the names of the logs, and the messages. Read again,
they make the same conversation, with the records as they are by then.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from index.progress import Notify
from kb.evidence.secrets import blank_secrets
from kb.kept import KeptList, Named
from kb.log.clean import decode_path, replace_surrogates
from kb.settings import Settings

MAX_SESSIONS_KEPT = 20
"""Number of conversations; older ones are forgotten."""
MAX_MESSAGES_KEPT = 200
"""Of a conversation: all of them are read again when it goes on, 50 ms each."""
MAX_CHARACTERS_KEPT = 262_144
"""Of the text and the messages of a conversation, so that the file stays quick to write."""

_NAMED = Named("sessions", "conversation", "conversation", "conversations")
_IDENTIFIER_BYTES = 8
"""Of a random name: two conversations at once never share it."""


class Session(msgspec.Struct, frozen=True):
    """A conversation, as the user's side of it."""

    id: str
    time: datetime
    """Of the last message, with its time zone."""
    text: str
    """What it began with, as typed; secrets are blank in it and in the messages."""
    paths: tuple[str, ...]
    """The logs that it began with."""
    messages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """A time of no clock is damage, and cannot be shown in every zone."""
        self.time.astimezone()

    @classmethod
    def of(cls, text: str, paths: Sequence[Path]) -> Self:
        """One that begins now."""
        absolute = tuple(decode_path(str(path.absolute())) for path in paths)
        return cls(_identifier(), datetime.now(UTC), _kept(text), absolute)

    def gone_on_with(self) -> Self:
        """The same under a name of its own: who goes on with it twice at once loses neither."""
        return msgspec.structs.replace(self, id=_identifier())

    def with_message(self, message: str) -> Self:
        """The same after one more message."""
        messages = (*self.messages, _kept(message))
        return msgspec.structs.replace(self, messages=messages, time=datetime.now(UTC))

    @property
    def is_empty(self) -> bool:
        """Nothing was said so far."""
        return not (self.text or self.paths or self.messages)

    @property
    def fits(self) -> bool:
        """Whether it is small enough to be kept."""
        characters = len(self.text) + sum(map(len, self.messages))
        return len(self.messages) <= MAX_MESSAGES_KEPT and characters <= MAX_CHARACTERS_KEPT


class Sessions:
    """The file of the last conversations. Errors are reported with `notify`, each once, and never
    raised.

    With `history = false` in the settings it is empty and stays so.
    """

    def __init__(self, settings: Settings, notify: Notify) -> None:
        self.is_kept = settings.history
        self.notices: list[str] = []
        """What was reported so far."""
        self._notify = notify
        self._list = KeptList(_NAMED, Session, self._report)

    def last(self) -> Session | None:
        """The newest one. A damaged file is set aside."""
        sessions = self._list.load() if self.is_kept else ()
        return sessions[0] if sessions else None

    def keep(self, session: Session) -> None:
        """Keep it as it is now, in front of the others; one that became too large stays as it
        was."""
        if not self.is_kept or session.is_empty:
            return
        if session.fits:
            self._list.add(session, lambda one: one.id, MAX_SESSIONS_KEPT)
        else:
            self._report("this conversation is too long to be kept: --resume knows it up to here")

    def _report(self, sentence: str) -> None:
        if sentence not in self.notices:
            self.notices.append(sentence)
            self._notify(sentence)


def _kept(text: str) -> str:
    """What UTF-8 can hold of it, without secrets."""
    return blank_secrets(replace_surrogates(text))


def _identifier() -> str:
    return os.urandom(_IDENTIFIER_BYTES).hex()
