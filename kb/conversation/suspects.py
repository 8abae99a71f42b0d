"""Parts of a cluster that people suspect, and what is about them: rows of `suspects.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from kb.conversation.language import Language


class Suspect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part that may be at fault."""

    en: str
    zh: str
    named: str
    """Pattern: how a message names it."""
    held: str
    """Pattern: what an English text about it has."""
    check: str
    """What to look at where nothing is known."""
    owner: str
    """Whose business it is: the end of the key of a sentence."""

    def name(self, language: Language) -> str:
        """As it is called."""
        return self.zh if language is Language.CHINESE else self.en

    def is_in(self, text: str) -> bool:
        """Whether an English text is about it."""
        return re.search(self.held, text, re.IGNORECASE) is not None


def suspect_named(text: str) -> Suspect | None:
    """The first part that a message names; None where it names none."""
    named = (one for one in _suspects() if re.search(one.named, text, re.IGNORECASE))
    return next(named, None)


def suspects_in(text: str) -> list[Suspect]:
    """The parts that an English text is about, the one that it names most often first."""
    counts = [(len(re.findall(one.held, text, re.IGNORECASE)), one) for one in _suspects()]
    counts.sort(key=lambda pair: -pair[0])
    return [one for count, one in counts if count]


@cache
def _suspects() -> tuple[Suspect, ...]:
    source = Path(__file__).with_name("suspects.toml").read_bytes()
    return msgspec.convert(tomllib.loads(source.decode())["suspect"], tuple[Suspect, ...])
