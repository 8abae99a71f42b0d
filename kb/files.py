"""Writes files whole or not at all, and never overwrites one that others made. Reads back what kb
wrote."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from index.private import file_mode, make_directory
from kb.errors import DamagedError, OutputError

Stored = TypeVar("Stored")

_ONE_BYTE = b"\n"
"""A disk that is full has room for the name of a file, and for nothing in it."""
MAX_STORED_BYTES = 1 << 30
"""Of a file that is read at once, such as the results of two million logs."""


def write_whole(path: Path, data: bytes, *, shared: bool = False) -> None:
    """Replace a file atomically: readers see either the old or the new one. It keeps the
    permissions of the old file; a new one is for the user alone, unless it is `shared`.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        old = path.stat().st_mode if path.exists() else None
    except OSError as error:
        raise cannot_write(path, error) from error
    with _written_beside(path, data, shared=shared and old is None) as part:
        if old is not None:
            part.chmod(old)
        part.replace(path)


def read_regular(path: Path, most: int = MAX_STORED_BYTES) -> bytes:
    """The content of an ordinary file: a device may have no end, and a pipe no writer.

    Raises:
        OSError: it is something else, has more than `most` bytes, or cannot be read.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if found.st_size > most:
            raise _too_large(most)
        return file.read()


def read_given(path: Path, most: int = MAX_STORED_BYTES) -> bytes:
    """The content of a file that the user named in a command: an ordinary one, or a pipe such as
    `<(command)`, which is read to its end. One to which nobody writes is not waited for.

    Raises:
        OSError: it is something else, is an empty pipe, has more than `most` bytes, or cannot be
            read.
    """
    if not path.is_fifo():
        return read_regular(path, most)
    with open(path, "rb", opener=_without_waiting) as pipe:
        os.set_blocking(pipe.fileno(), True)
        data = pipe.read(most + 1)
    if not data:
        raise OSError(errno.EPIPE, "it is a pipe out of which nothing comes")
    if len(data) > most:
        raise _too_large(most)
    return data


def _too_large(most: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {most:,} bytes")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def decode_json(data: bytes, kind: type[Stored]) -> Stored:
    """What is stored as JSON, checked.

    Raises:
        DamagedError: it was cut off, rotted, or edited into something else.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, OverflowError, RecursionError) as error:  # msgspec's own, or of UTF-8
        raise DamagedError(str(error)) from error


def create(path: Path, data: bytes) -> None:
    """Write a file that did not exist, for the user alone. Directories above it are made.

    Raises:
        FileExistsError: something has this name, and be it a link to nowhere.
        OutputError: it cannot be written.
    """
    try:
        make_directory(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    with _written_beside(path, data) as part:
        _give_name(part, path)


def write_new(path: Path, data: bytes) -> Path:
    """Write a file that did not exist, under this name or the next free one (`name-2.md`), for the
    user alone, and return where it lies. Directories above it are made.

    Raises:
        OutputError: it cannot be written.
    """
    for free in free_names(path):
        with suppress(FileExistsError):
            create(free, data)
            return free
    raise AssertionError  # names do not end


def free_names(path: Path) -> Iterator[Path]:
    """This name and those that follow it, without the ones that something has."""
    following = (path.with_stem(f"{path.stem}-{number}") for number in itertools.count(2))
    return (name for name in itertools.chain([path], following) if not os.path.lexists(name))


def check_new(path: Path) -> None:
    """Find out before the work what would otherwise be told after it: whether a file can be made
    under this name.

    Raises:
        OutputError: something has this name, or nothing can be written there.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        above = next(directory for directory in path.parents if directory.is_dir())
        with _written_beside(above / path.name, _ONE_BYTE):
            return
    except OSError as error:
        raise cannot_write(path, error) from error
    raise OutputError(f"{path} exists; choose another name")


def cannot_write(path: Path, error: OSError) -> OutputError:
    """The error of a file that the system refuses."""
    return OutputError(f"cannot write {path}: {error.strerror or error}")


@contextmanager
def _written_beside(path: Path, data: bytes, *, shared: bool = False) -> Iterator[Path]:
    """The data in a file of its own in the same directory, for the duration of the context. Nobody
    can guess its name, and so lay a link there, and it is short, however long the other one is."""
    part = path.with_name(f".kb-{os.urandom(8).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        opened = os.open(part, flags, file_mode(shared=shared))
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(data)
        yield part
    except FileExistsError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            part.unlink()


def _give_name(part: Path, path: Path) -> None:
    """Let a file that is whole lie under a name as well that nothing has."""
    try:
        path.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:  # some file systems have no hard links
        path.touch(exist_ok=False)
        part.replace(path)
