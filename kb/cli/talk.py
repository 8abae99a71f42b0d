"""How messages come in and replies go out: for people, and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from msgspec import UNSET

from kb.cli.keyboard import typed
from kb.cli.running import Running, asks_to_run
from kb.cli.terminal import put, put_json, show
from kb.conversation import Conversation
from kb.diagnosis import Diagnosis
from kb.evidence.secrets import blank_secrets
from kb.log.clean import strip_controls
from kb.service.input import bounded_lines
from kb.service.service import Service, result_of

if TYPE_CHECKING:
    from kb.service.voice import Speaker

Speak = Callable[[Conversation, Conversation | None], None]
"""Says something about what was replied since the second one; None at the opening."""

MAX_MESSAGE_BYTES = 1_000_000
"""Of a line of a pipe; a longer one is a log, which `-f` reads in bounded memory."""

_PROMPT = "> "
_LEAVE = frozenset({"quit", "exit", "bye", "q", "退出", "再见"})


class Face(Protocol):
    """Who talks."""

    def opened(self, diagnosis: Diagnosis) -> Diagnosis:
        """The diagnosis as the conversation may know it."""

    def messages(self) -> Iterator[str | None]:
        """What is said, until the end; None for what is too long."""

    def show(self, conversation: Conversation, before: Conversation | None) -> None:
        """Tell what was replied since `before`; None at the opening."""


class ForPeople:
    """What is typed or pasted at a terminal, or each line of a pipe; until `quit`."""

    def __init__(self, running: Running, speak: Speak | None = None) -> None:
        """`speak` says more about a reply, after it was shown."""
        self._running = running
        self._speak = speak
        self._shown: Conversation | None = None

    def opened(self, diagnosis: Diagnosis) -> Diagnosis:
        """All of it: people see their own text."""
        return diagnosis

    def messages(self) -> Iterator[str | None]:
        """What is said, without empty messages."""
        for line in typed(_PROMPT) if sys.stdin.isatty() else _piped():
            said = line and line.strip()
            if said and said.lower() in _LEAVE:
                return
            if said and self._shown and sys.stdin.isatty() and asks_to_run(said):
                said = self._running.run(self._shown)
            if said != "":
                yield said

    def show(self, conversation: Conversation, before: Conversation | None) -> None:
        """What is new, for a terminal."""
        from kb.views.chat import render

        show(render(conversation, before), paged=False)
        self._shown = conversation
        hint = self._running.hint(conversation) if sys.stdin.isatty() else ""
        if hint:
            put(hint)
        if self._speak:
            self._speak(conversation, before)


class ForPrograms:
    """A line a message and a line a reply, in JSON; secrets are masked before anything is read."""

    def __init__(self, service: Service, speaker: Speaker | None = None) -> None:
        self._service = service
        self._speaker = speaker

    def opened(self, diagnosis: Diagnosis) -> Diagnosis:
        """Without secrets, so that no reply quotes one."""
        from kb.service.wire import with_whole_keys_masked

        return with_whole_keys_masked(diagnosis)

    def messages(self) -> Iterator[str | None]:
        """Every line, also an empty one: each has its reply."""
        for line in bounded_lines(sys.stdin.buffer, MAX_MESSAGE_BYTES):
            yield line and blank_secrets(_decoded(line))

    def show(self, conversation: Conversation, before: Conversation | None) -> None:
        """One line, at once."""
        from kb.service.reply import to_line, to_reply

        step = result_of(self._service.next_check(conversation))
        voice = self._speaker.whole(conversation, before) if self._speaker else UNSET
        put_json(to_line(to_reply(conversation, before, step, voice)))


def _decoded(line: str) -> str:
    """The string that a line of JSON is; anything else is text as it stands."""
    if line.startswith('"'):
        with suppress(ValueError):
            return str(json.loads(line))
    return line


def _piped() -> Iterator[str | None]:
    """Each line, echoed, as no terminal does it."""
    for line in bounded_lines(sys.stdin.buffer, MAX_MESSAGE_BYTES):
        said = line and strip_controls(line).strip()
        put(_PROMPT + (said or ""))
        yield said
