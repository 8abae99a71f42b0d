"""How alike a line is to the names that people give a symptom."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from index.lexical import rarity
from index.tokens import tokenize
from kb.evidence.glossary import translate

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?;,])\s+|(?<=[。！？；，])\s*")
"""Commas too: a clause of a long sentence is what is as short as a name."""


class Likeness(msgspec.Struct, frozen=True):
    """How alike some lines are to the names of one playbook; the largest value of each."""

    shared: float = 0.0
    """Share of words, weighted by rarity, that a line or sentence and a name have in common
    (Dice's coefficient). 0 to 1."""
    contained: float = 0.0
    """Weight of the words of a name that are in a sentence, less that of those that are not
    (1 = one rare word). At least 0; a long sentence may hold a whole name and much else."""


class SymptomNames:
    """The names of all playbooks as sets of words, and how rare each word is among playbooks.

    Beside the index, because a question of three words is compared with whole names: that a
    playbook has its words somewhere says little.
    """

    def __init__(self, names: Mapping[str, Sequence[frozenset[str]]]) -> None:
        """`names`: the words of each name, by the id of its playbook."""
        self._playbooks = len(names)
        self._holders: dict[str, list[_Name]] = defaultdict(list)
        for identifier, own in names.items():
            for words in own:
                name = _Name(identifier, words)
                for word in words:
                    self._holders[word].append(name)
        # Made when they are first asked for: a log has few of the words.
        self._rarities: dict[str, float] = {}
        self._weights: dict[_Name, float] = {}

    def likeness(self, lines: Iterable[str]) -> dict[str, Likeness]:
        """By id of the playbook; those that have no word of the lines are left out."""
        shared: dict[str, float] = {}
        contained: dict[str, float] = {}
        for words in map(name_words, dict.fromkeys(_with_sentences(lines))):
            whole = self._weight(words)
            for name, weight in self._shared(words).items():
                playbook = name.playbook
                of_name = self._weight_of(name)
                alike = 2 * weight / (whole + of_name)
                if alike > shared.get(playbook, 0.0):
                    shared[playbook] = alike
                beyond = 2 * weight - of_name
                if beyond > contained.get(playbook, 0.0):
                    contained[playbook] = beyond
        return {name: Likeness(value, contained.get(name, 0.0)) for name, value in shared.items()}

    def _shared(self, words: Iterable[str]) -> dict[_Name, float]:
        """The weight of the words that each name has."""
        shared: dict[_Name, float] = {}
        for word in words:
            for name in self._holders.get(word, ()):
                shared[name] = shared.get(name, 0.0) + self._rarity(word)
        return shared

    def _weight_of(self, name: _Name) -> float:
        if name not in self._weights:
            self._weights[name] = self._weight(name.words)
        return self._weights[name]

    def _weight(self, words: Iterable[str]) -> float:
        return sum(map(self._rarity, words))

    def _rarity(self, word: str) -> float:
        if word not in self._rarities:
            holders = {name.playbook for name in self._holders.get(word, ())}
            self._rarities[word] = rarity(word, len(holders), self._playbooks)
        return self._rarities[word]


class _Name(msgspec.Struct, frozen=True, eq=False):
    """One name; compared as an object, since two playbooks may share one."""

    playbook: str
    words: frozenset[str]


def _with_sentences(lines: Iterable[str]) -> Iterator[str]:
    """Each line, and its sentences where it has several."""
    for line in lines:
        yield line
        sentences = [part for part in _BETWEEN_SENTENCES.split(line) if part]
        if len(sentences) > 1:
            yield from sentences


def name_words(text: str) -> frozenset[str]:
    """The words by which a name and a line are compared, those of a gloss too."""
    return frozenset([*tokenize(text), *tokenize(translate(text))])
