"""Turns of phrase with one meaning: rows of `phrases.toml`, in English and Chinese."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kb.rules import any_of


class Harm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that people ask leave for."""

    says: str
    """The end of the key of the sentence about it."""
    pattern: str


class Phrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to say something, and the act that it is."""

    act: str
    pattern: tuple[str, ...]
    unless: tuple[str, ...] = ()
    """In the same text it is something else."""
    examples: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Texts that only look like it."""


def act_by_phrase(text: str) -> str | None:
    """The act of a text with a turn of phrase in it; None where it has none."""
    for act, said, unless in _phrases():
        if said.search(text) and not (unless and unless.search(text)):
            return act
    return None


def harm_of(text: str) -> str:
    """What a text asks leave for, as the keys of the sentences end; empty without."""
    return next((key for key, words in _harms() if words.search(text)), "")


@cache
def _harms() -> tuple[tuple[str, re.Pattern[str]], ...]:
    rows = msgspec.convert(_table()["harm"], tuple[Harm, ...])
    return tuple((row.says, any_of([row.pattern], re.IGNORECASE)) for row in rows)


@cache
def phrases() -> tuple[Phrase, ...]:
    """All rows, in the order in which they are tried."""
    return msgspec.convert(_table()["phrase"], tuple[Phrase, ...])


@cache
def _table() -> Mapping[str, Any]:
    source = Path(__file__).with_name("phrases.toml").read_bytes()
    return tomllib.loads(source.decode())


@cache
def _phrases() -> list[tuple[str, re.Pattern[str], re.Pattern[str] | None]]:
    return [
        (
            row.act,
            any_of(row.pattern, re.IGNORECASE),
            any_of(row.unless, re.IGNORECASE) if row.unless else None,
        )
        for row in phrases()
    ]
