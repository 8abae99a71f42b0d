"""How alike a line is to the names that people give a symptom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from index.lexical import rarity
from index.tokens import tokenize
from kb.evidence.glossary import translate

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        self._ids = list(names)
        named = [(place, words) for place, own in enumerate(names.values()) for words in own]
        self._playbooks = np.array([place for place, _words in named], np.int64)
        """By name: the place of its playbook in `_ids`."""
        self._numbers: dict[str, int] = {}
        number = self._numbers.setdefault
        words = np.array(
            [number(word, len(self._numbers)) for _place, words in named for word in words],
            np.int64,
        )
        holders = np.repeat(np.arange(len(named)), [len(words) for _place, words in named])
        pairs = set((words * len(names) + self._playbooks[holders]).tolist())
        held = np.array(list(pairs), np.int64) // (len(names) or 1)
        counts = np.bincount(held, minlength=len(self._numbers)).tolist()
        self._rarities = np.array(
            [rarity(word, counts[n], len(names)) for word, n in self._numbers.items()], np.float64
        )
        self._weights = np.bincount(holders, self._rarities[words], len(named))
        """By name: of all its words."""
        order = np.argsort(words, kind="stable")
        self._holders = holders[order]
        """The names that have the first word, then those that have the second, and so on."""
        self._bounds = [0, *np.cumsum(np.bincount(words, minlength=len(counts))).tolist()]
        """Where those of each word begin, and where they end."""

    def likeness(self, lines: Iterable[str]) -> dict[str, Likeness]:
        """By id of the playbook; those that have no word of the lines are left out."""
        shared = np.zeros(len(self._ids))
        contained = np.zeros(len(self._ids))
        for words in map(name_words, dict.fromkeys(_with_sentences(lines))):
            weights = self._shared(words)
            names = np.flatnonzero(weights)
            weight, of_name = weights[names], self._weights[names]
            playbooks = self._playbooks[names]
            np.maximum.at(shared, playbooks, 2 * weight / (self._weight(words) + of_name))
            np.maximum.at(contained, playbooks, 2 * weight - of_name)
        return {
            self._ids[place]: Likeness(float(shared[place]), float(contained[place]))
            for place in np.flatnonzero(shared)
        }

    def _shared(self, words: Iterable[str]) -> NDArray[np.float64]:
        """By name: the weight of those of the words that it has."""
        numbers = [self._numbers[word] for word in words if word in self._numbers]
        if not numbers:
            return np.zeros(len(self._weights))
        bounds = self._bounds
        holders = [self._holders[bounds[number] : bounds[number + 1]] for number in numbers]
        weights = np.repeat(self._rarities[numbers], [len(names) for names in holders])
        return np.bincount(np.concatenate(holders), weights, len(self._weights)).astype(np.float64)

    def _weight(self, words: Iterable[str]) -> float:
        numbers = [(word, self._numbers.get(word)) for word in words]
        return sum(
            rarity(word, 0, 0) if number is None else float(self._rarities[number])
            for word, number in numbers
        )


def _with_sentences(lines: Iterable[str]) -> Iterator[str]:
    """Each line, and its sentences where it has several."""
    for line in lines:
        yield line
        sentences = [part for part in _BETWEEN_SENTENCES.split(line) if part]
        if len(sentences) > 1:
            yield from sentences


def name_words(text: str) -> frozenset[str]:
    """The words by which a name and a line are compared, those of a gloss too."""
    glossed = translate(text)
    return frozenset(tokenize(text if glossed == text else f"{text}\n{glossed}"))
