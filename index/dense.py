"""Vectors and their neighbours, with FAISS."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import faiss
import numpy as np

from index.errors import StoreDamaged, TooManyFiles, is_lack_of_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_EXACT_VECTORS = 100_000
"""Above this many vectors the index is approximate (HNSW). `make bench` prints both."""

_LINKS_PER_VECTOR = 32
"""Neighbours of a vector in the graph (M of HNSW); more find more and take more memory."""
_BUILD_CANDIDATES = 80
"""Vectors compared when one is added (efConstruction)."""
_SEARCH_CANDIDATES = 128
"""Vectors kept while searching (efSearch); more find more and take longer."""

Vectors: TypeAlias = "NDArray[np.float32]"


class DenseIndex:
    """Inner-product search over unit vectors, so a score is a cosine."""

    def __init__(self, index: faiss.Index) -> None:
        self._index = index

    @classmethod
    def build(cls, vectors: Vectors) -> DenseIndex:
        """Build from an (n, dim) array; row numbers are the positions that `search` returns."""
        dimension = vectors.shape[1]
        if len(vectors) <= MAX_EXACT_VECTORS:
            index: faiss.Index = faiss.IndexFlatIP(dimension)
        else:
            graph = faiss.IndexHNSWFlat(dimension, _LINKS_PER_VECTOR, faiss.METRIC_INNER_PRODUCT)
            graph.hnsw.efConstruction = _BUILD_CANDIDATES
            graph.hnsw.efSearch = _SEARCH_CANDIDATES
            index = graph
        index.add(np.ascontiguousarray(vectors))
        return cls(index)

    @classmethod
    def load(cls, path: Path, checksum: int) -> DenseIndex:
        """Read what `save` wrote; `checksum` is what it returned.

        Raises:
            FileNotFoundError: there is no such file.
            StoreDamaged: it holds something else.
            TooManyFiles: it cannot be opened.
        """
        if not path.is_file():
            raise FileNotFoundError(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            if is_lack_of_files(error):
                raise TooManyFiles from error
            raise StoreDamaged(f"cannot read the vectors {path}: {error.strerror}") from error
        if zlib.crc32(data) != checksum:
            raise StoreDamaged(f"the vector index {path} is damaged")
        return cls(faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8)))

    def save(self, path: Path) -> int:
        """Write the index to a file and return its checksum."""
        data = faiss.serialize_index(self._index).tobytes()
        path.write_bytes(data)
        return zlib.crc32(data)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def search(self, queries: Vectors, count: int) -> tuple[Vectors, NDArray[np.int64]]:
        """Return cosines and positions, both (queries, count), best first; position -1 is none."""
        count = min(count, len(self))
        if count == 0 or len(queries) == 0:
            shape = (len(queries), 0)
            return np.zeros(shape, np.float32), np.zeros(shape, np.int64)
        # One by one: for a few together FAISS wakes its threads, which takes longer than searching.
        found = [self._index.search(np.ascontiguousarray(row[None]), count) for row in queries]
        scores, positions = zip(*found, strict=True)
        return np.concatenate(scores), np.concatenate(positions)
