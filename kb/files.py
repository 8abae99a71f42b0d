"""Writing files so that nothing is lost: whole or not at all, and never over another."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TextIO

from kb.errors import OutputError

_PRIVATE = 0o600


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Put a file in its place at once: whoever looks sees the old one or the new one. A `private`
    one only its owner can read.

    Raises:
        OutputError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.touch(mode=_PRIVATE if private else 0o666)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def write_new(path: Path, text: str) -> Path:
    """Write a file that did not exist, under this name or the next free one (`name-2.md`), and
    return where it lies. Directories above it are made.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _open_new(path) as file:
            file.write(text)
    except OSError as error:
        raise cannot_write(path, error) from error
    return Path(file.name)


def _open_new(path: Path) -> TextIO:
    for number in itertools.count(2):
        try:
            return path.open("x", encoding="utf-8")
        except FileExistsError:
            path = path.with_stem(f"{path.stem.removesuffix(f'-{number - 1}')}-{number}")
    raise AssertionError  # numbers do not end


def cannot_write(path: Path, error: OSError) -> OutputError:
    """The error of a file that the system refuses."""
    return OutputError(f"cannot write {path}: {error.strerror or error}")
