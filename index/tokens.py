"""Words of logs, prose and Chinese, as the lexical channel sees them.

Identifiers survive whole and in parts (`ProcessGroupNCCL`, `btl_tcp_if_include`,
`_ALLGATHER_BASE`), English inflections are folded, Chinese is cut into pairs of characters
(as Lucene's CJKAnalyzer does), and numbers are dropped, except short ones: codes are short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"[A-Za-z0-9_]+(?:[.\-:/+][A-Za-z0-9_]+)*|[\u3400-\u9fff]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SUFFIXES = ("ings", "ing", "edly", "ed", "es", "s", "e")
_MAX_TOKEN_CHARACTERS = 60
"""A longer word is no word but encoded data, which no other text repeats."""
_MAX_CODE_DIGITS = 4
"""A longer number is a count, an address or a time, which differs from run to run."""

_MAX_WORDS_KEPT = 20_000
"""Words whose tokens are remembered, some megabytes: texts repeat most of theirs."""

STOPWORDS = frozenset(
    "a about above after again all also am an and any are as at be because been before but by can"
    " could did do does doing done for from get gets got had has have he her here him his how i if"
    " in into is it its just let like may me more most my no nor not now of off on once only or"
    " other our out over own same she should so some still such than that the their them then"
    " there these they thi this those through to too under until up use very was we were what"
    " when where which while who whom why will with would you your"
    " 一个 我们 什么 怎么 这个 就是 没有 可以 但是 还是 时候 问题".split()
)


def tokenize(text: str) -> Iterator[str]:
    """Yield the tokens of a text in order, with repetitions."""
    for match in _WORD.finditer(text):
        word = match[0]
        if is_pair(word):
            yield from _pairs(word)
        elif len(word) <= _MAX_TOKEN_CHARACTERS:
            yield from _latin(word)


def is_pair(token: str) -> bool:
    """Whether a token is of Chinese characters."""
    return "\u3400" <= token[0] <= "\u9fff"


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        pair = run[start : start + 2]
        if pair not in STOPWORDS:
            yield pair


@lru_cache(maxsize=_MAX_WORDS_KEPT)
def _latin(word: str) -> tuple[str, ...]:
    parts = [part for part in _PART.findall(word) if not part.isdigit() or _is_code(part)]
    whole = word.strip("_").lower()
    has_whole = len(parts) > 1 and any(character.isalpha() for character in whole)
    stems = [fold(part.lower()) for part in parts]
    told = [stem for stem in stems if stem not in STOPWORDS and (len(stem) > 1 or stem.isdigit())]
    return (whole, *told) if has_whole else tuple(told)


def _is_code(number: str) -> bool:
    return len(number) <= _MAX_CODE_DIGITS


def fold(word: str) -> str:
    """Cut the ending of an English word: hang, hangs and hanging become one."""
    if word.endswith("ss"):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            return word.removesuffix(suffix)
    return word
