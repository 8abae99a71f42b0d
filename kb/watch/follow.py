"""Reads what is added to one file, whatever happens to its name: each byte once.

Files are looked at, not waited for: most logs of a cluster lie on NFS or Lustre and are written by
another machine, of which inotify hears nothing. A look costs a `stat`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from glob import escape
from pathlib import Path

import msgspec

from kb.log.reader import SNIFF_BYTES, is_binary, is_plain

_MAX_PENDING_BYTES = 1 << 16
"""Of a line without an end; a longer one comes in pieces."""
_IDLE_LOOKS = 4
"""Looks at which nothing came until a line without an end is taken as it is: the last words of a
killed process have none."""
_FINGERPRINT_BYTES = 64
"""The last ones that were read: where others stand in their place, the file was written anew."""
_MAX_RESCUED_BYTES = 1 << 22
"""Read of the copy of a log that was cut off: what was written since the last look."""

_COPY = re.compile(
    r"(?P<log>.+?)(?:[.-](?:\d{1,4}|\d{4}-?\d\d-?\d\d[-T_:.\d]*|old|bak))?(?:\.(?:gz|zst|xz|bz2))?"
)
"""What logrotate and its like make of a name."""


class Added(msgspec.Struct, frozen=True):
    """What was written to a file since the last look: whole lines, as far as they have an end."""

    data: bytes
    begins: bool
    """Its first byte is that of a file: lines are counted from one."""


def is_copy(path: Path) -> bool:
    """Whether a file is the rotated part of a log that lies beside it."""
    match = _COPY.fullmatch(path.name)
    log = match["log"] if match else path.name
    return log != path.name and path.with_name(log).is_file()


class Follower:
    """Follows one name, as `tail -F` does. Holds the file open, so that nothing of it is lost when
    it is renamed or removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: _OpenFile | None = None

    @property
    def is_open(self) -> bool:
        """There is a file, as far as known."""
        return self._file is not None

    @property
    def behind(self) -> bool:
        """There is more to read."""
        return self._file is not None and self._file.behind

    @property
    def unfit(self) -> str | None:
        """Why nothing is read of it."""
        return self._file.unfit if self._file else None

    def read(self, most: int) -> Iterator[Added]:
        """What is new, at most about `most` bytes of it. Only the first part may be of another
        file than the last one before.

        Raises:
            OSError: the file is there and cannot be read.
        """
        found = self._stat()
        if self._file is not None and not self._file.is_at(found):
            yield from self._end_of_old(self._file, most)
        elif self._file is not None:
            yield from self._file.news(self.path, most)
        elif found is not None:
            self._file = _OpenFile(_opened(self.path))
            yield from self._file.rest(most)

    def last_words(self) -> Iterator[Added]:
        """The line that has no end so far."""
        if self._file is not None:
            yield from self._file.last_words()

    def close(self) -> None:
        """Let go of the file; one that lies under the name later is read from its start."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _stat(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _end_of_old(self, file: _OpenFile, most: int) -> Iterator[Added]:
        """What the file still got that has lost its name."""
        yield from file.rest(most)
        if not file.behind:
            yield from file.last_words()
            self.close()


class _OpenFile:
    """What was read of a file so far."""

    def __init__(self, number: int) -> None:
        self.behind = False
        """There is more to read."""
        self.unfit: str | None = None
        """Why nothing is read of it."""
        self._number = number
        self._seen = os.fstat(number)
        self._idle = 0
        self._pending = b""
        self._begin()

    def close(self) -> None:
        """Give the system its file back."""
        os.close(self._number)

    def is_at(self, found: os.stat_result | None) -> bool:
        """Whether it is what was found under a name."""
        return found is not None and os.path.samestat(self._seen, found)

    def news(self, path: Path, most: int) -> Iterator[Added]:
        """What was added, also where the file was cut off or written anew meanwhile."""
        before, self._seen = self._seen, os.fstat(self._number)
        if self._seen.st_size == self._offset and self._seen.st_mtime_ns == before.st_mtime_ns:
            self._idle += 1
            if self._idle >= _IDLE_LOOKS:
                yield from self.last_words()
        elif self._seen.st_size < self._offset or not self._continues():
            yield from self._rescued(path)
            yield from self.last_words()
            self._begin()
            self.behind = True
        else:
            yield from self.rest(most)

    def rest(self, most: int) -> Iterator[Added]:
        """What lies behind the last byte that was read."""
        if self.unfit:
            return
        self._skip_hole()
        data = os.pread(self._number, most, self._offset)
        if self._begins:
            self.unfit = _unfit(data[:SNIFF_BYTES])
        self.behind = len(data) == most and not self.unfit
        self._offset += len(data)
        if not self.unfit:
            yield from self._whole_lines(data)

    def last_words(self) -> Iterator[Added]:
        """The line that has no end so far."""
        if self._pending:
            yield self._added(self._pending)
            self._pending = b""

    def _begin(self) -> None:
        self._offset, self._fingerprint, self._pending, self._begins = 0, b"", b"", True
        self.unfit = None

    def _continues(self) -> bool:
        """Whether what was read last still stands there."""
        start = self._offset - len(self._fingerprint)
        return os.pread(self._number, len(self._fingerprint), start) == self._fingerprint

    def _skip_hole(self) -> None:
        """Behind a log that was cut off, a writer may go on at its old place: zeros lie before."""
        if hasattr(os, "SEEK_DATA"):
            with suppress(OSError):  # nothing but a hole follows, or holes are not told
                self._offset = os.lseek(self._number, self._offset, os.SEEK_DATA)

    def _rescued(self, path: Path) -> Iterator[Added]:
        """What was written before the log was cut off, from the copy that was made of it."""
        length = len(self._fingerprint)
        for copy in sorted(path.parent.glob(f"{escape(path.name)}[.-]*")) if length else ():
            with suppress(OSError), copy.open("rb") as file:
                file.seek(self._offset - length)
                if file.read(length) == self._fingerprint:
                    yield from self._whole_lines(file.read(_MAX_RESCUED_BYTES))
                    return

    def _whole_lines(self, data: bytes) -> Iterator[Added]:
        if not data:
            return
        self._idle = 0
        self._fingerprint = (self._fingerprint + data)[-_FINGERPRINT_BYTES:]
        held = self._pending + data.replace(b"\0", b"")
        cut = held.rfind(b"\n") + 1
        if len(held) - cut > _MAX_PENDING_BYTES:
            cut = len(held)
        self._pending = held[cut:]
        if cut:
            yield self._added(held[:cut])

    def _added(self, data: bytes) -> Added:
        begins, self._begins = self._begins, False
        return Added(data, begins)


def _opened(path: Path) -> int:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(None, "it is not a regular file")
    return file


def _unfit(head: bytes) -> str | None:
    """Why what begins so is no text that grows. A progress bar has returns and no ends of lines."""
    if not is_plain(head.replace(b"\r", b"\n")):
        return "it is compressed or in UTF-16; read it with kb ask -f"
    return "it looks binary" if is_binary(head) else None
