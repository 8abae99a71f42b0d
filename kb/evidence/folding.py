"""Lines that say the same are one line with a count."""

from __future__ import annotations

import msgspec

from kb.evidence.markers import Grade
from kb.evidence.model import EvidenceLine

_MAX_DISTINCT_LINES = 2_000
"""Distinct lines kept of a log, far more than are shown; only fatal ones come on top."""


class FoldedLines:
    """The distinct lines of a log by their masks, in the order in which they were seen first."""

    def __init__(self) -> None:
        self._by_mask: dict[str, EvidenceLine] = {}
        self._counted: set[tuple[str | None, int]] = set()
        """File and number of each line that was counted."""

    def __len__(self) -> int:
        """Number of distinct lines."""
        return len(self._by_mask)

    def __contains__(self, masked: str) -> bool:
        """Whether a line with this mask is kept."""
        return masked in self._by_mask

    def add(self, line: EvidenceLine) -> None:
        """Add a line, or count it with the one that says the same; a line counts once."""
        if not line.masked:
            return
        place = (line.file, line.number)
        again = place in self._counted
        known = self._by_mask.get(line.masked)
        if known is not None:
            line = msgspec.structs.replace(
                known,
                count=known.count + (not again),
                grade=max(known.grade, line.grade),
                stack=known.stack or line.stack,
            )
        elif len(self._by_mask) >= _MAX_DISTINCT_LINES and line.grade is not Grade.FATAL:
            return
        self._by_mask[line.masked] = line
        self._counted.add(place)

    def count(self, masked: str) -> None:
        """Count one more line that says the same as one that is known."""
        known = self._by_mask[masked]
        self._by_mask[masked] = msgspec.structs.replace(known, count=known.count + 1)

    def forget_places(self) -> None:
        """Free what tells a line from its like, once no line that was added can come again."""
        self._counted.clear()

    def grade(self, line: EvidenceLine) -> Grade:
        """The grade of a line, or of what says the same."""
        return self._by_mask.get(line.masked, line).grade

    def by_grade(self) -> list[EvidenceLine]:
        """All lines, most telling first, those of one grade in the order of the log."""
        return sorted(self._by_mask.values(), key=lambda line: -line.grade)
