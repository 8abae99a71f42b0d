"""What observations in words mean, whatever the case is: rows of `clues.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from kb.conversation.language import Language
from kb.rules import any_of

_MAX_CHARACTERS = 1_000
"""Of a message; a longer one is the output of a program."""

_FLAGS = re.IGNORECASE | re.MULTILINE
"""An observation may stand on any line of a message."""


class Clue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of observation, and what an expert concludes from it."""

    name: str
    pattern: tuple[str, ...]
    en: str
    zh: str
    unless: tuple[str, ...] = ()
    """In the same text it is something else."""
    points_to: tuple[str, ...] = ()
    """Causes of playbooks, as `playbook:cause`, that it speaks for."""
    whole: bool = False
    """The message is one observation, whatever its lines look like."""
    remedies: bool = False
    """Other remedies than the one that is spoken of are to be named."""
    examples: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Texts that only look like it."""

    def says(self, language: Language) -> str:
        """What it means."""
        return self.zh if language is Language.CHINESE else self.en


def clue_in(text: str) -> Clue | None:
    """The clue of a text; None where it has none. The first row counts."""
    if len(text) > _MAX_CHARACTERS:
        return None
    for clue, said, unless in _compiled():
        if said.search(text) and not (unless and unless.search(text)):
            return clue
    return None


@cache
def clues() -> tuple[Clue, ...]:
    """All rows, in the order in which they are tried."""
    source = Path(__file__).with_name("clues.toml").read_bytes()
    return msgspec.convert(tomllib.loads(source.decode())["clue"], tuple[Clue, ...])


@cache
def _compiled() -> list[tuple[Clue, re.Pattern[str], re.Pattern[str] | None]]:
    return [
        (clue, any_of(clue.pattern, _FLAGS), any_of(clue.unless, _FLAGS) if clue.unless else None)
        for clue in clues()
    ]
