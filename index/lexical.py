"""Words that a query and a document share, over SQLite FTS5.

BM25 finds candidates; `frequencies` says how rare each word is, from which `rarity` makes a weight
between 0 and 1, so that scores keep their meaning when the corpus grows.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Mapping

from index.tokens import is_pair

_MOST_TERMS = 64
"""A query of more terms is cut to its rarest ones: the rest cost time and change no ranking."""

_VARIABLES_AT_ONCE = 500
_FOREIGN_WORD = 0.5
_FOREIGN_PAIR = 0.2
_PAIR = 0.5


def frequencies(connection: sqlite3.Connection, terms: Collection[str]) -> dict[str, int]:
    """In how many documents each term occurs; terms that occur nowhere are left out."""
    found: dict[str, int] = {}
    ordered = list(terms)
    for start in range(0, len(ordered), _VARIABLES_AT_ONCE):
        part = ordered[start : start + _VARIABLES_AT_ONCE]
        marks = ",".join("?" * len(part))
        found.update(
            connection.execute(
                f"SELECT term, doc FROM vocabulary WHERE term IN ({marks})",  # noqa: S608
                part,
            )
        )
    return found


def rarity(term: str, frequency: int, documents: int) -> float:
    """Inverse document frequency, scaled so that a word of one document has weight 1.

    Terms that no document contains get a lower weight: users describe a problem in their own words,
    and a pair of Chinese characters is often not a word. Known pairs also get a lower weight than
    words, because one Chinese word yields several pairs.
    """
    if frequency == 0:
        return _FOREIGN_PAIR if is_pair(term) else _FOREIGN_WORD
    whole = _PAIR if is_pair(term) else 1.0
    if frequency == 1 or documents <= 1:
        return whole
    return whole * math.log(documents / frequency) / math.log(documents)


def search(connection: sqlite3.Connection, weights: Mapping[str, float], limit: int) -> list[int]:
    """Numbers of the documents that share words with the query, best BM25 first."""
    terms = sorted(weights, key=lambda term: -weights[term])[:_MOST_TERMS]
    if not terms:
        return []
    rows = connection.execute(
        "SELECT rowid FROM lexical WHERE lexical MATCH ? ORDER BY rank, rowid LIMIT ?",
        (" OR ".join(f'"{term}"' for term in terms), limit),
    )
    return [number for (number,) in rows]
