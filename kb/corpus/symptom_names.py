"""How alike a line is to the names that people give a symptom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from index.lexical import rarity
from index.tokens import tokenize
from kb.evidence.glossary import translate


class SymptomNames:
    """The names of all playbooks as sets of words, and how rare each word is among playbooks.

    Beside the index, because a question of three words is compared with whole names: that a
    playbook has its words somewhere says little.
    """

    def __init__(self, names: Mapping[str, Sequence[frozenset[str]]]) -> None:
        """`names`: the words of each name, by the id of its playbook."""
        counts = Counter(word for own in names.values() for word in frozenset().union(*own))
        self._rarity = {word: rarity(word, count, len(names)) for word, count in counts.items()}
        self._holders: dict[str, list[_Name]] = {}
        for identifier, own in names.items():
            for words in own:
                name = _Name(identifier, self._weight(words))
                for word in words:
                    self._holders.setdefault(word, []).append(name)

    def likeness(self, lines: Iterable[str]) -> dict[str, float]:
        """By id of the playbook: the largest share of words, weighted by rarity, that a line and a
        name have in common (Dice's coefficient). 0 to 1; playbooks at 0 are left out."""
        found: dict[str, float] = {}
        for words in map(name_words, lines):
            whole = self._weight(words)
            shared: dict[_Name, float] = {}
            for word in words:
                for name in self._holders.get(word, ()):
                    shared[name] = shared.get(name, 0.0) + self._rarity[word]
            for name, weight in shared.items():
                value = 2 * weight / (whole + name.weight)
                found[name.playbook] = max(found.get(name.playbook, 0.0), value)
        return found

    def _weight(self, words: Iterable[str]) -> float:
        return sum(self._rarity.get(word) or rarity(word, 0, 0) for word in words)


class _Name(msgspec.Struct, frozen=True, eq=False):
    """One name; compared as an object, since two playbooks may share one."""

    playbook: str
    weight: float
    """Of all its words."""


def name_words(text: str) -> frozenset[str]:
    """The words by which a name and a line are compared, those of a gloss too."""
    return frozenset([*tokenize(text), *tokenize(translate(text))])
