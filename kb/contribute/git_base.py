"""The incidents before a change: at a git revision, or in another directory."""

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
    """The library with the incidents of `base`, for the duration of the context.

    If `base` is a directory, it replaces the last directory of the library. If it is a revision, it
    refers to the repository of the last directory; all directories of the library in that
    repository are taken from the revision, the others stay the same.

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
    """Write the directory at the revision to `target`; empty if it did not exist yet. A directory
    that git does not track, such as an installed package in a work tree, is returned unchanged."""
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
