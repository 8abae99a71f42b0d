"""The JSONL file of a run: rows are appended as they arrive, so that a stopped run can resume."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import msgspec

from index.progress import Notify, silent_notify
from kb.classify.result import Result, ResultRow
from kb.containment import surviving
from kb.errors import DamagedError, OutputError
from kb.files import cannot_write, decode_json, write_whole
from kb.log.clean import escape_controls

_BEGIN = b'{"path":'
"""Of every row."""


class Journal:
    """A file of rows, open for appending. `results` are the rows that it already contains.

    A last line without a newline is incomplete, because the run was stopped; it is dropped.

    Raises:
        OutputError: it cannot be written, or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            whole, end, torn = (path.read_bytes() if path.exists() else b"").rpartition(b"\n")
            if not torn.startswith(_BEGIN[: len(torn)]):
                raise OutputError(f"cannot resume {path}: its last line is not a result")
            self.results = [Result.from_row(row) for row in _rows(whole, path)]
            self._file = path.open("ab")
        except OSError as error:
            raise cannot_write(path, error) from error
        self._file.truncate(len(whole + end))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, result: Result, notify: Notify = silent_notify) -> None:
        """Write a row and flush it to the operating system."""
        self._file.write(encode([result], notify))
        self._file.flush()

    def finish(self, results: Iterable[Result], notify: Notify = silent_notify) -> None:
        """Put all rows in their order, with their clusters."""
        write_whole(self._path, encode(results, notify))


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
        return list(_rows(path.read_bytes().removesuffix(b"\n"), path))
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error


def _rows(lines: bytes, path: Path) -> Iterator[ResultRow]:
    for number, line in enumerate(lines.split(b"\n") if lines else (), 1):
        try:
            yield decode_json(line, ResultRow)
        except DamagedError as error:
            raise OutputError(
                f"{path} is not a result file of kb classify: line {number}: {error}"
            ) from error
