"""Which check a text is about, by the words of its name, title and question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Set

from index.tokens import tokenize
from kb.check import Check

_MIN_RARITY = 0.9
"""Least sum of the rarities, each from 0 to 1, of the words that a check shares with a text: one
word that only this check has, or two."""
_MIN_SHARE = 0.3
"""The same for each word of the text: one word of a long question is there by chance."""


class CheckNames:
    """The words by which the checks are told apart, and how rare each is among them."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self._words = [
            (check, frozenset(tokenize(f"{check.id.replace('-', ' ')} {_named(check)}")))
            for check in checks
        ]
        counts = Counter(word for _check, words in self._words for word in words)
        scale = math.log(max(len(self._words), 2))
        self._rarity = {word: 1 - math.log(count) / scale for word, count in counts.items()}

    def nearest(self, said: Set[str]) -> Check | None:
        """The check with the rarest of the words, in the form of `tokenize`; of equals the one with
        the shortest name. None where none has enough of them, or only a small part."""

        def score(entry: tuple[Check, frozenset[str]]) -> tuple[float, int]:
            words = entry[1]
            return sum(self._rarity[word] for word in said & words), -len(words)

        best = max(self._words, key=score, default=None)
        enough = max(_MIN_RARITY, _MIN_SHARE * len(said))
        return best[0] if best and score(best)[0] >= enough else None


def _named(check: Check) -> str:
    return f"{check.title} {check.header.question}"
