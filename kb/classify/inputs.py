"""Turns command-line arguments into units, and a unit into its log.

A unit is a path or a URL. With unit `file`, each file is a unit, however it was named. With unit
`job`, each argument and each hit of a pattern is one: `jobs/*` is many jobs, `jobs` is one.
"""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePath
from typing import Any, cast

from kb.containment import reason
from kb.errors import KbError, LogError, MissingExtraError
from kb.log import Log, Source
from kb.log.packed import Readable
from kb.log.reader import log_files
from kb.paths import expand_user
from kb.walk import entries_below


class Unit(StrEnum):
    """The unit of diagnosis."""

    FILE = "file"
    JOB = "job"


_NO_LOG = re.compile(
    r"(?:readme|licen[cs]e|makefile|dockerfile)(?:\.\w+)?"
    r"|.*\.(?:md|rst|html?|css|js|ipynb|py|pyc|sh|toml|ya?ml|cfg|ini|lock|png|jpe?g|svg|pdf"
    r"|pt|pth|ckpt|safetensors|npy|npz|parquet|whl|so)",
    re.IGNORECASE,
)
"""What lies beside logs and is none. Whoever means such a file names it."""
_ANY_DEPTH = "**"
"""The part of a pattern that stands for any number of folders."""
_BEGINNING_BYTES = 200
_DOCUMENT = re.compile(rb"\s*[\[{]\s*\n")
"""How a file of JSON begins that is one document; a log has an object in each line."""


def find_units(arguments: Iterable[str], unit: Unit, listed: Iterable[str] = ()) -> list[str]:
    """Every unit once, in order of path. A file of a list may be gone when it is its turn: a
    `listed` path that cannot be found is a unit, which nobody can read. Below a directory, what is
    no log by its name is left out.

    Raises:
        LogError: an argument matches no file.
        MissingExtraError: an argument is a URL and fsspec is not installed.
    """
    named = {path for argument in arguments for path in _expanded(argument, unit)}
    return _each_once(named.union(*(_listed(path, unit) for path in listed)))


def open_log(unit: str) -> Log:
    """The log of a unit: a file, or all files below a directory.

    Raises:
        LogError: it does not exist or cannot be read.
    """
    return _remote_log(unit) if _is_remote(unit) else Log.from_paths([Path(unit)])


def _each_once(paths: Iterable[str]) -> list[str]:
    """Of a path that is spelt in several ways (`a.log`, `./a.log`, `b/../a.log`), the shortest."""
    real = cache(_real)  # very many files may lie in one folder
    shortest_last = sorted(paths, key=lambda path: (-len(path), path))
    spelt = {path if _is_remote(path) else _place(path, real): path for path in shortest_last}
    return sorted(spelt.values())


def _place(path: str, real: Callable[[PurePath], PurePath]) -> PurePath:
    """Where a path lies. A link at its end is a name of its own."""
    spelt = PurePath(path)
    return real(spelt) if spelt.name in ("", "..") else real(spelt.parent) / spelt.name


def _real(folder: PurePath) -> PurePath:
    try:
        return Path(folder).resolve()
    except (OSError, RuntimeError, ValueError):  # no working directory, a loop, no name of a file
        return folder


def _listed(path: str, unit: Unit) -> list[str]:
    try:
        return list(_expanded(path, unit))
    except LogError:
        return [path]


def _expanded(argument: str, unit: Unit) -> Iterator[str]:
    hits = _hits(argument)
    if not hits:
        raise LogError(argument, "no such file or directory")
    for hit in hits:
        if unit is Unit.FILE:
            yield from _files_below(hit)
        elif hit == argument or not _lies_beside_jobs(hit):
            yield hit


def _is_remote(path: str) -> bool:
    return "://" in path


def _hits(argument: str) -> list[str]:
    """The argument itself, or the paths that match it as a pattern."""
    if _is_remote(argument):
        with _remote(argument):
            system, path = _filesystem(argument)
            found = system.glob(path) if glob.has_magic(path) else [path] * system.exists(path)
            return [system.unstrip_protocol(hit) for hit in found]
    # Not pathlib: its patterns cannot be absolute, and it raises on names that are too long.
    if os.path.lexists(argument):
        return [argument]
    return _matching(str(expand_user(argument)))


def _matching(pattern: str) -> list[str]:
    """The paths that match a pattern, each once. It is matched part by part: taken as a whole,
    several `**` find each path in as many ways as they can share its folders."""
    found = [""]
    for before, part in itertools.pairwise(("", *PurePath(pattern).parts)):
        if part != _ANY_DEPTH:
            found = [hit for base in found for hit in _within(base, part)]
        elif before != part:
            starts = _each_directory_once(found)
            found = list(dict.fromkeys(hit for base in starts for hit in _at_any_depth(base)))
    directories = pattern.endswith(os.sep)
    return [hit for hit in found if hit and (not directories or os.path.isdir(hit))]  # noqa: PTH112


def _within(base: str, part: str) -> Iterator[str]:
    """The paths that one part of a pattern matches in a directory; "" is the current one."""
    if glob.has_magic(part):
        names = [name for name in _names(base) if part.startswith(".") or not name.startswith(".")]
        yield from (os.path.join(base, name) for name in fnmatch.filter(names, part))  # noqa: PTH118
    elif os.path.lexists(path := os.path.join(base, part)):  # noqa: PTH118
        yield path


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder or os.curdir)  # noqa: PTH208  Path raises on odd names
    except OSError:  # it is no folder, or a closed one
        return []


def _each_directory_once(paths: Iterable[str]) -> list[str]:
    """The directories among the paths, each under its first name: by links, one may be found under
    any number of them."""
    directories: dict[tuple[int, int], str] = {}
    for path in paths:
        with suppress(OSError):
            found = os.stat(path or os.curdir)  # noqa: PTH116
            if stat.S_ISDIR(found.st_mode):
                directories.setdefault((found.st_dev, found.st_ino), path)
    return list(directories.values())


def _at_any_depth(base: str) -> Iterator[str]:
    """A directory and all below it that is not hidden, as if the directory itself were named: links
    to others are not followed, because one that leads upwards has no end."""
    yield base
    here = "" if base else f"{os.curdir}{os.sep}"
    for entry in entries_below(Path(base)):
        if not entry.name.startswith("."):
            yield entry.path.removeprefix(here)


def _files_below(path: str) -> Iterator[str]:
    """All files below a directory, without hidden folders, and the folders that cannot be listed;
    for a file, the file itself."""
    if _is_remote(path):
        with _remote(path):
            system, inside = _filesystem(path)
            found = [system.unstrip_protocol(file) for file in system.find(inside)]
        yield from (file for file in found if not _NO_LOG.fullmatch(PurePath(file).name))
        return
    if not Path(path).is_dir():
        yield path
        return
    closed: list[Path] = []
    files = log_files(Path(path), closed.append)
    yield from (str(file) for file in files if not _is_no_log(file))
    yield from map(str, closed)


def _lies_beside_jobs(hit: str) -> bool:
    """Whether a pattern for the directories of jobs hit something else."""
    return not _is_remote(hit) and not Path(hit).is_dir() and _is_no_log(Path(hit))


def _is_no_log(file: Path) -> bool:
    if file.suffix.lower() != ".json":
        return _NO_LOG.fullmatch(file.name) is not None
    try:
        with file.open("rb") as opened:
            return _DOCUMENT.match(opened.read(_BEGINNING_BYTES)) is not None
    except OSError:
        return False  # whoever reads it says what is wrong


@contextmanager
def _remote(url: str) -> Iterator[None]:
    """Whatever the library of a URL raises, it cannot be read."""
    try:
        yield
    except KbError:
        raise
    except Exception as error:
        raise LogError(url, reason(error)) from error


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtraError("Remote paths need fsspec", "remote") from error
    try:
        found: tuple[Any, str] = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise LogError(url, str(error).partition("\n")[0]) from error
    return found


def _remote_log(url: str) -> Log:
    with _remote(url):
        system, path = _filesystem(url)
        files = sorted(system.find(path))
    if not files:
        raise LogError(url, "no such file or directory")
    if files == [path]:
        return Log([Source(path.rpartition("/")[2], _opener(system, path))])
    return Log(
        Source(file.removeprefix(path).lstrip("/"), _opener(system, file), one_of_many=True)
        for file in files
    )


def _opener(system: Any, path: str) -> Callable[[], AbstractContextManager[Readable]]:
    return lambda: cast("AbstractContextManager[Readable]", system.open(path, "rb"))
