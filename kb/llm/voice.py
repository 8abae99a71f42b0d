"""The voice: what a model says of a turn, as far as it is grounded. It never raises, and never
changes what the engine says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty
from typing import Any

from index.progress import Notify
from kb.llm.given import Given
from kb.llm.grounding import Dropped, Sentence, ground, is_everywhere
from kb.llm.phrase import SLOT, sentences_of
from kb.llm.reading import AnswerReader, Proposed, TooLongError
from kb.llm.request import MAX_SENTENCES, to_request
from kb.llm.server import UNREADABLE, Answer, Ended, Event, Server
from kb.settings import LlmSettings

_LOOK_SECONDS = 0.05
"""Between two looks at whether anybody still listens: shorter than a person notices."""
_MAX_FAILURES = 2
"""In a row, before the voice stays silent: one may be chance, and each costs a wait."""

Nearest = Callable[[str], Sequence[tuple[str, str]]]
"""The records that are nearest to a text: id, and what it says."""


class Voice:
    """Speaks in one conversation."""

    def __init__(self, settings: LlmSettings, nearest: Nearest, notify: Notify) -> None:
        """`notify` is told once why it is silent.

        Raises:
            KbError: it cannot speak, with one sentence for the user.
        """
        self.model = settings.model
        self._wait_seconds = settings.wait_seconds
        self._server = Server(settings)
        self._nearest = nearest
        self._notify = notify
        self._failures = 0
        self._told = False

    def words(self, given: Given, wanted: Callable[[], bool]) -> Words:
        """What it says of a turn; nothing where it is silent. Ends when nobody wants more."""
        if self._failures >= _MAX_FAILURES or not given.passages:
            return Words(iter(()))
        proposals = self._proposals(to_request(given, self.model), wanted)
        return Words(self._judged(proposals, given))

    def _judged(self, proposals: _Proposals, given: Given) -> Iterator[Sentence | None]:
        """Each sentence, or None for one that is dropped."""
        shown = 0
        try:
            for proposed in proposals:
                for text in sentences_of(proposed.text) if proposed else ("",):
                    sentence = self._checked(text, proposed, given)
                    yield sentence
                    if sentence is None:
                        continue
                    proposals.expect()
                    self._failures = 0
                    shown += 1
                    if shown == MAX_SENTENCES:
                        return
        except _SilentError as silent:
            if not shown:
                self._failed(str(silent))
        else:
            self._failures = 0
        finally:
            proposals.stop()

    def _proposals(self, request: dict[str, Any], wanted: Callable[[], bool]) -> _Proposals:
        return _Proposals(self._server.ask(request), self._wait_seconds, wanted)

    def _checked(self, text: str, proposed: Proposed | None, given: Given) -> Sentence | None:
        found = ground(text, proposed.rests_on if proposed else (), given)
        if isinstance(found, Dropped):
            return None
        own = [found.record] if found.record else given.standings
        near = self._nearest(SLOT.sub(" ", text))
        others = [said for name, said in near if name not in own]
        return None if is_everywhere(found, others) else found

    def _failed(self, why: str) -> None:
        self._failures += 1
        if not self._told:
            self._told = True
            self._notify(f"The voice says nothing: {why}. The answers are kb's own")


class Words:
    """The grounded sentences of one reply, while they come."""

    def __init__(self, judged: Iterator[Sentence | None]) -> None:
        self._judged = judged
        self.dropped = 0
        """Sentences so far that were not grounded."""

    def __iter__(self) -> Iterator[Sentence]:
        for sentence in self._judged:
            if sentence is None:
                self.dropped += 1
            else:
                yield sentence


class _SilentError(Exception):
    """No sentence comes any more, and why."""


class _Proposals:
    """What the model writes, as it comes; None for what has another form."""

    def __init__(self, answer: Answer, wait_seconds: float, wanted: Callable[[], bool]) -> None:
        self._answer = answer
        self._wait_seconds = wait_seconds
        self._wanted = wanted
        self.expect()

    def expect(self) -> None:
        """Wait for one more sentence that is grounded."""
        self._deadline = time.monotonic() + self._wait_seconds

    def stop(self) -> None:
        """Want no more."""
        self._answer.stop()

    def __iter__(self) -> Iterator[Proposed | None]:
        """Read on.

        Raises:
            _SilentError: nothing more comes.
        """
        reader = AnswerReader()
        while self._wanted():
            event = self._event()
            if isinstance(event, Ended):
                if event.why or not reader.begun:
                    raise _SilentError(event.why or UNREADABLE)
                return
            try:
                yield from reader.feed(event)
            except TooLongError as error:
                raise _SilentError(UNREADABLE) from error

    def _event(self) -> Event:
        """The next piece; empty where nothing came for a moment."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _SilentError(f"no sentence came within `wait_seconds`, {self._wait_seconds:g} s")
        with suppress(Empty):
            return self._answer.events.get(timeout=min(left, _LOOK_SECONDS))
        return ""
