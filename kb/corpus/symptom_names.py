"""How alike a line is to the names that people give a symptom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from index.lexical import rarity
from index.tokens import tokenize
from kb.evidence.glossary import translate
from kb.playbook import Playbook


class SymptomNames:
    """The names of all playbooks as sets of words, and how rare each word is among playbooks.

    Beside the index, because a question of three words is compared with whole names: that a
    playbook has its words somewhere says little.
    """

    def __init__(self, playbooks: Iterable[Playbook]) -> None:
        self._names: Mapping[str, tuple[frozenset[str], ...]] = {
            playbook.id: tuple(map(_words, (playbook.title, *names.en, *names.zh)))
            for playbook in playbooks
            for names in [playbook.header.names]
        }
        self._counts = Counter(
            word for names in self._names.values() for word in frozenset().union(*names)
        )

    def likeness(self, lines: Iterable[str]) -> dict[str, float]:
        """By id of the playbook: the largest share of words, weighted by rarity, that a line and a
        name have in common (Dice's coefficient). 0 to 1; playbooks at 0 are left out."""
        found: dict[str, float] = {}
        for words in filter(None, map(_words, lines)):
            whole = self._weight(words)
            for identifier, names in self._names.items():
                for name in names:
                    if shared := words & name:
                        value = 2 * self._weight(shared) / (whole + self._weight(name))
                        found[identifier] = max(found.get(identifier, 0.0), value)
        return found

    def _weight(self, words: frozenset[str]) -> float:
        return sum(rarity(word, self._counts[word], len(self._names)) for word in words)


def _words(text: str) -> frozenset[str]:
    return frozenset([*tokenize(text), *tokenize(translate(text))])
