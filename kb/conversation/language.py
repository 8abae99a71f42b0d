"""The language of the user: the sentences of the tool in it, and what is there of the records."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from itertools import chain
from pathlib import Path

import msgspec

from kb.evidence.glossary import has_chinese
from kb.evidence.nature import printed_part


class Language(StrEnum):
    """A language that the tool speaks."""

    ENGLISH = "en"
    CHINESE = "zh"


_Texts = dict[str, dict[str, tuple[str, str]]]
"""By record and name of the text: the digest of the English one, and the Chinese one."""

_WORDS = re.compile(r"[A-Za-z']{2,}|\bI\b")
_FUNCTION_WORDS = re.compile(
    # Not a flag: `docker run -it` is in no language.
    r"(?<![-/.=])\b(?:the|it|is|are|was|we|i|you|what|how|why|which|do|does|did|not|that|this|to|should|can"
    r"|would|show|me|my|please|thanks?)\b",
    re.IGNORECASE,
)
_JOINING_WORDS = re.compile(
    r"\b(?:the|it|we|i|you|they|that|this|and|but|with|now|after|then|still|both|all|my|our|on)\b",
    re.IGNORECASE,
)
_DIGEST_BYTES = 5
"""Of a digest of a text: enough that no two of some thousand texts share one."""
_MIN_ENGLISH_WORDS = 3
"""From so many words without Chinese on, one of them of grammar, who wrote Chinese before goes over
to English; fewer are a command, a version or "ok"."""


def language_of(text: str, before: Language = Language.ENGLISH) -> Language:
    """The language to answer a message in; `before` is that of the conversation so far. Pasted
    lines tell nothing about it."""
    if has_chinese(text):
        return Language.CHINESE
    is_typed = "\n" not in text and not printed_part(text)
    return Language.ENGLISH if is_typed and _is_english(text) else before


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
    """A fixed question, or a text of a record, in the language; English where it is not there."""
    return translation(text, language) or text


def translation(text: str, language: Language) -> str | None:
    """As `in_language`; None where nothing is to be translated, or is not yet."""
    if language is not Language.CHINESE:
        return None
    return _of_questions().get(text) or _of_records().get(digest(text))


def digest(text: str) -> str:
    """What a text of a record is known by. However its lines are broken, it is the same."""
    words = " ".join(text.split()).encode()
    return hashlib.blake2b(words, digest_size=_DIGEST_BYTES).hexdigest()


@cache
def _of_questions() -> Mapping[str, str]:
    pairs = (texts for key, texts in _sentences().items() if key.startswith("asks-"))
    return {texts["en"]: texts["zh"] for texts in pairs}


@cache
def _of_records() -> Mapping[str, str]:
    """The Chinese texts by the digest of the English ones: one that was changed since is not found,
    nor is one that a team wrote itself."""
    files = Path(__file__).with_name("chinese").glob("*.json")
    kinds = (msgspec.json.decode(file.read_bytes(), type=_Texts) for file in files)
    texts = (record.values() for kind in kinds for record in kind.values())
    return dict(chain.from_iterable(texts))


@cache
def _sentences() -> Mapping[str, Mapping[str, str]]:
    source = Path(__file__).with_name("sentences.toml").read_bytes()
    return tomllib.loads(source.decode())
