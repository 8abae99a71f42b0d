"""Finds files below a directory, however deep they lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def files_below(directory: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the regular files below a directory, and links to such, without hidden folders.

    Links to directories are not followed, so there are no loops. A folder that cannot be listed is
    passed over. `os.walk` and `Path.glob` call themselves in Python 3.11, and fail where a path has
    a thousand levels.
    """
    pending = [os.fspath(directory)]
    while pending:
        for entry in _entries(pending.pop()):
            if _is_folder(entry):
                if not entry.name.startswith("."):
                    pending.append(entry.path)
            elif _is_regular(entry):
                yield entry


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_regular(entry: os.DirEntry[str]) -> bool:
    """Of a link, whether it leads to such a file; one that leads in a circle does not."""
    try:
        return entry.is_file()
    except OSError:
        return False
