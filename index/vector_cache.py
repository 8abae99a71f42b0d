"""An encoder that looks up what was encoded before."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from index.encoder import Encoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_LENGTH_ERROR = 1e-3
"""Tolerance for the length of a vector, which should be 1."""

Lookup = Callable[[Collection[str]], dict[str, bytes]]
"""Returns the vectors that are known among some hashes of texts."""


def text_hash(text: str) -> str:
    """What the vector of a text is stored by."""
    return hashlib.sha256(text.encode()).hexdigest()


def _is_whole(vector: bytes) -> bool:
    """Whether the vector still has unit length; a corrupt file would change it."""
    values = np.frombuffer(vector, np.float32) if len(vector) % 4 == 0 else np.zeros(1)
    return abs(float(np.linalg.norm(values)) - 1) < MAX_LENGTH_ERROR


class CachingEncoder:
    """Asks `lookup` first, and the encoder, which is loaded by then at the latest, for the rest.

    `vectors` holds all that was asked for, by the hash of the text. No text is encoded twice.
    """

    def __init__(self, encoder: Callable[[], Encoder], name: str, lookup: Lookup) -> None:
        self.name = name
        self.vectors: dict[str, bytes] = {}
        self._encoder, self._lookup = encoder, lookup

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self._encoder().dim

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per text: (n, dim)."""
        if not texts:
            return self._encoder().encode(texts)
        wanted = {text_hash(text): text for text in texts}
        known = self._lookup(wanted.keys() - self.vectors.keys())
        self.vectors |= {key: vector for key, vector in known.items() if _is_whole(vector)}
        missing = {key: text for key, text in wanted.items() if key not in self.vectors}
        if missing:
            rows = self._encoder().encode(list(missing.values()))
            self.vectors |= {key: row.tobytes() for key, row in zip(missing, rows, strict=True)}
        data = b"".join(self.vectors[text_hash(text)] for text in texts)
        return np.frombuffer(data, np.float32).reshape(len(texts), -1)
