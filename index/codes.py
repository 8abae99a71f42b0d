"""Vectors of very many texts: a bit a dimension to find the nearest, a byte a dimension to tell
them apart. A million of 384 dimensions take 48 MB to search in, which an exact scan does in
milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import faiss
import numpy as np

from index.dense import Vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[np.uint8]"
Small: TypeAlias = "NDArray[np.int8]"

_SCALE = 127
"""Steps of a byte; the components of a unit vector are smaller than 1."""
_STRETCH = 3.0
"""The components of a vector of 384 dimensions are far below 1: so much of their range is used."""


def to_codes(vectors: Vectors | Small) -> Codes:
    """The sign of each component: (n, dim / 8)."""
    return np.packbits(vectors > 0, axis=1)


def to_small(vectors: Vectors) -> Small:
    """Each component in a byte: (n, dim)."""
    return np.clip(np.round(vectors * (_STRETCH * _SCALE)), -_SCALE, _SCALE).astype(np.int8)


def cosines(query: Vectors, small: Small) -> Vectors:
    """Of one vector (dim,) with each of some small ones."""
    floats = small.astype(np.float32)
    lengths = np.linalg.norm(floats, axis=1)
    found: Vectors = floats @ query / np.maximum(lengths, 1e-9)
    return found


class CodeIndex:
    """All codes, in memory."""

    def __init__(self, codes: Codes) -> None:
        self._index = faiss.IndexBinaryFlat(codes.shape[1] * 8)
        self._index.add(np.ascontiguousarray(codes))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def nearest(self, query: Vectors, count: int) -> NDArray[np.int64]:
        """The positions of the codes nearest to one vector (dim,)."""
        # For one question FAISS wakes all its threads, which takes longer than searching.
        faiss.omp_set_num_threads(1)
        _distances, places = self._index.search(to_codes(query[None]), min(count, len(self)))
        found: NDArray[np.int64] = places[0]
        return found
