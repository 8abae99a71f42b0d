"""Finds files below a directory, however deep they lie."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

OnClosed = Callable[[Path], None]
"""Is told of a folder that cannot be listed."""


def ignore_closed(_folder: Path) -> None:
    """For whoever looks for files alone."""


def files_below(directory: Path, on_closed: OnClosed = ignore_closed) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files below a directory, and links to such or to nothing: to open one of
    these says so. Hidden folders are left out, and hidden broken links, by which editors lock.

    Links to directories are not followed, so there are no loops. `on_closed` is told of a folder
    that cannot be listed, be it the first one.
    """
    return (entry for entry in entries_below(directory, on_closed) if not _is_folder(entry))


def entries_below(
    directory: Path, on_closed: OnClosed = ignore_closed
) -> Iterator[os.DirEntry[str]]:
    """Yield the folders below a directory as well, each before what is in it.

    `os.walk` and `Path.glob` call themselves in Python 3.11, and fail where a path has a thousand
    levels.
    """
    pending = [os.fspath(directory)]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as listed:
                entries = list(listed)
        except OSError:
            on_closed(Path(folder))
            continue
        for entry in entries:
            if _is_folder(entry):
                if not entry.name.startswith("."):
                    pending.append(entry.path)
                    yield entry
            elif is_regular(entry) or _is_broken(entry):
                yield entry


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def is_regular(entry: os.DirEntry[str]) -> bool:
    """Whether it is an ordinary file, or a link to one; a link that leads in a circle is not."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _is_broken(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and not os.path.exists(entry.path)  # noqa: PTH110  Path raises
