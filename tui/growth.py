"""What is added to the files of a case while somebody reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from index.signatures import Scanner
from kb.log.reader import log_files
from kb.walk import ignore_closed
from tui.conditions import Severity, as_severe_as

_MAX_BYTES_AT_ONCE = 4_000_000
"""Read of one file in one look: what is more is read in the next."""
_MAX_UNENDED_BYTES = 64_000
"""Of a line without an end, which is waited for: a longer one is read as it is."""
_MAX_WAITING_LOOKS = 5
"""A failure prints for a while: one answer is about all of it, if it ends after so many looks."""


class Added(msgspec.Struct, frozen=True):
    """What one look has shown."""

    grew: bool
    failed: bool
    """A line tells of a failure."""


class Growth:
    """The files below some paths, from where they end now."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._read = {file: _size(file) for file in self._files()}
        self._waiting_looks = 0
        self.is_followed = False
        """Whether somebody wants to be told of failures."""

    def has_failed(self, markers: Scanner) -> bool:
        """Look, and say whether a failure was printed, to its end."""
        added = self.look(markers)
        if added.failed or self._waiting_looks:
            self._waiting_looks += 1
        ended = not added.grew or self._waiting_looks > _MAX_WAITING_LOOKS
        if not self._waiting_looks or not ended:
            return False
        self._waiting_looks = 0
        return True

    def look(self, markers: Scanner) -> Added:
        """Read what was added since the last look, also in new files."""
        is_bad = as_severe_as(Severity.ERROR, markers)
        grew = failed = False
        for data in filter(None, map(self._added, self._files())):
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
            grew, failed = True, failed or len(is_bad(data, ends)) > 0
        return Added(grew, failed)

    def _files(self) -> Iterator[Path]:
        for path in self._paths:
            if path.is_dir():
                yield from log_files(path, ignore_closed)
            else:
                yield path

    def _added(self, file: Path) -> bytes:
        """Whole lines. A file that got shorter is read from its beginning."""
        size = _size(file)
        start = self._read.get(file, 0)
        start = start if start <= size else 0
        if start == size:
            return b""
        try:
            with file.open("rb", buffering=0) as opened:
                opened.seek(start)
                data = opened.read(min(size - start, _MAX_BYTES_AT_ONCE))
        except OSError:
            return b""
        end = data.rfind(b"\n") + 1 or (len(data) if len(data) > _MAX_UNENDED_BYTES else 0)
        self._read[file] = start + end
        return data[:end]


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # it is gone, and may come again
        return 0
