"""The classifier of acts: weights for n-grams of words and characters, and for an encoder.

The encoder is not that of the search: it was taught on acts, and knows Chinese characters. `make
acts` trains both on the sentences of benchmarks/acts and writes `act_model/`, with provenance.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from index.encoder import Encoder, OnnxEncoder, file_sha256
from index.errors import EncoderError
from kb.conversation.simplified import simplified
from kb.evidence.glossary import gloss, has_chinese, longest_of, terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_DIR = Path(__file__).parent / "act_model"
WEIGHTS = "weights.npz"
ABOUT = "acts.json"

BUCKETS = 1 << 17
"""Rows of the table of weights; n-grams share them by their hash. Half as many cost a point."""
_LONGEST_WORDS = 4
"""Words, or Chinese characters, of an n-gram."""
_LETTERS = (3, 4)
"""Letters of the pieces of a word: they hold its stem, and survive a typing error."""
_WORD = re.compile(r"[a-z_']+|[0-9]+|[\u3400-\u9fff]|[^\sa-z0-9_'\u3400-\u9fff]")

Array: TypeAlias = "NDArray[Any]"


def normal(text: str) -> str:
    """Without what says nothing of the act: widths, case, traditional characters."""
    return simplified(unicodedata.normalize("NFKC", text).casefold().strip())


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
    source = Path(__file__).with_name("gloss.toml").read_text(encoding="utf-8")
    words = terms() | tomllib.loads(source)["words"]
    return words, longest_of(words)


def vectors(texts: Sequence[str], encoder: Encoder) -> Array:
    """The texts as the encoder that was taught on acts sees them: (n, dimension)."""
    return encoder.encode([in_english(text) for text in texts])


class ActModel:
    """The trained weights. Threads may share it."""

    def __init__(self, directory: Path = MODEL_DIR) -> None:
        self._encoder = OnnxEncoder(directory)
        try:
            told = _read_about(directory)
            self._acts: list[str] = told["acts"]
            self._other = self._acts.index("other")
            self._least: float = told["least_share"]
            with np.load(directory / WEIGHTS) as stored:
                self._grams: Array = stored["grams"]
                self._scale: Array = stored["scale"]
                self._meaning: Array = stored["meaning"].astype(np.float32)
                self._bias: Array = stored["bias"]
        except (OSError, ValueError, KeyError) as error:
            raise EncoderError(
                f"The classifier in {directory} is missing or damaged; reinstall incident-kb"
            ) from error

    def read(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        """The act of each text and its share, from 0 to 1; `other` below the least share."""
        shares = self.shares(texts)
        best = shares.argmax(axis=1)
        unsure = shares.max(axis=1) < self._least
        best[unsure] = self._other
        return [
            (self._acts[act], float(share)) for act, share in zip(best, shares.max(1), strict=True)
        ]

    def shares(self, texts: Sequence[str]) -> Array:
        """How likely each act is: (n, acts); rows add up to 1."""
        scores = np.stack([self._of_grams(text) for text in texts]) + self._bias
        scores += vectors(texts, self._encoder) @ self._meaning
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Array = odds / odds.sum(axis=1, keepdims=True)
        return shares

    def _of_grams(self, text: str) -> Array:
        buckets, values = hashed(text)
        return (values @ self._grams[buckets]) * self._scale


def _read_about(directory: Path) -> dict[str, Any]:
    """What is said of the weights.

    Raises:
        ValueError: the weights are others.
    """
    told: dict[str, Any] = json.loads((directory / ABOUT).read_text(encoding="utf-8"))
    if file_sha256(directory / WEIGHTS) != told["sha256"][WEIGHTS]:
        raise ValueError(f"wrong SHA-256 of {WEIGHTS}")
    return told


@cache
def load_act_model() -> ActModel:
    """The shipped classifier, which is read at the first message of a conversation.

    Raises:
        EncoderError: it is missing or damaged.
    """
    return ActModel()
