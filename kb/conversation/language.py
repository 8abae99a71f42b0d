"""The language of the user, and the sentences of the tool in it. Records stay English."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files

from kb.evidence.glossary import has_chinese


class Language(StrEnum):
    """A language that the tool speaks."""

    ENGLISH = "en"
    CHINESE = "zh"


_WORDS = re.compile(r"[A-Za-z']{2,}|\bI\b")
_FUNCTION_WORDS = re.compile(
    r"\b(?:the|it|is|are|was|we|i|you|what|how|why|which|do|does|did|not|that|this|to|should|can"
    r"|would|show|me|my|please|thanks?)\b",
    re.IGNORECASE,
)
_JOINING_WORDS = re.compile(
    r"\b(?:the|it|we|i|you|they|that|this|and|but|with|now|after|then|still|both|all|my|our|on)\b",
    re.IGNORECASE,
)
_MIN_ENGLISH_WORDS = 3
"""From so many words without Chinese on, one of them of grammar, who wrote Chinese before goes over
to English; fewer are a command, a version or "ok"."""


def language_of(text: str, before: Language = Language.ENGLISH) -> Language:
    """The language to answer a message in; `before` is that of the conversation so far. Pasted
    lines tell nothing about it."""
    if has_chinese(text):
        return Language.CHINESE
    return Language.ENGLISH if "\n" not in text and _is_english(text) else before


def is_talk(text: str) -> bool:
    """Whether a line has the words that join words: a program's table has none."""
    return has_chinese(text) or bool(_has_words(text) and _JOINING_WORDS.search(text))


def _is_english(text: str) -> bool:
    return _has_words(text) and bool(_FUNCTION_WORDS.search(text))


def _has_words(text: str) -> bool:
    return len(_WORDS.findall(text)) >= _MIN_ENGLISH_WORDS


def say(key: str, language: Language, **values: object) -> str:
    """A sentence of `sentences.toml`, with the values in it."""
    return _sentences()[key][language].format_map(values)


def joined(names: Iterable[str], language: Language) -> str:
    """Names in a row."""
    return ("、" if language is Language.CHINESE else ", ").join(names)


def in_language(text: str, language: Language) -> str:
    """A fixed question or answer in the language; what a record asks stays as it is."""
    return _of_questions().get(text, text) if language is Language.CHINESE else text


@cache
def _of_questions() -> Mapping[str, str]:
    pairs = (texts for key, texts in _sentences().items() if key.startswith("asks-"))
    return {texts["en"]: texts["zh"] for texts in pairs}


@cache
def _sentences() -> Mapping[str, Mapping[str, str]]:
    source = files("kb.conversation").joinpath("sentences.toml").read_bytes()
    return tomllib.loads(source.decode())
