"""Files and directories are made for the user alone, whatever the umask is: they hold the whole
text of private records. What is meant for all says so with `shared`; the umask still counts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FILE = 0o600
SHARED_FILE = 0o644
DIRECTORY = 0o700
SHARED_DIRECTORY = 0o755


def file_mode(*, shared: bool) -> int:
    """The permissions of a new file."""
    return SHARED_FILE if shared else FILE


def make_file(path: Path, *, shared: bool = False) -> None:
    """Make an empty file where there is none. What writes to it later keeps its permissions.

    A file that is there is not opened: closing it would drop the locks that SQLite of this process
    holds on it (https://www.sqlite.org/howtocorrupt.html, 2.2).

    Raises:
        OSError: it cannot be made.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file_mode(shared=shared)))


def make_directory(path: Path, *, shared: bool = False) -> None:
    """Make a directory, and those above it, where there are none.

    Raises:
        OSError: it cannot be made.
    """
    missing = [above for above in (path, *path.parents) if not above.exists()]
    for directory in reversed(missing):
        directory.mkdir(SHARED_DIRECTORY if shared else DIRECTORY, exist_ok=True)
    path.mkdir(exist_ok=True)  # refuses a file of this name


def close_directory(path: Path) -> None:
    """Close a directory of the user to all others, if it was made open.

    Raises:
        OSError: its permissions cannot be changed.
    """
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        path.chmod(DIRECTORY)
