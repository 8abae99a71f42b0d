"""A tier: documents that compete with each other, with an index and statistics of their own.

Word frequencies, pattern frequencies and the calibration are computed per tier. So the answers of
one tier do not change when another tier grows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

from index.documents import Candidate, Query
from index.encoder import Encoder
from index.errors import StoreDamaged
from index.snapshot import Snapshot
from index.vector_cache import CachingEncoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Read = TypeVar("Read")

_MAX_REMEMBERED_TEXTS = 8
"""Groups of texts whose vectors are remembered, some 150 kB each: within a turn several parts ask
for the same."""
MAX_REMEMBERED_QUERIES = 128
"""Questions whose answers are kept; an answer is some 200 kB."""


class TierName(StrEnum):
    """How far a tier can be trusted."""

    CURATED = "curated"
    """Reviewed records, of the package and of the team: they alone can be a match."""
    GUIDES = "guides"
    """Checks and playbooks, of the package and of the team: they lead to a match, and are none."""
    ANSWERS = "answers"
    """Answers to what people ask in between: they say nothing of a case."""


class Tier:
    """One tier, opened when it is first asked. Safe to use from one thread."""

    def __init__(
        self,
        name: TierName,
        open_snapshot: Callable[[], Snapshot],
        encoder: Callable[[], Encoder],
        renew: Callable[[StoreDamaged], Snapshot] | None = None,
    ) -> None:
        """`renew` is called when the index turns out to be damaged, and gives the one that was
        built in its place."""
        self.name = name
        self._open = open_snapshot
        self._encoder = encoder
        self._renew = renew
        # Held weakly: a circle would keep the encoder until the garbage collector comes by.
        search = partial(Tier._search, weakref.proxy(self))
        self._remembered = lru_cache(MAX_REMEMBERED_QUERIES)(search)
        encode = partial(Tier._encode, weakref.proxy(self))
        self._encoded = lru_cache(_MAX_REMEMBERED_TEXTS)(encode)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The index as it was when the tier was first asked.

        Raises:
            KbError: with one sentence for the user.
        """
        return self._open()

    @property
    def is_open(self) -> bool:
        """Whether the index was asked before."""
        return "snapshot" in self.__dict__

    def search(self, query: Query) -> list[Candidate]:
        """Search the index. Many logs are equal after masking, so results are cached."""
        return self._remembered(query)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length per text: (n, dim). Passages of the tier are not encoded again."""
        return self._encoded(tuple(texts))

    def _encode(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        encoder = self._encoder()

        def stored(hashes: Collection[str]) -> dict[str, bytes]:
            return self.read(lambda snapshot: snapshot.vectors(encoder.name, hashes))

        return CachingEncoder(lambda: encoder, encoder.name, stored).encode(texts)

    def payloads(self) -> dict[str, bytes]:
        """What every document carries, by its id and in order of ids."""
        return self.read(Snapshot.payloads)

    def _search(self, query: Query) -> list[Candidate]:
        return self.read(lambda snapshot: snapshot.search(query, self._encoder()))

    def read(self, ask: Callable[[Snapshot], Read]) -> Read:
        """Read from the index; one that turns out to be damaged is built again, once."""
        try:
            return ask(self.snapshot)
        except StoreDamaged as error:
            if self._renew is None:
                raise
            renewed = self._renew(error)
        self.replace(renewed)
        return ask(renewed)

    def replace(self, snapshot: Snapshot) -> None:
        """Go on with another state of the index."""
        self.close()
        self.snapshot = snapshot
        self._remembered.cache_clear()

    def close(self) -> None:
        """Release the index, if it was opened."""
        if self.is_open:
            self.snapshot.close()
