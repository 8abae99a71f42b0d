"""Bytes, files and directories to a `Log`, read block by block whatever the size."""

from __future__ import annotations

import codecs
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from kb.containment import reason
from kb.errors import LogError
from kb.log.archive import Collected, has_name_of_archive, is_collected, read_archive
from kb.log.clean import clean_block, decode_path, strip_controls
from kb.log.exports import NumberedLine, is_export, unwrap
from kb.log.packed import (
    DAMAGE,
    Readable,
    asks_for_too_much,
    is_packed,
    packed_as,
    unpacking,
)
from kb.walk import OnClosed, files_below

if TYPE_CHECKING:
    from kb.log.extent import Extent

BLOCK_BYTES = 1 << 20
"""Lines are handed on in blocks of about this size; a longer line comes in pieces."""

SNIFF_BYTES = 4096
"""The beginning of a source, by which its encoding and compression are told."""

_ALWAYS_EXPANDED_BYTES = 1 << 28
_MAX_EXPANSION = 200
"""A compressed source is read up to 200 times its size, and up to 256 MB whatever its size is:
ordinary logs shrink to a tenth or a fiftieth, and a few kilobytes can be made to grow forever."""

_MAX_CONTROL_SHARE = 0.10
"""Share of control bytes above which a source is called binary."""
_CONTROL_BYTES = bytes(byte for byte in range(32) if byte not in b"\t\n\v\f\r\x1b")
"""What text hardly has: all control characters but white space and escapes."""
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


Check = Callable[[Path, Path], None]
"""Is told of a file and of the directory below which it was found, before it is opened."""


class Block(msgspec.Struct, frozen=True):
    """Some whole lines of one source, as clean UTF-8."""

    source: str | None
    """Name of the file, None for pasted or piped text."""
    first_line: int
    """Number of the first line, from 1."""
    line_count: int
    content: bytes | Extent
    """The text, or the place from which it is read where it is asked for."""
    numbers: tuple[int, ...] = ()
    """Of an excerpt, whose lines do not follow one another: the number of each."""

    @property
    def data(self) -> bytes:
        """The text; keep it rather than ask twice.

        Raises:
            LogError: it cannot be read once more.
        """
        return self.content if isinstance(self.content, bytes) else self.content.read()

    @property
    def size(self) -> int:
        """Of the text, in bytes."""
        return len(self.content)

    def number_of(self, place: int) -> int:
        """The number of a line by its place in the block, from 0."""
        return self.numbers[place] if self.numbers else self.first_line + place


class Source:
    """One stream of bytes, of the file `path` if it is one; the output of a check where it is
    `collected`. A part of a file begins at its line `first_line`.

    Once it is read, `binary` tells that it hardly was text, `loss` what of it could not be read,
    and `notice` what else the user should know about it.
    """

    def __init__(
        self,
        name: str | None,
        opener: Callable[[], AbstractContextManager[Readable]],
        *,
        one_of_many: bool = False,
        path: Path | None = None,
        collected: Collected | None = None,
        first_line: int = 1,
    ) -> None:
        self.name = name if name is None else strip_controls(decode_path(name))
        self.path = path
        self.collected = collected
        self.binary = False
        self.loss: str | None = None
        self.notice: str | None = None
        self._title = self.name or "standard input"
        self._opener = opener
        self._one_of_many = one_of_many
        self._first_line = first_line

    def blocks(self) -> Iterator[Block]:
        """Yield the source's lines. Of many files, one that cannot be read is a loss.

        Raises:
            LogError: it cannot be opened or read.
        """
        with self._reading(), self._opener() as raw:
            blocks = split(self._decoded(raw), self.name, self._first_line)
            yield from _unwrapped(block for _raw, block in blocks)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            failure = (
                error if isinstance(error, LogError) else LogError(self._title, _reason(error))
            )
            if not self._one_of_many:
                raise failure from error
            self.loss = str(failure)

    def watched(self, check: Callable[[], None]) -> Source:
        """The same source; `check` is called before each read and stops it by an exception."""

        @contextmanager
        def opener() -> Iterator[Readable]:
            with self._opener() as raw:
                yield _Watched(raw, check)

        source = Source(
            self.name,
            opener,
            one_of_many=self._one_of_many,
            path=self.path,
            collected=self.collected,
            first_line=self._first_line,
        )
        source.notice = self.notice
        return source

    def read_bytes(self, most: int) -> bytes:
        """The first `most` bytes as they are; none where one of many files cannot be read.

        Raises:
            LogError: it cannot be opened or read.
        """
        with self._reading(), self._opener() as raw:
            return _read_some(raw, most)
        return b""

    def _decoded(self, raw: Readable) -> Iterator[bytes]:
        """Decompress and convert to UTF-8. What can be read of a damaged file is read."""
        raw = _EndingOnce(raw)
        head = _read_some(raw, SNIFF_BYTES)
        chunks = self._chunks(_Rejoined(head, raw))
        first = next(chunks, b"")
        encoding = _encoding(first[:SNIFF_BYTES])
        self.binary = encoding is None and _looks_binary(first[:SNIFF_BYTES])
        if form := packed_as(first):
            self.notice = f"{self._title} is packed as {form}, and is not read; unpack it first"
        returns = _ends_in_returns(first)
        decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
        for chunk in _chain(first, chunks):
            data = decoder.decode(chunk).encode() if decoder else chunk
            yield data.replace(b"\r", b"\n") if returns else data

    def _chunks(self, packed: _Rejoined) -> Iterator[bytes]:
        read, total = unpacking(packed.head, packed), 0
        try:
            while chunk := read(BLOCK_BYTES):
                yield chunk
                total += len(chunk)
                if total > max(_ALWAYS_EXPANDED_BYTES, _MAX_EXPANSION * packed.given):
                    self.loss = (
                        f"{self._title} expands to more than {_MAX_EXPANSION}"
                        f" times its size; only the first {total >> 20:,} MB were read"
                    )
                    return
        except DAMAGE as error:
            if not total:
                raise
            self.loss = f"{self._title} is damaged; read up to there: {error}"


class Log:
    """What a diagnosis is made of: one or several sources."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = tuple(sources)

    @classmethod
    def from_text(cls, text: str) -> Log:
        """A pasted or typed text."""
        return cls.from_bytes(text.encode("utf-8", "surrogatepass"))

    @classmethod
    def from_bytes(cls, data: bytes, name: str | None = None) -> Log:
        """Text in any encoding that is recognised, perhaps compressed."""
        return cls([Source(name, lambda: io.BytesIO(data))])

    @classmethod
    def from_stream(cls, stream: Readable) -> Log:
        """A pipe or a terminal; it can be read once."""
        # A buffer meets the end of what was typed, and does not say so until it meets another.
        raw = stream.raw if isinstance(stream, io.BufferedReader) else stream
        return cls([Source(None, lambda: nullcontext(raw))])

    @classmethod
    def from_paths(
        cls, paths: Iterable[Path], check: Check = lambda _file, _directory: None
    ) -> Log:
        """Files, and all files below directories, named relative to the directory. A file below a
        directory is a loss where `check` raises an error.

        Raises:
            LogError: a path does not exist, or is a device or directory that cannot be read.
        """
        return cls(source for path in paths for source in _sources(path, check))

    def blocks(self) -> Iterator[Block]:
        """Yield the lines of all sources, one source after the other."""
        for source in self.sources:
            yield from source.blocks()

    @property
    def losses(self) -> list[str]:
        """What could not be read; complete once all else is."""
        return [source.loss for source in self.sources if source.loss]

    @property
    def notices(self) -> list[str]:
        """What the user should know about the input, the losses first; complete once it is read."""
        found = self.losses
        found += [source.notice for source in self.sources if source.notice]
        found += [
            f"{source.name or 'standard input'} looks binary; only its readable text was used"
            for source in self.sources
            if source.binary
        ]
        return found


def _sources(path: Path, check: Check) -> Iterator[Source]:
    try:
        found = path.stat()
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error
    except ValueError as error:  # of a file of names: no argument holds NUL
        raise LogError(path, "no file has such a name") from error
    mode, device = found.st_mode, found.st_dev
    if stat.S_ISDIR(mode):
        yield from _sources_below(path, check)
    elif device in _kernel_devices():
        raise LogError(path, "a kernel file may never end; copy its text to a regular file")
    elif stat.S_ISREG(mode):
        yield from _regular(path, path.name)
    elif stat.S_ISFIFO(mode):
        yield _file(path, path.name)
    else:
        raise LogError(path, "it is neither a file nor a directory")


def _sources_below(directory: Path, check: Check) -> Iterator[Source]:
    closed: list[Path] = []
    files = sorted(log_files(directory, closed.append))
    if directory in closed:
        raise LogError(directory, "the directory may not be listed; change its permissions")
    if not (files or closed):
        raise LogError(directory, "the directory contains no files")
    # To open a closed folder fails with the reason, as with a closed file.
    for path in (*files, *closed):
        name = str(path.relative_to(directory))
        try:
            check(path, directory)
        except LogError as error:
            yield Source(name, partial(_refuse, error), one_of_many=True)
        else:
            yield from _regular(path, name, one_of_many=True)


def log_files(directory: Path, on_closed: OnClosed) -> Iterator[Path]:
    """All files below a directory that end, without hidden folders."""
    return (Path(entry.path) for entry in files_below(directory, on_closed) if _is_log(entry))


def _is_log(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.stat().st_dev not in _kernel_devices()
    except OSError:
        return True  # what is wrong is told when it is opened


@cache
def _kernel_devices() -> frozenset[int]:
    """Where regular files may go on forever, or wait for the next line: those of Linux."""
    return frozenset(path.stat().st_dev for path in (Path("/proc"), Path("/sys")) if path.exists())


def _reason(error: Exception) -> str:
    if isinstance(error, DAMAGE):
        return asks_for_too_much(error) or f"it is damaged: {error}"
    return reason(error)


def _refuse(error: LogError) -> AbstractContextManager[Readable]:
    raise error


def _file(path: Path, name: str, *, one_of_many: bool = False) -> Source:
    return Source(name, lambda: path.open("rb"), one_of_many=one_of_many, path=path)


def _regular(path: Path, name: str, *, one_of_many: bool = False) -> Iterator[Source]:
    if is_collected(path):
        yield from _outputs(path)
    else:
        # A damaged archive of one host must not take those of others away.
        yield _file(path, name, one_of_many=one_of_many or has_name_of_archive(path))


def _outputs(path: Path) -> Iterator[Source]:
    """The outputs in an archive of `kb collect`; one that cannot be read is a notice."""
    try:
        archive = read_archive(path)
    except OSError:
        yield Source(path.name, partial(_output, path, ""), one_of_many=True)
        return
    notice = "; ".join(archive.notices) or None
    for name, collected in archive.origins.items():
        source = Source(name, partial(_output, path, name), one_of_many=True, collected=collected)
        source.notice, notice = notice, None
        yield source


def _output(path: Path, name: str) -> AbstractContextManager[Readable]:
    return io.BytesIO(read_archive(path).outputs[name])


def _unwrapped(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks as they are; of an export, what programs said in them."""
    for first in blocks:
        if is_export(first.data):
            said = unwrap(line for block in chain((first,), blocks) for line in _lines_of(block))
            yield from _regrouped(first.source, said)
        else:
            yield first
            yield from blocks


def _lines_of(block: Block) -> Iterator[NumberedLine]:
    lines = block.data.removesuffix(b"\n").split(b"\n")
    return ((block.number_of(place), line) for place, line in enumerate(lines))


def _regrouped(source: str | None, lines: Iterable[NumberedLine]) -> Iterator[Block]:
    """Blocks of lines that keep the numbers they have in their file."""
    numbers: list[int] = []
    data = bytearray()
    for number, line in lines:
        numbers.append(number)
        data += line + b"\n"
        if len(data) >= BLOCK_BYTES:
            yield _excerpt(source, numbers, data)
            numbers, data = [], bytearray()
    if numbers:
        yield _excerpt(source, numbers, data)


def _excerpt(source: str | None, numbers: Sequence[int], data: bytearray) -> Block:
    return Block(source, numbers[0], len(numbers), clean_block(bytes(data)), tuple(numbers))


def split(
    chunks: Iterable[bytes], name: str | None, first_line: int
) -> Iterator[tuple[bytes, Block]]:
    """Blocks of the lines of a source, each behind the bytes that it was made of."""
    line, rest = first_line, b""
    for chunk in chunks:
        if len(rest) + len(chunk) < BLOCK_BYTES:
            rest += chunk
            continue
        raw, rest = _cut(rest, chunk)
        count = _count_lines(raw)
        yield raw, Block(name, line, count, clean_block(raw))
        line += count
    if rest:
        count = _count_lines(rest) + (not rest.endswith(b"\n"))
        yield rest, Block(name, line, count, clean_block(rest))


def _cut(rest: bytes, chunk: bytes) -> tuple[bytes, bytes]:
    """Join and cut behind the last end of a line; without one, all is a piece of a line."""
    cut = chunk.rfind(b"\n") + 1
    if cut:
        return b"".join((rest, memoryview(chunk)[:cut])), chunk[cut:]
    data = rest + chunk
    cut = rest.rfind(b"\n") + 1 or len(data)
    return data[:cut], data[cut:]


def _count_lines(block: bytes) -> int:
    # Five times as fast as `bytes.count`, and this is a third of what reading a log takes.
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == 10))


def _encoding(head: bytes) -> str | None:
    """The encoding of text that is not plain UTF-8, by its mark or by its pattern of NUL bytes."""
    for mark, name in _BOMS:
        if head.startswith(mark):
            return name
    if len(head) >= 8:
        even, odd = head[0::2].count(0), head[1::2].count(0)
        if odd > 0.4 * len(head) / 2 and even < 0.05 * len(head):
            return "utf-16-le"
        if even > 0.4 * len(head) / 2 and odd < 0.05 * len(head):
            return "utf-16-be"
    return None


def is_plain(head: bytes) -> bool:
    """Whether the lines of what begins so lie in it as they are read.

    They do not where it is compressed, in UTF-16, or its lines end in a carriage return alone.
    """
    return (
        not is_packed(head)
        and _encoding(head) in (None, "utf-8-sig")
        and not _ends_in_returns(head)
    )


def is_binary(head: bytes) -> bool:
    """Whether what begins so is hardly text; of an archive nobody knows before it is read."""
    return not is_packed(head) and _encoding(head) is None and _looks_binary(head)


def _ends_in_returns(head: bytes) -> bool:
    return b"\r" in head and b"\n" not in head


def _looks_binary(head: bytes) -> bool:
    return len(head) - len(head.translate(None, _CONTROL_BYTES)) > _MAX_CONTROL_SHARE * len(head)


def _read_some(stream: Readable, size: int) -> bytes:
    """Read `size` bytes, or all there is: a pipe may give less at a time."""
    parts, missing = [], size
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class _EndingOnce:
    """A stream that ends when it ends for the first time: a terminal would go on to be read."""

    def __init__(self, raw: Readable) -> None:
        self._raw = raw
        self._has_ended = False

    def read(self, size: int = -1, /) -> bytes:
        data = b"" if self._has_ended else self._raw.read(size)
        self._has_ended = self._has_ended or not data
        return data


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


class _Watched:
    """A stream that asks before each read whether to go on."""

    def __init__(self, raw: Readable, check: Callable[[], None]) -> None:
        self._raw, self._check = raw, check

    def read(self, size: int = -1, /) -> bytes:
        self._check()
        return self._raw.read(size)


class _Rejoined:
    """A stream whose first bytes were read already. Counts the bytes that it has given."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self.head = head
        self.given = 0
        self._left, self._rest = head, rest

    def read(self, size: int = -1, /) -> bytes:
        part = self._first(size) if self._left else self._rest.read(size)
        self.given += len(part)
        return part

    def _first(self, size: int) -> bytes:
        cut = len(self._left) if size < 0 else size
        part, self._left = self._left[:cut], self._left[cut:]
        return part
