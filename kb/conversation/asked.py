"""Requests that are told by a turn of phrase alone, whatever the classifier makes of the rest: rows
of `asked.toml`, in English and Chinese; questions about a command of `known_commands.toml`, and
those of `questions`."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import cache
from pathlib import Path

import msgspec

from kb.conversation.known_commands import command_asked
from kb.conversation.known_options import asks_of_it, option_asked
from kb.conversation.known_questions import may_be_known
from kb.rules import any_of


class Asked(StrEnum):
    """What is asked for."""

    EVERYWHERE = "everywhere"
    """The command for all hosts at once."""
    SHOWN = "shown"
    """What the last thing that was shown does."""
    BITS = "bits"
    """What the bits of a number stand for."""
    GUESS = "guess"
    """Whether it is the part that is named: the switch, the driver, our code."""
    PLACE = "place"
    """Whether it is the rank, GPU or host that is named."""
    PROVE = "prove"
    """How to be sure of the cause before anything is changed."""
    ALL_WAIT = "all-wait"
    """Whether one rank or host can hold up the others."""
    RECURS = "recurs"
    """The same place fails time and again."""
    REPEAT = "repeat"
    """The last reply again, perhaps in the other language."""
    BRIEF = "brief"
    """What leads and what to do, in two lines."""
    WHOM = "whom"
    """Whose business it is."""
    TEAM = "team"
    """What to tell those whose business it is."""
    LOGS = "logs"
    """Where the logs are."""
    DRAIN = "drain"
    """How a host is taken out of use."""
    NORMAL = "normal"
    """Whether what is seen is as it should be."""
    MATTERS = "matters"
    """Whether a line is noise."""
    WAIT = "wait"
    """Whether it passes by itself."""
    SO_FAR = "so-far"
    """It works up to now; nobody can tell yet."""
    COMMAND = "command"
    """Whether a command of one's own may be run, what it does or what it costs."""
    KNOWN = "known"
    """A question of `questions`, which has its answer beside it."""
    OPTION = "option"
    """What a setting does, and whether, where and when it helps."""
    ALTERNATIVES = "alternatives"
    """What else it can be."""
    LEAD = "lead"
    """A report of the user's own backlog, by its number."""
    RELAPSE = "relapse"
    """What was solved is back."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ways to ask for something."""

    asks: Asked
    pattern: tuple[str, ...]
    unless: tuple[str, ...] = ()
    """In the same text it is something else."""
    examples: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Texts that only look like it."""


_MAX_CHARACTERS = 300
"""Of a request; a longer text tells something."""


def asked_in(text: str) -> Asked | None:
    """What a text asks for by a turn of phrase or of a command that it names, or else as a question
    that the table has; None where it has none. The first row counts."""
    if len(text) > _MAX_CHARACTERS or "\n" in text:
        return None
    if command_asked(text):
        return Asked.COMMAND
    for asked, said, unless in _compiled():
        if said.search(text) and not (unless and unless.search(text)):
            return asked
    if may_be_known(text):
        return Asked.KNOWN
    return Asked.OPTION if option_asked(text) or asks_of_it(text) else None


@cache
def asked_rows() -> tuple[Row, ...]:
    """All rows, in the order in which they are tried."""
    source = Path(__file__).with_name("asked.toml").read_bytes()
    return msgspec.convert(tomllib.loads(source.decode())["row"], tuple[Row, ...])


@cache
def _compiled() -> list[tuple[Asked, re.Pattern[str], re.Pattern[str] | None]]:
    return [
        (
            row.asks,
            any_of(row.pattern, re.IGNORECASE),
            any_of(row.unless, re.IGNORECASE) if row.unless else None,
        )
        for row in asked_rows()
    ]
