"""The classifier of acts: weights for n-grams of words and characters, and for two encoders.

One is that of the search, the other was taught on acts and knows Chinese characters. `make acts`
trains all on the sentences of benchmarks/acts and writes `act_model/`, with provenance.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.encoder import Encoder, OnnxEncoder
from kb.evidence.glossary import gloss, has_chinese, longest_of, terms

MODEL_DIR = Path(__file__).parent / "act_model"
WEIGHTS = "weights.npz"
ABOUT = "acts.json"

BUCKETS = 1 << 17
"""Rows of the table of weights; n-grams share them by their hash. Half as many cost a point."""
_LONGEST_WORDS = 4
"""Words, or Chinese characters, of an n-gram."""
_LETTERS = (3, 4)
"""Letters of the pieces of a word: they hold its stem, and survive a typing error."""
_CHINESE = re.compile(r"[\u3400-\u9fff]+")
_WORD = re.compile(r"[a-z_']+|[0-9]+|[\u3400-\u9fff]|[^\sa-z0-9_'\u3400-\u9fff]")

Array = NDArray[Any]


def normal(text: str) -> str:
    """Without what says nothing of the act: widths and case."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def words_of(text: str) -> list[str]:
    """Words, single Chinese characters and signs; all numbers are alike."""
    return ["0" if word.isdecimal() else word for word in _WORD.findall(normal(text))]


def grams(text: str) -> Iterator[str]:
    """The n-grams of a text, of a Chinese one also with the words of the glossaries."""
    yield from _grams(text)
    if has_chinese(text):
        yield from _grams(in_english(text))


def _grams(text: str) -> Iterator[str]:
    """N-grams of words, also with the beginning and the end, pairs with a gap, and of letters."""
    words = ["<", *words_of(text), ">"]
    for length in range(1, _LONGEST_WORDS + 1):
        for start in range(len(words) - length + 1):
            yield f"w{' '.join(words[start : start + length])}"
    for first, third in zip(words, words[2:], strict=False):
        yield f"g{first} {third}"
    for word in words:
        if len(word) > min(_LETTERS) and word.isascii():
            marked = f"<{word}>"
            for length in _LETTERS:
                for start in range(len(marked) - length + 1):
                    yield f"c{marked[start : start + length]}"


def hashed(text: str) -> tuple[Array, Array]:
    """The buckets of a text's n-grams, and their values: 1 + log of the count, of unit length."""
    counts = Counter(zlib.crc32(gram.encode()) % BUCKETS for gram in grams(text))
    values = 1 + np.log(np.fromiter(counts.values(), np.float32, len(counts)))
    return np.fromiter(counts, np.int64, len(counts)), values / np.linalg.norm(values)


def in_english(text: str) -> str:
    """A Chinese text with English words where the glossaries have some; the rest stays Chinese."""
    if not has_chinese(text):
        return normal(text)
    words, pattern = _words()
    return gloss(normal(text), words, pattern).strip()


@cache
def _words() -> tuple[dict[str, str], re.Pattern[str]]:
    source = files("kb.conversation").joinpath("gloss.toml").read_text(encoding="utf-8")
    words = terms() | tomllib.loads(source)["words"]
    return words, longest_of(words)


def taught_encoder(directory: Path = MODEL_DIR) -> Encoder:
    """The encoder that was taught on acts; it reads what `in_english` returns."""
    return OnnxEncoder(directory)


def meanings(texts: Sequence[str], encoder: Encoder) -> Array:
    """The vectors of the texts, without what stays Chinese: (n, dimension)."""
    return encoder.encode([_CHINESE.sub(" ", in_english(text)) for text in texts])


class ActModel:
    """The trained weights. Threads may share it."""

    def __init__(self, directory: Path = MODEL_DIR) -> None:
        told = json.loads((directory / ABOUT).read_text(encoding="utf-8"))
        self._acts: list[str] = told["acts"]
        self._encoder: str = told["encoder"]
        self._taught = taught_encoder(directory)
        self._other = self._acts.index("other")
        self._least: float = told["least_share"]
        with np.load(directory / WEIGHTS) as stored:
            self._grams: Array = stored["grams"]
            self._scale: Array = stored["scale"]
            self._meaning: Array = stored["meaning"].astype(np.float32)
            self._acted: Array = stored["acted"].astype(np.float32)
            self._bias: Array = stored["bias"]

    def read(self, texts: Sequence[str], encoder: Encoder) -> list[tuple[str, float]]:
        """The act of each text and its share, from 0 to 1; `other` below the least share."""
        shares = self.shares(texts, encoder)
        best = shares.argmax(axis=1)
        unsure = shares.max(axis=1) < self._least
        best[unsure] = self._other
        return [
            (self._acts[act], float(share)) for act, share in zip(best, shares.max(1), strict=True)
        ]

    def shares(self, texts: Sequence[str], encoder: Encoder) -> Array:
        """How likely each act is: (n, acts); rows add up to 1."""
        scores = np.stack([self._of_grams(text) for text in texts]) + self._bias
        scores += self._taught.encode(list(map(in_english, texts))) @ self._acted
        if encoder.name == self._encoder:  # vectors of another model mean something else
            scores += meanings(texts, encoder) @ self._meaning
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Array = odds / odds.sum(axis=1, keepdims=True)
        return shares

    def _of_grams(self, text: str) -> Array:
        buckets, values = hashed(text)
        return (values @ self._grams[buckets]) * self._scale


@cache
def load_act_model() -> ActModel:
    """The shipped classifier."""
    return ActModel()
