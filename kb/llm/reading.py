"""Reads the sentences out of an answer while it comes: `{"sentences": [{"text", "rests_on"}]}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

_BEGIN = re.compile(r'"sentences"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
MAX_ANSWER_CHARACTERS = 16_000
"""Of an answer; five sentences have 2,000, and a model that thinks aloud some more."""


class Proposed(msgspec.Struct, frozen=True):
    """A sentence as the model wrote it."""

    text: str
    rests_on: tuple[str, ...] = ()


class TooLongError(Exception):
    """An answer goes on and on."""


class AnswerReader:
    """Takes an answer in pieces of any size."""

    def __init__(self) -> None:
        self._text = ""
        self._place: int | None = None
        self._decoder = json.JSONDecoder()

    @property
    def begun(self) -> bool:
        """Whether it has the form of an answer so far."""
        return self._place is not None

    def feed(self, piece: str) -> Iterator[Proposed | None]:
        """The sentences that are complete now; None for one that has another form.

        Raises:
            TooLongError: the answer goes on and on.
        """
        self._text += piece
        if len(self._text) > MAX_ANSWER_CHARACTERS:
            raise TooLongError
        if self._place is None:
            begin = _BEGIN.search(self._text)
            self._place = begin.end() if begin else None
        while self._place is not None:
            found = self._next(self._place)
            if found is None:
                return
            value, self._place = found
            try:
                yield msgspec.convert(value, Proposed)
            except msgspec.ValidationError:
                yield None

    def _next(self, place: int) -> tuple[object, int] | None:
        between = _BETWEEN.match(self._text, place)
        start = between.end() if between else place
        if not self._text.startswith("{", start):
            return None
        try:
            return self._decoder.raw_decode(self._text, start)
        except (ValueError, RecursionError):
            return None
