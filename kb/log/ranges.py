"""A large plain file in ranges, which several processes can read at once.

A range begins where a block begins for whoever reads the whole file, so the blocks are the same.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from kb.log import reader
from kb.log.exports import is_export
from kb.log.extent import Extent, has_changed
from kb.log.reader import SNIFF_BYTES, Block, is_binary, is_plain

RANGE_BYTES = 1 << 24
"""About so much is scanned at a time: some hundredths of a second of work, far more than it costs
to hand it over, and so little that what is found in it, be it in each word, is some megabytes."""


class Range(msgspec.Struct, frozen=True):
    """Some blocks of a plain file that follow one another, by offsets in bytes."""

    path: Path
    begin: int
    border: int
    """Where a read of the whole file ends first; each of the next ones takes a block's size."""
    end: int

    def blocks(self) -> Iterator[tuple[Block, Extent]]:
        """Its blocks, lines numbered from 1, and the place of each in the file.

        Raises:
            LogError: the file is shorter than it was.
            OSError: it cannot be read.
        """
        place = self.begin
        with self.path.open("rb") as file:
            for raw, block in reader.split(self._chunks(file), None, 1):
                is_clean = block.data is raw
                yield block, Extent(self.path, place, len(raw), block.size, is_clean)
                place += len(raw)

    def _chunks(self, file: IO[bytes]) -> Iterator[bytes]:
        """What whoever reads the whole file gets at a time."""
        place = file.seek(self.begin)
        while place < self.end:
            stop = self.border if place < self.border else self.end
            chunk = file.read(min(reader.BLOCK_BYTES, stop - place))
            if not chunk:
                raise has_changed(self.path)
            yield chunk
            place += len(chunk)


def can_be_cut(path: Path) -> bool:
    """Whether the lines of a file lie in it as they are read. They do not where it is compressed,
    an export of a platform, in another encoding (a byte order mark is one) or binary.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(min(SNIFF_BYTES, reader.BLOCK_BYTES))
    if head.startswith(codecs.BOM_UTF8) or not is_plain(head) or is_binary(head):
        return False
    beginning = Range(path, 0, SNIFF_BYTES, min(_size(path), SNIFF_BYTES + reader.BLOCK_BYTES))
    return not any(is_export(block.data) for block, _extent in beginning.blocks())


def cut(path: Path, range_bytes: int = RANGE_BYTES) -> Iterator[Range]:
    """The ranges of a file that can be cut, as large as it is now.

    Raises:
        OSError: it cannot be read.
    """
    size = _size(path)
    step = max(range_bytes // reader.BLOCK_BYTES, 1) * reader.BLOCK_BYTES
    begin, border = 0, SNIFF_BYTES
    with path.open("rb") as file:
        for end in range(SNIFF_BYTES + step, size, step):
            file.seek(end - reader.BLOCK_BYTES)
            rest = file.read(reader.BLOCK_BYTES).rpartition(b"\n")[2]
            if len(rest) < reader.BLOCK_BYTES:  # else a line is so long that it comes in pieces
                yield Range(path, begin, border, end - len(rest))
                begin, border = end - len(rest), end
    if begin < size:
        yield Range(path, begin, border, size)


def _size(path: Path) -> int:
    return path.stat().st_size
