"""Chinese texts with the field's terms in English, so that an English encoder can place them."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_OTHER_CHINESE = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+")


def has_chinese(text: str) -> bool:
    """Whether the text has at least one Chinese character."""
    return _CHINESE.search(text) is not None


def translate(text: str) -> str:
    """Replace known terms by English words and drop the rest of the Chinese.

    A gloss, not a translation: its order is that of the Chinese. Text without Chinese is returned
    as it is.
    """
    if not has_chinese(text):
        return text
    terms, pattern = _terms()
    glossed = pattern.sub(lambda match: f" {terms[match[0]]} ", text)
    return re.sub(r"[ ,.]*\s[ ,.]*", " ", _OTHER_CHINESE.sub(" ", glossed)).strip()


@cache
def _terms() -> tuple[dict[str, str], re.Pattern[str]]:
    sections = tomllib.loads(
        files("kb.rules").joinpath("glossary.toml").read_text(encoding="utf-8")
    )
    terms = {term: words for section in sections.values() for term, words in section.items()}
    longest_first = sorted(terms, key=len, reverse=True)
    return terms, re.compile("|".join(map(re.escape, longest_first)))
