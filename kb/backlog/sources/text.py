"""Opens files of which nothing is known, and reads them as text in bounded memory."""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from kb.backlog.sources.model import UnreadableError, Why
from kb.log.reader import is_binary

HEAD_BYTES = 1 << 16
"""The beginning of a file, by which its encoding and format are told."""
MAX_VALUE_CHARACTERS = 1 << 25
"""Of one value, line, element or document: 32 million. A report has some thousands."""
_CHUNK_CHARACTERS = 1 << 20

_ARCHIVES = (b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf")
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


@contextmanager
def opened(path: Path) -> Iterator[tuple[str, TextIO]]:
    """The beginning of a file, and the whole of it as text.

    Raises:
        UnreadableError: it is no regular file, no text, or packed.
        OSError: it cannot be read.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnreadableError(Why.BROKEN, "it is not a regular file")
        head = file.read(HEAD_BYTES)
        if head.startswith(_ARCHIVES):
            raise UnreadableError(Why.NOT_TEXT, "it is packed; unpack it first")
        encoding = _encoding(head)
        if encoding is None:
            raise UnreadableError(Why.NOT_TEXT, "")
        file.seek(0)
        yield (
            head.decode(encoding, "replace"),
            io.TextIOWrapper(file, encoding, "replace", newline=None),
        )


def chunks(text: TextIO) -> Iterator[str]:
    """All of a text, in pieces, without NUL bytes."""
    while chunk := text.read(_CHUNK_CHARACTERS):
        yield chunk.replace("\0", "")


def lines(text: TextIO) -> Iterator[str]:
    """The lines of a text, with their ends.

    Raises:
        UnreadableError: one has no end in sight.
    """
    while line := text.readline(MAX_VALUE_CHARACTERS):
        if len(line) == MAX_VALUE_CHARACTERS:
            raise UnreadableError(Why.TOO_LARGE, "a line has more than 32 million characters")
        yield line.replace("\0", "")


def whole(text: TextIO) -> str:
    """All of a document.

    Raises:
        UnreadableError: it is larger than any document that people write.
    """
    all_of_it = text.read(MAX_VALUE_CHARACTERS)
    if len(all_of_it) == MAX_VALUE_CHARACTERS:
        raise UnreadableError(Why.TOO_LARGE, "a document has at most 32 million characters")
    return all_of_it.replace("\0", "")


def without_controls(text: str) -> str:
    """A text without the characters that XML forbids."""
    return _NO_XML.sub("", text)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _encoding(head: bytes) -> str | None:
    """UTF-8, UTF-16 or the encoding of Chinese Windows; None for what is hardly text."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if is_binary(head):
        return None
    complete = head if len(head) < HEAD_BYTES else head[: head.rfind(b"\n") + 1] or head[:-4]
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            complete.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return "utf-8-sig"
