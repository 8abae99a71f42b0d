"""Compressed streams, and what is left packed. A form is a row."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple, Protocol, cast

import zstandard

DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError, lzma.LZMAError)
"""What is raised where an archive is damaged or cut off."""
_MAX_MEMORY_BYTES = 1 << 28
"""That a frame of zstd or a stream of xz may ask for: what `zstd --long=28` packs."""
_PACKED_BYTES_AT_ONCE = 512
"""Read in one step: of zstd, even these few can expand to 16 MB."""


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes; none at the end."""


Read = Callable[[int], bytes]
"""Reads on; of a truncated file it gives all that is there."""


def unpacking(head: bytes, stream: Readable) -> Read:
    """What reads a stream, which begins with `head`, unpacked where it is packed."""
    form = next((form for form in _FORMS if head.startswith(form.marks)), None)
    return form.unpacking(stream) if form else stream.read


def is_packed(head: bytes) -> bool:
    """Whether what begins so is read unpacked."""
    return any(head.startswith(form.marks) for form in _FORMS)


def packed_as(head: bytes) -> str | None:
    """The form in which something is left packed: it is not read, or it was packed twice."""
    marks = [(form.name, form.marks) for form in _FORMS] + _NOT_READ
    return next((name for name, begin in marks if head.startswith(begin)), None)


def asks_for_too_much(error: Exception) -> str | None:
    """What to do where an archive asks for more memory than it gets; None for other damage."""
    asked = {"too much memory": "zstd -d --long=31", "Memory usage limit": "xz -d"}
    for sign, command in asked.items():
        if sign in str(error):
            most = _MAX_MEMORY_BYTES >> 20
            return f"it asks for more than {most} MB of memory; unpack it with `{command}`"
    return None


def _gzip(stream: Readable) -> Read:
    return gzip.GzipFile(fileobj=cast("IO[bytes]", stream)).read1


def _zstd(stream: Readable) -> Read:
    return _Zstd(stream).read


def _bzip2(stream: Readable) -> Read:
    return _Streams(stream, bz2.BZ2Decompressor).read


def _xz(stream: Readable) -> Read:
    return _Streams(stream, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MAX_MEMORY_BYTES)).read


class _Form(NamedTuple):
    """A way to compress one stream."""

    name: str
    marks: tuple[bytes, ...]
    """One of which it begins with."""
    unpacking: Callable[[Readable], Read]


_FORMS = (
    _Form("gzip", (b"\x1f\x8b",), _gzip),
    _Form(
        "zstd",
        # Of a frame, and of the sixteen kinds of frames to skip; pzstd begins with one (RFC 8878).
        (
            b"\x28\xb5\x2f\xfd",
            *(bytes([number]) + b"\x2a\x4d\x18" for number in range(0x50, 0x60)),
        ),
        _zstd,
    ),
    _Form("bzip2", tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)), _bzip2),
    _Form("xz", (b"\xfd7zXZ\0",), _xz),
)
_NOT_READ = [
    ("zip", (b"PK\x03\x04",)),
    ("7z", (b"7z\xbc\xaf\x27\x1c",)),
    ("lz4", (b"\x04\x22\x4d\x18",)),
    ("compress", (b"\x1f\x9d",)),
    ("rar", (b"Rar!\x1a\x07",)),
]
"""Forms, and what they begin with."""


class _Zstd:
    """Reads frame after frame, and tells where the last one is damaged or cut off."""

    def __init__(self, packed: Readable) -> None:
        self._parts = self._unpacked(packed)
        self._damage: Exception | None = None

    def read(self, size: int, /) -> bytes:
        """Return about `size` bytes: in front of any damage, all that there are.

        Raises:
            EOFError: the frame has no end.
            zstandard.ZstdError: it is damaged, or asks for too much memory.
        """
        if self._damage is not None:
            raise self._damage
        parts, length = [], 0
        try:
            for part in self._parts:
                parts.append(part)
                length += len(part)
                if length >= size:
                    break
        except DAMAGE as damage:
            if not parts:
                raise
            self._damage = damage
        return b"".join(parts)

    @staticmethod
    def _unpacked(packed: Readable) -> Iterator[bytes]:
        """What each step expands to, where that is anything."""
        unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_MEMORY_BYTES)
        frame, rest = None, b""
        while some := rest or packed.read(_PACKED_BYTES_AT_ONCE):
            frame = frame or unpacker.decompressobj()
            if part := frame.decompress(some):
                yield part
            frame, rest = (None, frame.unused_data) if frame.eof else (frame, b"")
        if frame is not None:
            raise EOFError("its end is missing")


class _Streams:
    """Reads stream after stream of bzip2 or xz."""

    def __init__(
        self, packed: Readable, make: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]
    ) -> None:
        self._packed = packed
        self._make = make
        self._unpacker = make()

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end.

        Raises:
            EOFError: the stream has no end, or is damaged.
            lzma.LZMAError: it is damaged, or asks for too much memory.
        """
        while True:
            some = b""
            if self._unpacker.eof:
                some = self._unpacker.unused_data or self._packed.read(_PACKED_BYTES_AT_ONCE)
                if not some:
                    return b""
                self._unpacker = self._make()
            elif self._unpacker.needs_input:
                some = self._packed.read(_PACKED_BYTES_AT_ONCE)
                if not some:
                    raise EOFError("its end is missing")
            if part := self._unpacked(some, size):
                return part

    def _unpacked(self, some: bytes, size: int) -> bytes:
        try:
            return self._unpacker.decompress(some, size)
        except OSError as error:  # so bzip2 tells damage
            raise EOFError(str(error)) from error
