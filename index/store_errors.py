"""What the system says of a broken or full disk, in the terms of the store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from index.errors import (
    StoreDamaged,
    StoreError,
    StoreMissing,
    StoreReplaced,
    TooManyFiles,
    is_lack_of_files,
)


@contextmanager
def store_errors(where: str) -> Iterator[None]:
    """Raise the errors of SQLite and of the file system as those of the store at `where`.

    Raises:
        TooManyFiles: nothing is wrong with the store.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if "no such table: meta" in str(error):
            raise StoreMissing("no index has been built yet; run: kb index") from error
        if "unable to open" in str(error):
            _ask_for_a_file()
        if any(sign in str(error) for sign in ("no such table", "malformed", "UTF-8")):
            raise StoreDamaged(f"the index {where} is damaged: {error}") from error
        kind = StoreReplaced if "disk I/O error" in str(error) else StoreError
        raise kind(f"cannot use the index {where}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(f"the index {where} is damaged: {error}") from error
    except OSError as error:
        if is_lack_of_files(error):
            raise TooManyFiles from error
        raise StoreError(f"cannot use the index {where}: {error.strerror or error}") from error


def _ask_for_a_file() -> None:
    """SQLite does not say why it cannot open a file.

    Raises:
        TooManyFiles: no file can be opened.
    """
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if is_lack_of_files(error):
            raise TooManyFiles from error


def only_row(connection: sqlite3.Connection, statement: str, *values: object) -> tuple[Any, ...]:
    """The row that must be there.

    Raises:
        StoreDamaged: it is not.
    """
    row: tuple[Any, ...] | None = connection.execute(statement, values).fetchone()
    if row is None:
        raise StoreDamaged("the index is damaged: a row is missing")
    return row
