"""Lists of ranks and hosts as ClusterShell reads them; few logs hold one, so few load it."""

from __future__ import annotations

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.RangeSet import RangeSet, RangeSetException, RangeSetParseError

from kb.numbers import MAX_INT

NO_LIST = (NodeSetException, RangeSetException, ValueError)
"""Raised by ClusterShell for a text that is no list."""


def expand_hosts(text: str) -> tuple[str, ...]:
    """The hosts of a list such as `cn[01-02],gpu7`.

    Raises:
        NO_LIST: it is none.
    """
    return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))


class Ranges(RangeSet):  # type: ignore[misc]  # ClusterShell has no types
    """The ranges of a list. They are not expanded: a line of a hostile log can name billions."""

    def __init__(self, text: str) -> None:
        self.ranges: list[range] = []
        super().__init__(text)

    def add_range(self, start: int, stop: int, step: int = 1, pad: int = 0) -> None:  # noqa: ARG002
        """Take in one range of the list that is parsed."""
        if start < 0 or stop > MAX_INT:
            raise RangeSetParseError("", "neither ranks nor hosts have such a number")
        self.ranges.append(range(start, stop, step))

    @property
    def count(self) -> int:
        """How many numbers the ranges hold."""
        return sum((one.stop - one.start) // one.step + 1 for one in self.ranges)
