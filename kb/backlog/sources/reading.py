"""From a file or a folder to its threads, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kb.backlog.model import Thread
from kb.backlog.sources.model import Skipped, Source


def sources_below(path: Path) -> Iterator[Source | Skipped]:
    """What there is to read in a file or a folder, in the order of names. Nothing is opened.

    Raises:
        LogError: there is no such file or folder.
    """
    raise NotImplementedError


def read_source(
    source: Source, mapping: Mapping[str, str] | None = None
) -> Iterator[Thread | Skipped]:
    """The threads of one source. `mapping` names the columns of a table: title -> Summary."""
    raise NotImplementedError


def read_threads(
    path: Path, mapping: Mapping[str, str] | None = None
) -> Iterator[Thread | Skipped]:
    """All threads of a file or a folder."""
    for source in sources_below(path):
        if isinstance(source, Skipped):
            yield source
        else:
            yield from read_source(source, mapping)
