"""The accelerators that a log names, and those that a record is about.

Only what is named counts: a record that lists none, or lists some as examples, holds for any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

import msgspec

from kb.expression import Expression
from kb.rules import any_of, read_rows
from kb.rules.rows import Accelerator, Generation, Product

FAMILIES = read_rows("systems", "accelerator", Accelerator)
"""Families of accelerators."""
GENERATIONS = read_rows("systems", "generation", Generation)
"""Generations of those of NVIDIA, oldest first."""

_ASIDE = Expression(r"\([^()]*\)")
_SEEN = Expression(r"\b(?:reported|seen|typical|in the report|among them)\b")
"""A clause with such a word tells where it was seen, not where it happens."""
_ANY = Expression(r"\bany\b(?! (?:NVIDIA|AMD)\b)|\b(?:other|than|virtual)\b", re.IGNORECASE)
"""The cards named are not all: there are others, a comparison, an alternative without a name."""
_NEWER = Expression(r"\b(?:newer|later)\b", re.IGNORECASE)
_OLDER = Expression(r"\b(?:older|below)\b", re.IGNORECASE)


class Hardware(msgspec.Struct, frozen=True):
    """Kinds of accelerators, by the names of the rows. Empty where nothing is said."""

    families: frozenset[str] = frozenset()
    generations: frozenset[str] = frozenset()

    def excludes(self, other: Hardware) -> bool:
        """Whether both name families, or generations, and none in common."""
        pairs = ((self.families, other.families), (self.generations, other.generations))
        return any(mine and theirs and not mine & theirs for mine, theirs in pairs)


def names_family(family: Accelerator, text: str) -> bool:
    """Whether a record or a person names accelerators of a family."""
    return re.search(family.pattern, text, re.IGNORECASE) is not None  # re keeps what it compiled


def products_in(text: str) -> Iterator[str]:
    """The names of cards in what programs print and people write."""
    return (match[0] for match in _any_product().finditer(text))


def hardware_of(products: Iterable[str]) -> Hardware:
    """What cards of these names are."""
    named = list(products)
    return Hardware(
        frozenset(row.name for row in FAMILIES if any(_is_of(row, one) for one in named)),
        frozenset(row.name for row in GENERATIONS if any(_is_of(row, one) for one in named)),
    )


@lru_cache(1024)
def required_hardware(text: str) -> Hardware:
    """What the line `hardware` of a record says that it needs.

    A generation counts only by its own name: a list of cards rarely has all of a generation.
    """
    clauses = (clause for clause in _ASIDE.sub(" ", text).split(";") if not _SEEN.search(clause))
    needed = ";".join(clauses)
    if _ANY.search(needed):
        return Hardware()
    named = [place for place, row in enumerate(GENERATIONS) if re.search(row.pattern, needed)]
    if named and _OLDER.search(needed):
        named = list(range(max(named) + 1))
    if named and _NEWER.search(needed):
        named = list(range(min(named), len(GENERATIONS)))
    return Hardware(
        frozenset(row.name for row in FAMILIES if names_family(row, needed)),
        frozenset(GENERATIONS[place].name for place in named),
    )


def _is_of(row: Product, card: str) -> bool:
    return re.search(rf"(?<![A-WYZa-wyz0-9])(?:{row.product})(?!\d)", card) is not None


@cache
def _any_product() -> re.Pattern[str]:
    return any_of(row.product for row in FAMILIES)
