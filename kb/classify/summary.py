"""All results of a run, with counts for the views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from index.progress import Notify, silent_notify
from kb.classify.cluster import Cluster, find_clusters
from kb.classify.result import MainLine, Result, Unreadable
from kb.verdict import Verdict

Value = TypeVar("Value", str, int)


class Summary(msgspec.Struct, frozen=True):
    """A whole run."""

    results: tuple[Result, ...]
    """In order of path, each unknown one with its cluster."""
    clusters: tuple[Cluster, ...]
    unreadable: tuple[Unreadable, ...]

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many units have each verdict."""
        return Counter(result.verdict for result in self.results)

    @property
    def incidents(self) -> list[tuple[str, int, int]]:
        """Id, and how many units match it or possibly do; most matches first. What is only possible
        comes behind: a warning that many logs have is the cause in few of them."""
        counts: dict[str, list[int]] = {}
        for result in self.results:
            if result.incident is not None:
                counts.setdefault(result.incident, [0, 0])[result.verdict is Verdict.POSSIBLE] += 1
        rows = [(name, sure, perhaps) for name, (sure, perhaps) in counts.items()]
        return sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))

    @property
    def follow_on(self) -> int:
        """How many units show nothing but errors that follow from a failure elsewhere."""
        return sum(r.verdict is Verdict.POSSIBLE and r.incident is None for r in self.results)

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Hosts whose lines tell of failures, and of how many; worst first."""
        return _most_frequent(line.host for line in self._main_lines())

    @property
    def ranks(self) -> list[tuple[int, int]]:
        """Ranks, likewise."""
        return _most_frequent(line.rank for line in self._main_lines())

    def _main_lines(self) -> Iterator[MainLine]:
        for result in self.results:
            if result.main_line and result.verdict is not Verdict.HEALTHY:
                yield result.main_line


def _most_frequent(values: Iterable[Value | None]) -> list[tuple[Value, int]]:
    counts = Counter(value for value in values if value is not None)
    return sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))


def summarize(
    results: Iterable[Result],
    unreadable: Iterable[Unreadable],
    notify: Notify = silent_notify,
) -> Summary:
    """Sort, cluster and count."""
    by_path = {result.path: result for result in results}
    clusters = find_clusters(by_path.values(), notify)
    by_path |= {result.path: result for cluster in clusters for result in cluster.members}
    return Summary(
        results=tuple(by_path[path] for path in sorted(by_path)),
        clusters=clusters,
        unreadable=tuple(sorted(unreadable, key=lambda unit: unit.path)),
    )
