"""Words that a query and a document share, over SQLite FTS5.

BM25 finds candidates; `frequencies` says how rare each word is, from which `rarity` makes a weight
between 0 and 1, so that scores keep their meaning when the corpus grows.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Mapping

from index.tokens import is_pair

_MAX_QUERY_TERMS = 64
"""A query of more terms is cut to its rarest ones: the rest cost time and change no ranking."""

_MAX_SQL_VARIABLES = 500
"""Per statement; old builds of SQLite allow 999."""
_UNKNOWN_WORD_WEIGHT = 0.5
"""Of a word that no document contains, where a word of one document has 1."""
_UNKNOWN_PAIR_WEIGHT = 0.2
"""Of two Chinese characters that no document contains next to each other."""
_PAIR_WEIGHT = 0.5
"""Of two Chinese characters in one document."""


def frequencies(connection: sqlite3.Connection, terms: Collection[str]) -> dict[str, int]:
    """In how many documents each term occurs; terms that occur nowhere are left out."""
    found: dict[str, int] = {}
    ordered = list(terms)
    for start in range(0, len(ordered), _MAX_SQL_VARIABLES):
        part = ordered[start : start + _MAX_SQL_VARIABLES]
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
        return _UNKNOWN_PAIR_WEIGHT if is_pair(term) else _UNKNOWN_WORD_WEIGHT
    whole = _PAIR_WEIGHT if is_pair(term) else 1.0
    if frequency == 1 or documents <= 1:
        return whole
    return whole * math.log(documents / frequency) / math.log(documents)


def search(connection: sqlite3.Connection, weights: Mapping[str, float], limit: int) -> list[int]:
    """Numbers of the documents that share words with the query, best BM25 first."""
    terms = sorted(weights, key=lambda term: (-weights[term], term))[:_MAX_QUERY_TERMS]
    if not terms:
        return []
    rows = connection.execute(
        "SELECT rowid FROM lexical WHERE lexical MATCH ? ORDER BY rank, rowid LIMIT ?",
        (" OR ".join(f'"{term}"' for term in terms), limit),
    )
    return [number for (number,) in rows]
