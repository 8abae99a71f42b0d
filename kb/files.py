"""Writes files atomically, and never overwrites an existing file. Reads back what kb wrote."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO, TypeVar

import msgspec

from kb.errors import DamagedError, OutputError

Stored = TypeVar("Stored")

_PRIVATE = 0o600


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Replace a file atomically: readers see either the old or the new one. With `private`, only
    the owner can read it; otherwise it keeps the permissions of the old file.

    Raises:
        OutputError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.touch(mode=_PRIVATE if private else 0o666)
        part.write_bytes(data)
        if path.exists() and not private:
            part.chmod(path.stat().st_mode)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def decode_json(data: bytes, kind: type[Stored]) -> Stored:
    """What is stored as JSON, checked.

    Raises:
        DamagedError: it was cut off, rotted, or edited into something else.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, OverflowError, RecursionError) as error:  # msgspec's own, or of UTF-8
        raise DamagedError(str(error)) from error


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


def free_name(path: Path) -> Path:
    """This name, or the next one that no file has."""
    return next(free for free in _names(path) if not free.exists())


def _open_new(path: Path) -> TextIO:
    for free in _names(path):
        with suppress(FileExistsError):
            return free.open("x", encoding="utf-8")
    raise AssertionError  # names do not end


def _names(path: Path) -> Iterator[Path]:
    yield path
    for number in itertools.count(2):
        yield path.with_stem(f"{path.stem}-{number}")


def cannot_write(path: Path, error: OSError) -> OutputError:
    """The error of a file that the system refuses."""
    return OutputError(f"cannot write {path}: {error.strerror or error}")
