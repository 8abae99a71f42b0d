"""The incidents as they were: at a revision of git, or in another directory."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kb.corpus.directories import IncidentDirectories
from kb.errors import CorpusError


@contextmanager
def library_at(base: str, library: IncidentDirectories) -> Iterator[IncidentDirectories]:
    """The library with the incidents of `base`, as long as the context lasts.

    A directory stands in the place of the last one of the library. A revision is one of the
    repository that holds the last one; every directory of the library in this repository is taken
    as it was then, the others stay.

    Raises:
        CorpusError: `base` is neither.
    """
    *others, last = library.directories
    if Path(base).is_dir():
        yield _library([*others, Path(base)])
        return
    top = _git(last, "rev-parse", "--show-toplevel")
    commit = _git(
        last, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}"
    )
    if not top or not commit:
        raise CorpusError(
            f"`{base}` is neither a directory nor a git revision of {last}; pass one of the two"
        )
    with TemporaryDirectory(prefix="kb-diff-") as scratch:
        yield _library(
            [
                _checked_out(commit, directory, Path(scratch) / str(number))
                if _git(directory, "rev-parse", "--show-toplevel") == top
                else directory
                for number, directory in enumerate(library.directories)
            ]
        )


def _library(directories: list[Path]) -> IncidentDirectories:
    return IncidentDirectories(directories[1:], first=directories[0])


def _checked_out(commit: str, directory: Path, target: Path) -> Path:
    """The directory as it was, written to `target`; empty where it was not there yet. One that git
    does not keep, such as an installed package in a work tree, stays as it is."""
    if not _git(directory, "ls-files", "--", "."):
        return directory
    target.mkdir()
    if _git(directory, "ls-tree", commit, "./"):
        archive = _run(directory, "archive", "--format=tar", commit, ".")
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(target, filter="data")
    return target


def _git(directory: Path, *arguments: str) -> str:
    """What git prints, without the last newline; nothing when it fails or is not there."""
    return os.fsdecode(_run(directory, *arguments)).removesuffix("\n")


def _run(directory: Path, *arguments: str) -> bytes:
    try:
        run = subprocess.run(  # noqa: S603  arguments are never read as options
            ["git", "-C", str(directory), *arguments],  # noqa: S607  the user's own git
            capture_output=True,
            check=False,
        )
    except OSError:
        return b""
    return run.stdout if run.returncode == 0 else b""
