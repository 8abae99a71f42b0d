"""Chinese texts with the field's terms in English, so that an English encoder can place them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from kb.expression import Expression
from kb.rules import read_tables

_CHINESE = Expression(r"[\u3400-\u9fff]")
_OTHER_CHINESE = Expression(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+")


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
    glossed = gloss(text, terms(), _pattern())
    return re.sub(r"[ ,.]*\s[ ,.]*", " ", _OTHER_CHINESE.sub(" ", glossed)).strip()


def gloss(text: str, words: Mapping[str, str], pattern: re.Pattern[str]) -> str:
    """Replace what the pattern of `longest_of(words)` finds by its English words."""
    return pattern.sub(lambda match: f" {words[match[0]]} ", text)


def longest_of(words: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds any of them, the longest where several begin."""
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


@cache
def terms() -> dict[str, str]:
    """The terms of the field and the English words for each."""
    sections = read_tables("glossary").values()
    return {term: words for section in sections for term, words in section.items()}


@cache
def _pattern() -> re.Pattern[str]:
    return longest_of(terms())
