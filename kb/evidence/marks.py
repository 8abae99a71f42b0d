"""What a scan found in a block. A block full of trouble has ten thousand marks, of which few are
looked at, so they are kept and chosen as arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Mark = tuple[int, int]
"""Number of a marker or of a signature, and the offset behind its match."""

_LOOKED_AT = 256
"""Marks that become numbers of Python at a time: whoever goes through them often stops early."""


class Marks:
    """Marks in order of offset; a slice of them is one of its own."""

    def __init__(self, pairs: NDArray[np.uint32]) -> None:
        """`pairs` has a row for each mark."""
        self._pairs = pairs

    @classmethod
    def of(cls, found: Sequence[Mark]) -> Marks:
        """Those that a scanner reports."""
        flat = np.fromiter(chain.from_iterable(found), np.uint32, 2 * len(found))
        return cls(flat.reshape(-1, 2))

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, places: slice) -> Marks:
        return Marks(self._pairs[places])

    def __iter__(self) -> Iterator[Mark]:
        for first in range(0, len(self._pairs), _LOOKED_AT):
            numbers, ends = self._pairs[first : first + _LOOKED_AT].T.tolist()
            yield from zip(numbers, ends, strict=True)

    def __reversed__(self) -> Iterator[Mark]:
        return iter(self[::-1])

    def behind(self, offset: int) -> Marks:
        """Those that end behind an offset."""
        return self[int(np.searchsorted(self._pairs[:, 1], offset, "right")) :]

    def chosen(self, choice: NDArray[np.bool_]) -> Marks:
        """Those of some patterns: by their numbers, whether each is one of them."""
        return Marks(self._pairs[choice[self._pairs[:, 0]]])


def choice(numbers: Iterable[int], among: int) -> NDArray[np.bool_]:
    """Whether each of so many patterns is one of these, for `chosen`."""
    chosen = np.zeros(among, np.bool_)
    chosen[list(numbers)] = True
    return chosen
