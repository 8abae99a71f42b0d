"""One file that carries an import to other machines. It holds the reports and their vectors, not
the tables: whoever reads it trusts no database of others, and a later version reads it too."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard

from index.private import FILE
from kb.backlog.store import BacklogStore, Filed
from kb.errors import KbError
from kb.files import cannot_write, check_new

_MAGIC = b"incident-kb backlog 1\n"
_SUFFIX = ".kbz"
"""The first bytes; what follows is packed."""
_MAX_LINE_BYTES = 1 << 20
"""Of a report; none is as long."""
_REPORTS_PER_BATCH = 400


class _Head(msgspec.Struct, frozen=True):
    encoder: str | None


class _Row(msgspec.Struct, frozen=True):
    filed: Filed
    vector: bytes | None


def write_bundle(store: BacklogStore, path: Path) -> int:
    """Write all reports of an import; give their number.

    Raises:
        OutputError: the file exists, or cannot be written.
    """
    check_new(path)
    try:
        with open(path, "xb", opener=_private) as file:
            try:
                return _write(store, file)
            except BaseException:  # a signal too: half a bundle is none
                path.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise cannot_write(path, error) from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE)


def _write(store: BacklogStore, file: BinaryIO) -> int:
    count = 0
    with zstandard.ZstdCompressor(9, write_checksum=True).stream_writer(file, closefd=False) as out:
        file.write(_MAGIC)
        out.write(msgspec.json.encode(_Head(store.encoder())) + b"\n")
        for filed, vector in store.everything():
            out.write(msgspec.json.encode(_Row(filed, vector)) + b"\n")
            count += 1
    file.flush()
    return count


def is_bundle(path: Path) -> bool:
    """Whether a file begins as `write_bundle` begins it, or is called a bundle: one whose beginning
    is damaged is no text either."""
    if not path.is_file():
        return False
    if path.suffix == _SUFFIX:
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_bundle(path: Path, store: BacklogStore) -> int:
    """Take in all reports of a bundle, in batches that last; give their number.

    Raises:
        KbError: it is damaged. What was read before stays.
    """
    count = 0
    try:
        with _lines(path) as lines:
            head = msgspec.json.decode(lines.readline(_MAX_LINE_BYTES), type=_Head)
            rows = _rows(lines)
            while batch := list(islice(rows, _REPORTS_PER_BATCH)):
                new = [row for row in batch if store.digest(row.filed.identity) != row.filed.digest]
                store.add([row.filed for row in new])
                if head.encoder:
                    store.add_small(head.encoder, [(row.filed.identity, row.vector) for row in new])
                count += len(batch)
    except (OSError, ValueError, zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise KbError(
            f"cannot read the bundle {path}: {error}; {count:,} reports were taken"
        ) from error
    return count


def _rows(lines: io.BufferedReader) -> Iterator[_Row]:
    while line := lines.readline(_MAX_LINE_BYTES):
        yield msgspec.json.decode(line, type=_Row)


def _lines(path: Path) -> io.BufferedReader:
    file = path.open("rb")
    if file.read(len(_MAGIC)) != _MAGIC:
        file.close()
        raise ValueError("it does not begin as one, or is of another version of kb")
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file, closefd=True))
