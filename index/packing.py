"""A database packed into one file, to be shipped, and to seed empty stores from.

The file is compressed, with a checksum. It holds neither a generation nor its vectors' index:
`Store.seed` makes those.
"""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing, suppress
from pathlib import Path

import zstandard

from index.snapshot import Snapshot

_COMPRESSION_LEVEL = 12
"""Zstandard level, 1 to 22. Vectors hardly shrink, so a higher one takes longer for nothing."""


def pack(snapshot: Snapshot) -> bytes:
    """Return the content of the file.

    Raises:
        StoreDamaged: the store is corrupt.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        snapshot.copy_to(connection)
        connection.execute(
            "DELETE FROM meta WHERE key IN ('generation', 'vectors', 'fingerprint', 'seed')"
        )
        connection.execute("VACUUM")
        database = connection.serialize()
    return zstandard.ZstdCompressor(_COMPRESSION_LEVEL, write_checksum=True).compress(database)


def checksum(path: Path) -> int | None:
    """Tell one packed file from another; None where it is missing."""
    with suppress(OSError):
        return zlib.crc32(path.read_bytes())
    return None


def unpack(path: Path) -> bytes | None:
    """Return the database in a packed file; None where it is missing or damaged."""
    with suppress(OSError, zstandard.ZstdError):
        return bytes(zstandard.ZstdDecompressor().decompress(path.read_bytes()))
    return None
