"""The JSONL file of a run: rows are appended as they arrive, so that a stopped run can resume."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

import msgspec

from index.private import FILE
from index.progress import Notify, silent_notify
from kb.classify.result import Result, ResultRow
from kb.containment import surviving
from kb.errors import DamagedError, OutputError
from kb.files import (
    MAX_STORED_BYTES,
    cannot_write,
    decode_json,
    read_given,
    write_new,
    write_whole,
)
from kb.log.clean import escape_controls

_BEGIN = b'{"path":'
"""Of every row."""


class Journal:
    """A file of rows, open for appending, that no other run has. `results` are the rows that it
    already contains: with `resume` the file may exist, otherwise it must not. `is_empty` tells
    whether it has no row yet.

    A last line without a newline is incomplete, because the run was stopped; it is dropped. A file
    that gets no row is removed.

    Raises:
        OutputError: it cannot be written, another run has it, or it holds something else.
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.path = path
        try:
            self._file = _opened(path, resume)
        except FileExistsError as error:
            raise OutputError(f"{path} exists; choose another name") from error
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            self._lock()
            self.results = self._rows_so_far()
        except BaseException:
            self._file.close()
            raise
        self.is_empty = not self.results

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_empty and self._is_in_place():
            self.path.unlink()
        with suppress(OSError):  # of a row that did not fit on the disk; `add` has said so
            self._file.close()

    def add(self, result: Result, notify: Notify = silent_notify) -> None:
        """Write a row and flush it to the operating system.

        Raises:
            OutputError: it cannot be written.
        """
        try:
            self._file.write(encode([result], notify))
            self._file.flush()
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self.is_empty = False

    def finish(self, results: Iterable[Result], notify: Notify = silent_notify) -> Path:
        """Put all rows in their order, with their clusters. Return where they are: under the next
        free name if the file is gone and another lies in its place.

        Raises:
            OutputError: they cannot be written; the rows as they came are still there.
        """
        rows = encode(results, notify)
        if not self._is_in_place():
            return write_new(self.path, rows)
        write_whole(self.path, rows)
        return self.path

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_free = False
        except OSError:  # a file system without locks
            is_free = True
        else:
            is_free = self._is_in_place()  # or another run has just finished and replaced it
        if not is_free:
            raise OutputError(f"another run writes to {self.path}; choose another name")

    def _is_in_place(self) -> bool:
        """Whether the name is still that of the open file."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.lstat())
        except OSError:
            return False

    def _rows_so_far(self) -> list[Result]:
        if os.fstat(self._file.fileno()).st_size > MAX_STORED_BYTES:
            raise OutputError(f"cannot resume {self.path}: it is too large for a result file")
        self._file.seek(0)
        whole, end, torn = self._file.read().rpartition(b"\n")
        if not torn.startswith(_BEGIN[: len(torn)]):
            raise OutputError(f"cannot resume {self.path}: its last line is not a result")
        results = [Result.from_row(row) for row in _rows(whole, self.path)]
        self._file.truncate(len(whole + end))
        return results


def encode(results: Iterable[Result], notify: Notify = silent_notify) -> bytes:
    """Return results as JSON Lines. One that cannot be written is told and left out."""
    return b"".join(surviving(results, _line, lambda result: f"{result.path}: no row", notify))


def _line(result: Result) -> bytes:
    row = msgspec.json.encode(result.row()).decode()
    return f"{escape_controls(row)}\n".encode()


def read_rows(path: Path) -> list[ResultRow]:
    """The rows that a finished run wrote.

    Raises:
        OutputError: the file cannot be read, or holds something else.
    """
    try:
        return list(_rows(read_given(path).removesuffix(b"\n"), path))
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error


def _opened(path: Path, resume: bool) -> IO[bytes]:
    """The file at the very path: no link is followed."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | (0 if resume else os.O_EXCL)
    return os.fdopen(os.open(path, flags, FILE), "a+b")


def _rows(lines: bytes, path: Path) -> Iterator[ResultRow]:
    for number, line in enumerate(lines.split(b"\n") if lines else (), 1):
        try:
            yield decode_json(line, ResultRow)
        except DamagedError as error:
            raise OutputError(
                f"{path} is not a result file of kb classify:"
                f" line {number}: {escape_controls(str(error))}"
            ) from error
