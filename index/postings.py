"""Words of very many documents, in one SQLite file: which documents hold a word, and how strongly.

FTS5 counts each word in each document again for every question: 160 ms for 300,000 documents. Here
the weight of a word in a document is computed once, as BM25 does it, and kept in a byte, so a
question only adds up arrays. New documents make a segment; segments of one size are joined into a
larger one, so that a question looks into few.
"""

from __future__ import annotations

import heapq
import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA = """
CREATE TABLE segments (number INTEGER PRIMARY KEY, level INTEGER NOT NULL);
CREATE TABLE words (segment INTEGER NOT NULL, word TEXT NOT NULL, postings BLOB NOT NULL,
    PRIMARY KEY (segment, word)) WITHOUT ROWID;
"""

_SATURATION = 1.2
"""k1 of BM25: how little more the second and third time that a word is said tell."""
_LENGTH_WEIGHT = 0.5
"""b of BM25: how much less a word tells in a long document."""
_USUAL_LENGTH = 150.0
"""Weighted words of a document of usual length. A constant, so that what is stored stays true."""
_STEPS = 255
"""Steps in which a weight is kept; the largest weight is 1."""
_SEGMENTS_PER_LEVEL = 8
"""So many segments of one level become one of the next."""
_POSTING_BYTES = 5
"""A document as four bytes, and its weight."""
_MAX_POSTINGS = 2_000_000
"""Read for one question, of the rarest words first: the rest take time and tell little."""
_UNKNOWN = 0.5
"""Of what a word tells that no document holds: people use words of their own."""
_PAIR = 0.5
"""Of what two Chinese characters tell."""

Numbers: TypeAlias = "NDArray[np.uint32]"
Weights: TypeAlias = "NDArray[np.float32]"


class Postings(msgspec.Struct, frozen=True):
    """The documents that hold a word."""

    word: str
    numbers: Numbers
    """In rising order."""
    weights: NDArray[np.uint8]


def add(connection: sqlite3.Connection, documents: Mapping[int, Mapping[str, float]]) -> None:
    """Add documents, whose numbers are larger than all before: how often each word is said in them,
    more where it is said in a title."""
    by_word: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number in sorted(documents):
        counts = documents[number]
        length = sum(counts.values()) / _USUAL_LENGTH
        slack = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length)
        for word, count in counts.items():
            by_word[word].append((number, max(1, round(_STEPS * count / (count + slack)))))
    rows = ((word, _packed(by_word[word])) for word in sorted(by_word))
    _write_segment(connection, 0, rows)
    _join_segments(connection)


def frequencies(connection: sqlite3.Connection, words: Sequence[str]) -> dict[str, int]:
    """In how many documents each word occurs; words that occur nowhere are left out."""
    rows = connection.execute(
        "SELECT word, sum(length(postings)) FROM words WHERE segment IN (SELECT number FROM"
        " segments) AND word IN (SELECT value FROM json_each(?)) GROUP BY word",
        (json.dumps(words),),
    )
    return {word: size // _POSTING_BYTES for word, size in rows}


def rarity(frequency: int, documents: int, *, pair: bool = False) -> float:
    """How much a word tells, as BM25 has it. One that no document holds counts as well: what is
    asked for may not be here at all. Of a Chinese word there are several pairs of characters."""
    told = math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))
    if not frequency:
        told *= _UNKNOWN
    return told * _PAIR if pair else told


def affordable(frequencies: Mapping[str, int]) -> list[str]:
    """The words to search for, rarest first."""
    ordered = sorted(frequencies, key=frequencies.__getitem__)
    chosen: list[str] = []
    total = 0
    for word in ordered:
        total += frequencies[word]
        if chosen and total > _MAX_POSTINGS:
            break
        chosen.append(word)
    return chosen


def read(connection: sqlite3.Connection, words: Sequence[str]) -> Iterator[Postings]:
    """The documents of each word that any holds."""
    rows = connection.execute(
        "SELECT word, postings FROM words WHERE segment IN (SELECT number FROM segments)"
        " AND word IN (SELECT value FROM json_each(?)) ORDER BY word, segment",
        (json.dumps(words),),
    )
    for word, parts in groupby(rows, itemgetter(0)):
        yield Postings(word, *_unpacked([postings for _word, postings in parts]))


def score(postings: Iterable[Postings], rarities: Mapping[str, float], highest: int) -> Weights:
    """How well each document up to the number `highest` fits, by its number."""
    scores = np.zeros(highest + 1, np.float32)
    for one in postings:
        scores[one.numbers] += one.weights * np.float32(rarities[one.word] / _STEPS)
    return scores


def _write_segment(
    connection: sqlite3.Connection, level: int, rows: Iterable[tuple[str, bytes]]
) -> None:
    number = connection.execute("INSERT INTO segments (level) VALUES (?)", (level,)).lastrowid
    connection.executemany(
        "INSERT INTO words VALUES (?, ?, ?)", ((number, word, packed) for word, packed in rows)
    )


def _join_segments(connection: sqlite3.Connection) -> None:
    """Join the segments of each level that is full."""
    level = 0
    while True:
        found = connection.execute(
            "SELECT number FROM segments WHERE level = ? ORDER BY 1", (level,)
        ).fetchall()
        if len(found) < _SEGMENTS_PER_LEVEL:
            return
        level += 1
        _join(connection, [number for (number,) in found], level)


def _join(connection: sqlite3.Connection, segments: list[int], level: int) -> None:
    sorted_rows = heapq.merge(
        *(
            connection.execute(
                "SELECT word, segment, postings FROM words WHERE segment = ? ORDER BY word",
                (segment,),
            )
            for segment in segments
        )
    )
    joined = (
        (word, _joined([packed for _word, _segment, packed in rows]))
        for word, rows in groupby(sorted_rows, itemgetter(0))
    )
    _write_segment(connection, level, joined)
    for segment in segments:
        connection.execute("DELETE FROM words WHERE segment = ?", (segment,))
        connection.execute("DELETE FROM segments WHERE number = ?", (segment,))


def _packed(pairs: list[tuple[int, int]]) -> bytes:
    numbers, weights = zip(*pairs, strict=True)
    return np.array(numbers, "<u4").tobytes() + bytes(weights)


def _joined(parts: list[bytes]) -> bytes:
    if len(parts) == 1:
        return parts[0]
    numbers, weights = _unpacked(parts)
    return numbers.tobytes() + weights.tobytes()


def _unpacked(parts: list[bytes]) -> tuple[Numbers, NDArray[np.uint8]]:
    """The numbers and weights of all parts in a row.

    Raises:
        ValueError: a part is damaged.
    """
    sizes = [len(part) // _POSTING_BYTES for part in parts]
    numbers = [np.frombuffer(part, "<u4", size) for part, size in zip(parts, sizes, strict=True)]
    weights = [
        np.frombuffer(part, np.uint8, size, 4 * size)
        for part, size in zip(parts, sizes, strict=True)
    ]
    if len(parts) == 1:
        return numbers[0], weights[0]
    return np.concatenate(numbers), np.concatenate(weights)
