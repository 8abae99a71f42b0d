"""Reads what is added to one file, whatever happens to its name: each byte once.

Files are looked at, not waited for: most logs of a cluster lie on NFS or Lustre and are written by
another machine, of which inotify hears nothing. A look costs a `stat`.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import stat
import sys
from collections.abc import Iterable, Iterator
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
_OTHER_FILES = 128
"""Open files that are left for the index, the encoder and what is written."""
_PACKED = frozenset({".gz", ".zst", ".xz", ".bz2"})
_COPY = re.compile(
    r"(?P<log>.+?)(?:[.-](?:\d{1,4}|\d{4}-?\d\d-?\d\d[-T_:.\d]*|old|bak))?(?:\.(?:gz|zst|xz|bz2))?"
)
"""What logrotate and its like make of a name."""


class Added(msgspec.Struct, frozen=True):
    """What was written to a file since the last look: whole lines, as far as they have an end."""

    data: bytes
    begins: bool
    """Its first byte is that of a file: lines are counted from one."""


def allow_open_files() -> None:
    """As many as the system lets this process have: each file that is followed is held open, if
    it may be."""
    with suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def most_open_files() -> int:
    """How many files may be held open."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if allowed == resource.RLIM_INFINITY else allowed - _OTHER_FILES


def is_copy(path: Path) -> bool:
    """Whether a file is the rotated part of a log that lies beside it."""
    match = _COPY.fullmatch(path.name)
    log = match["log"] if match else path.name
    return log != path.name and path.with_name(log).is_file()


class Follower:
    """Follows one name, as `tail -F` does. Holds the file open, so that nothing of it is lost when
    it is renamed or removed; a parked one is found again if it was only renamed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: _OpenFile | None = None
        self._moves = False
        """The file lost its name or its content; another one comes next."""

    @property
    def is_open(self) -> bool:
        """There is a file, as far as known."""
        return self._file is not None

    @property
    def behind(self) -> bool:
        """There is more to read."""
        return self._moves or (self._file is not None and self._file.behind)

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
        found, file = self._stat(), self._file
        self._moves = False
        if file is None:
            if found is not None:
                self._file = _OpenFile(self.path)
                yield from self._file.rest(most)
        elif not file.is_at(found):
            yield from self._end_of_old(file, most)
        elif not file.is_cut_off():
            yield from file.news(most)
        elif file.goes_on_in(_parts(self.path)):
            yield from self._end_of_old(file, most)
        else:
            yield from file.last_words()
            self._move_to(self.path)

    def last_words(self) -> Iterator[Added]:
        """The line that has no end so far."""
        if self._file is not None:
            yield from self._file.last_words()

    def park(self) -> None:
        """Close the file until it is read on."""
        if self._file is not None:
            self._file.close()

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
        """What the file still has that lost its name; then comes the part that was written after
        it, if there are others before the one that has the name now."""
        try:
            yield from file.rest(most)
        except OSError:
            self._move_to(self.path)
            raise
        if not file.behind:
            yield from file.last_words()
            newer = (part.path for part in _parts(self.path) if file.is_older_than(part))
            self._move_to(next(newer, self.path))

    def _move_to(self, path: Path) -> None:
        """Read the file under this name next, if there is one."""
        self.close()
        self._moves = True
        with suppress(OSError):
            self._file = _OpenFile(path)


class _OpenFile:
    """What was read of a file so far."""

    def __init__(self, path: Path) -> None:
        self.behind = False
        """There is more to read."""
        self.unfit: str | None = None
        """Why nothing is read of it."""
        self._path = path
        self._held: int | None = _opened(path)
        self._seen = os.fstat(self._number)
        self._offset = 0
        self._fingerprint = self._pending = b""
        self._begins = True
        self._idle = 0

    def close(self) -> None:
        """Give the system its file back; it is opened again to read on."""
        if self._held is not None:
            os.close(self._held)
        self._held = None

    @property
    def _number(self) -> int:
        """The descriptor of the file.

        Raises:
            OSError: it was closed, and is not found again.
        """
        if self._held is None:
            self._held = self._found_again()
        return self._held

    def _found_again(self) -> int:
        for path in (self._path, *(part.path for part in _parts(self._path))):
            with suppress(OSError):
                number = _opened(path)
                if os.path.samestat(self._seen, os.fstat(number)):
                    return number
                os.close(number)
        raise OSError(errno.ENOENT, "it was removed before its end was read")

    def is_at(self, found: os.stat_result | None) -> bool:
        """Whether it is what was found under a name."""
        return found is not None and os.path.samestat(self._seen, found)

    def is_cut_off(self) -> bool:
        """Whether it was truncated or written anew: what was read last stands there no more."""
        now = os.fstat(self._number)
        if (now.st_size, now.st_mtime_ns) == (self._seen.st_size, self._seen.st_mtime_ns):
            return False
        return now.st_size < self._offset or not self._continues(self._number)

    def goes_on_in(self, parts: Iterable[_Part]) -> bool:
        """Read on in the copy that was made of it, if one of these is it."""
        for part in parts if self._fingerprint else ():
            with suppress(OSError):
                number = _opened(part.path)
                if self._continues(number):
                    self.close()
                    self._held, self._seen = number, os.fstat(number)
                    return True
                os.close(number)
        return False

    def is_older_than(self, part: _Part) -> bool:
        """Whether the other was written after it."""
        return part.written > os.fstat(self._number).st_mtime_ns

    def news(self, most: int) -> Iterator[Added]:
        """What was added; the beginning of a line, if it stays one."""
        before, self._seen = self._seen, os.fstat(self._number)
        if self._seen.st_size == self._offset and self._seen.st_mtime_ns == before.st_mtime_ns:
            self._idle += 1
            self.behind = False
            if self._idle >= _IDLE_LOOKS:
                yield from self.last_words()
        else:
            yield from self.rest(most)

    def rest(self, most: int) -> Iterator[Added]:
        """What lies behind the last byte that was read."""
        if self.unfit:
            return
        self._skip_hole()
        data = os.pread(self._number, most, self._offset)
        if self._begins:
            self.unfit = _unfit(data.lstrip(b"\0")[:SNIFF_BYTES])
        self.behind = len(data) == most and not self.unfit
        self._offset += len(data)
        if not self.unfit:
            yield from self._whole_lines(data)

    def last_words(self) -> Iterator[Added]:
        """The line that has no end so far."""
        if self._pending:
            yield self._added(self._pending)
            self._pending = b""

    def _continues(self, number: int) -> bool:
        """Whether what was read last stands in a file."""
        start = self._offset - len(self._fingerprint)
        return os.pread(number, len(self._fingerprint), start) == self._fingerprint

    def _skip_hole(self) -> None:
        """Behind a log that was cut off, a writer may go on at its old place: zeros lie before.
        Those that the system holds on its disk are read, and left out of the lines."""
        if hasattr(os, "SEEK_DATA"):
            with suppress(OSError):  # nothing but a hole follows, or holes are not told
                self._offset = os.lseek(self._number, self._offset, os.SEEK_DATA)

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


class _Part(msgspec.Struct, frozen=True, order=True):
    """A rotated part of a log."""

    written: int
    """When it was, in nanoseconds."""
    path: Path


def _parts(path: Path) -> list[_Part]:
    """The rotated parts of a log that can be read on, the oldest first."""
    found = []
    for beside in path.parent.glob(f"{escape(path.name)}[.-]*"):
        with suppress(OSError):
            if _is_plain_copy(beside):
                found.append(_Part(beside.stat().st_mtime_ns, beside))
    return sorted(found)


def _is_plain_copy(path: Path) -> bool:
    return is_copy(path) and path.suffix not in _PACKED and path.is_file()


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
