"""The table of questions: how much is sane, why one rank holds up all others, whether a setting
survives a reboot."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec


class KnownQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, in several wordings of both languages, and its answer."""

    asks: tuple[str, ...]
    about: tuple[str, ...]
    """Words of its topic, in lower case."""
    en: str
    zh: str
    source: str
    """The address of a page with the main fact."""

    @property
    def id(self) -> str:
        """Its first wording: no two rows have the same."""
        return self.asks[0]


@cache
def known_questions() -> tuple[KnownQuestion, ...]:
    """All of them."""
    texts = (file.read_text("utf-8") for file in table_files())
    rows = [row for text in texts for row in tomllib.loads(text)["row"]]
    return msgspec.convert(rows, tuple[KnownQuestion, ...])


def table_files() -> list[Path]:
    """The files that hold them, in order."""
    return sorted(Path(__file__).parent.glob("*.toml"))
