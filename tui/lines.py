"""Files as lines: any line of a log of any size at once, in memory that does not grow with it.

The number of a line is the one that evidence carries: both count the line ends of the same text.
"""

from __future__ import annotations

import codecs
import os
import re
import tempfile
import threading
import time
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
from numpy.typing import NDArray

from kb.errors import LogError
from kb.log import Log
from kb.log.clean import collapse_progress
from kb.log.reader import SNIFF_BYTES, Source, is_plain
from tui.visible import visible

MAX_UNPACKED_BYTES = 256_000_000
"""Bytes of text that are unpacked from a compressed file, and shown."""

HEAD_BYTES = 12_288
"""Number of bytes shown from the start of a longer line; limits horizontal scrolling ..."""
TAIL_BYTES = 4_096
"""... and from its end, where a progress bar's line contains the text printed after the bar."""

_CHUNK_BYTES = 1 << 16
"""Bytes read to find one line, and counted as one."""
_CHUNKS_AT_ONCE = 64
"""Number of chunks counted by one call to numpy: 4 MB of memory."""
_BATCH_SECONDS = 0.05
"""Counting pauses this often, so that keys are answered."""
_NEWLINE = 10
_CUT_CHARACTER = re.compile(rb"\A[\x80-\xbf]{1,3}")

CHUNK_BYTES = _CHUNK_BYTES
"""A part of a log, as `Lines.passage` takes it out."""


class Passage(msgspec.Struct, frozen=True):
    """The lines that begin in some chunks, whole."""

    first: int
    """The number of the first."""
    data: bytes
    skipped: int
    """Bytes in front of them, which belong to a line that begins before."""
    ends: NDArray[np.int64]
    """Where lines end in the data."""


class Lines:
    """The lines of one source, by number from 1.

    Where lines begin is not remembered, only how many end before each 64 kB: a line is found by
    reading one such chunk, and the counts of 2 GB take 256 kB.

    The file is read with `pread`, not mapped: a log that is truncated while it is mapped ends the
    process with SIGBUS, whereas a read that comes short is a line that is no longer there.
    """

    def __init__(
        self, file: IO[bytes], filling: Iterator[int], source: Source, path: Path | None = None
    ) -> None:
        """`path` is that of the file, where it is the log itself and may grow."""
        self._file = file
        self._path = path
        self._close = weakref.finalize(self, file.close)
        self._filling = filling
        self._source = source
        self._name = source.name or "the text"
        self._notice: str | None = None
        self._size = 0
        self._ended = array("q", [0])
        self._counting = threading.Lock()
        self.line_count = 0
        """The lines known so far, the one that is being counted among them."""
        self.complete = False
        """Whether all lines are counted."""

    @classmethod
    def open(cls, path: Path) -> Lines:
        """The lines of a file, which may grow, shrink or vanish while it is shown.

        Raises:
            LogError: it cannot be read, or it is not a file.
        """
        if path.exists() and not path.is_file():
            raise LogError(path, "not a regular file")
        (source,) = Log.from_paths([path]).sources
        if not is_plain(source.read_bytes(SNIFF_BYTES)):
            return cls._unpacked(source)
        try:
            file = path.open("rb", buffering=0)
        except OSError as error:
            raise LogError(path, error.strerror or str(error)) from error
        return cls(file, iter([os.fstat(file.fileno()).st_size]), source, path)

    @classmethod
    def of(cls, source: Source) -> Lines:
        """The lines of one source of a log.

        Raises:
            LogError: it cannot be read.
        """
        return cls.open(source.path) if source.path else cls._unpacked(source)

    @classmethod
    def from_bytes(cls, data: bytes) -> Lines:
        """The lines of pasted or piped text, kept in a file without a name."""
        (source,) = Log.from_bytes(data).sources
        if not is_plain(data[:SNIFF_BYTES]):
            return cls._unpacked(source)
        return cls._stored(source, [data])

    @classmethod
    def from_text(cls, text: str) -> Lines:
        """The lines of pasted text."""
        return cls.from_bytes(text.encode("utf-8", "surrogatepass"))

    @classmethod
    def _unpacked(cls, source: Source) -> Lines:
        return cls._stored(source, (block.data for block in source.blocks()))

    @classmethod
    def _stored(cls, source: Source, parts: Iterable[bytes]) -> Lines:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  `close` closes it
        lines = cls(file, iter(()), source)
        lines._filling = lines._store(parts)
        return lines

    @property
    def notices(self) -> list[str]:
        """What the user should know about the source; grows while lines are counted."""
        return [notice for notice in (self._notice, self._source.loss) if notice]

    def count(self) -> Iterator[int]:
        """Count the lines, for a thread: yields how many are known after every 50 ms of work.

        It may be left and asked again, also by another thread: it goes on where it was.
        """
        while not self._file.closed:
            with self._counting:
                self._count_for(_BATCH_SECONDS)
            yield self.line_count
            if self.complete:
                return

    def line(self, number: int) -> str | None:
        """One line, fit to be shown; None if it is not counted yet or no longer in the file.

        Progress bars that redraw themselves are collapsed as they are in evidence. A line of any
        length costs the same: of a long one the beginning and the end are read, and between them
        stands how much is left out.
        """
        start = self._start(number)
        if start is None:
            return None
        head = self._read(start, HEAD_BYTES + TAIL_BYTES + 1)
        line, newline, _rest = head.partition(b"\n")
        if not head and start < self._size:
            return None
        if newline or len(head) <= HEAD_BYTES + TAIL_BYTES:
            return _shown(line)
        return self._long_line(start, number, head[:HEAD_BYTES])

    @property
    def chunk_count(self) -> int:
        """The chunks whose lines are known by number, the last one as far as there is one."""
        return len(self._ended) - (not self.complete)

    def chunk_of(self, number: int) -> int:
        """The chunk in which a line begins, or the one before it."""
        return max(0, bisect_left(self._ended, number - 1) - 1)

    def passage(self, chunk: int, count: int) -> Passage:
        """The lines that begin in `count` chunks. Of one that is longer than them, what lies in
        them and in the next is taken."""
        offset = chunk * _CHUNK_BYTES
        data = self._read(offset, count * _CHUNK_BYTES)
        first, skipped = self._ended[chunk] + 1, 0
        if offset and self._read(offset - 1, 1) != b"\n":
            skipped = data.find(b"\n") + 1 or len(data)
            first += 1
        if skipped < len(data) and not data.endswith(b"\n"):
            data += self._read(offset + len(data), _CHUNK_BYTES).partition(b"\n")[0]
        data = data[skipped:]
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
        return Passage(first, data, skipped, ends)

    def is_replaced(self) -> bool:
        """Whether the file was cut, or another has its name: these lines are not those of the file
        any more."""
        if self._path is None:
            return False
        try:
            known = os.fstat(self._file.fileno())
            return known.st_size < self._size or not os.path.samestat(known, self._path.stat())
        except (OSError, ValueError):  # it is gone, or about to be there again; `close` was called
            return False

    def grow(self) -> bool:
        """Whether the file has grown since its lines were counted; then `count` goes on."""
        if self._path is None or not self.complete:
            return False
        try:
            size = os.fstat(self._file.fileno()).st_size
        except (OSError, ValueError):
            return False
        with self._counting:
            if size > self._size:
                self._filling, self.complete = iter([size]), False
        return not self.complete

    def close(self) -> None:
        """Close the file now instead of waiting for garbage collection.

        A thread that still counts or reads lines then gets nothing.
        """
        with self._counting:
            self._close()

    def _long_line(self, start: int, number: int, head: bytes) -> str:
        following = self._start(number + 1)
        if following is None and not self.complete:
            return f"{_shown(head, cut=True)} [... rest not read yet]"
        end = self._size if following is None else following - 1
        left_out = end - start - HEAD_BYTES - TAIL_BYTES
        tail = _CUT_CHARACTER.sub(b"", self._read(end - TAIL_BYTES, TAIL_BYTES))
        return f"{_shown(head, cut=True)} [... {left_out:,} bytes are not shown ...] {_shown(tail)}"

    def _start(self, number: int) -> int | None:
        """Where a line begins: behind the end of the one before it."""
        if not 1 <= number <= self.line_count:
            return None
        if number == 1:
            return 0
        chunk = bisect_left(self._ended, number - 1) - 1
        data = np.frombuffer(self._read(chunk * _CHUNK_BYTES, _CHUNK_BYTES), np.uint8)
        ends = np.flatnonzero(data == _NEWLINE)
        place = number - 2 - self._ended[chunk]
        return chunk * _CHUNK_BYTES + int(ends[place]) + 1 if place < len(ends) else None

    def _count_for(self, seconds: float) -> None:
        """Do at least one unit of work, even if the time budget is used up."""
        until = time.monotonic() + seconds
        while not self.complete:
            self._count_on()
            if time.monotonic() > until:
                return

    def _count_on(self) -> None:
        counted = (len(self._ended) - 1) * _CHUNK_BYTES
        chunks = min((self._size - counted) // _CHUNK_BYTES, _CHUNKS_AT_ONCE)
        if chunks:
            self._count_chunks(counted, chunks)
        else:
            self._fill_or_finish(counted)

    def _count_chunks(self, offset: int, chunks: int) -> None:
        data = self._read(offset, chunks * _CHUNK_BYTES)
        if len(data) < chunks * _CHUNK_BYTES:  # the file has shrunk
            self._size = offset + len(data)
            return
        newlines = np.frombuffer(data, np.uint8).reshape(chunks, _CHUNK_BYTES) == _NEWLINE
        ended = self._ended[-1] + np.cumsum(np.count_nonzero(newlines, axis=1))
        self._ended.extend(ended.tolist())
        self.line_count = max(self.line_count, self._ended[-1] + 1)

    def _fill_or_finish(self, counted: int) -> None:
        size = next(self._filling, None)
        if size is not None:
            self._size, self.line_count = size, max(self.line_count, size > 0)
            return
        rest = self._read(counted, self._size - counted)
        self._size = counted + len(rest)
        has_open_line = bool(self._size) and self._read(self._size - 1, 1) != b"\n"
        self.line_count = self._ended[-1] + rest.count(b"\n") + has_open_line
        self.complete = True

    def _store(self, parts: Iterable[bytes]) -> Iterator[int]:
        """Write the text where its lines can be read in any order; yield how much there is."""
        size = 0
        try:
            for part in parts:
                size += self._file.write(part)
                yield size
                if size >= MAX_UNPACKED_BYTES:
                    self._notice = (
                        f"only the first {MAX_UNPACKED_BYTES // 10**6} MB of {self._name} are shown"
                    )
                    return
        except (LogError, OSError) as error:
            self._notice = f"{self._name} is damaged; only its readable part is shown: {error}"

    def _read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes; fewer, or none, of a file that is not what it was."""
        parts: list[bytes] = []
        try:
            while size and (part := os.pread(self._file.fileno(), size, offset)):
                parts.append(part)
                offset, size = offset + len(part), size - len(part)
        except (OSError, ValueError):  # a file server is gone; `close` was called
            return b""
        return b"".join(parts)


def _shown(line: bytes, *, cut: bool = False) -> str:
    """A line as text; of one that is cut, half a character at the end is dropped."""
    if b"\r" in line:
        line = collapse_progress(line)
    return visible(codecs.utf_8_decode(line, "backslashreplace", not cut)[0])
