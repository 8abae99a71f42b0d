"""Finds again what logs and messages say inside of what the engine says: it quotes them, and their
words are nobody's finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int]
"""Where a part of a text begins and ends."""

_TOKEN = re.compile(r"[\u3400-\u9fff]|[A-Za-z0-9_]+")
_WORDS = 3
"""In a row that tell a quote; two may be the same by chance."""
_CHARACTERS = 6
"""The same for Chinese ones."""

Gram = tuple[str, ...]


class Foreign:
    """The words of some texts, in their order."""

    def __init__(self, texts: Iterable[str], ours: Iterable[str] = ()) -> None:
        """`ours` are texts whose words are no quote, though others use them as well."""
        self._known = _grams_of(texts) - _grams_of(ours)

    def spans(self, text: str) -> Iterator[Span]:
        """The parts of a text that repeat them; they may overlap."""
        tokens = list(_tokens(text))
        for start, gram in _grams([token for token, _ in tokens]):
            if gram in self._known:
                yield tokens[start][1][0], tokens[start + len(gram) - 1][1][1]


def merged(spans: Iterable[Span], text: str) -> list[Span]:
    """In their order; those that overlap, or have only signs between them, as one."""
    parts: list[Span] = []
    for start, end in sorted(spans):
        if parts and not re.search(r"\w", text[parts[-1][1] : start]):
            parts[-1] = parts[-1][0], max(end, parts[-1][1])
        else:
            parts.append((start, end))
    return parts


def _grams_of(texts: Iterable[str]) -> set[Gram]:
    split = ([token for token, _ in _tokens(text)] for text in texts)
    return {gram for words in split for _, gram in _grams(words)}


def _tokens(text: str) -> Iterator[tuple[str, Span]]:
    for match in _TOKEN.finditer(text):
        yield match[0].casefold(), match.span()


def _grams(words: Sequence[str]) -> Iterator[tuple[int, Gram]]:
    for start in range(len(words)):
        few, many = tuple(words[start : start + _WORDS]), tuple(words[start : start + _CHARACTERS])
        if len(few) == _WORDS and any(map(str.isascii, few)):
            yield start, few
        if len(many) == _CHARACTERS:
            yield start, many
