"""The incidents as they were: at a revision of git, or in another directory."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kb.errors import LibraryError
from kb.library import Library


@contextmanager
def library_at(base: str, library: Library) -> Iterator[Library]:
    """The library with the incidents of `base`, as long as the context lasts.

    A directory stands in the place of the last one of the library. Of a revision, every directory
    of the library that git keeps is taken as it was then; the others stay.

    Raises:
        LibraryError: `base` is neither, or git keeps none of the directories.
    """
    if Path(base).is_dir():
        yield _library([*library.directories[:-1], Path(base)])
        return
    with TemporaryDirectory(prefix="kb-diff-") as scratch:
        was = [
            _checked_out(base, directory, Path(scratch) / str(number))
            for number, directory in enumerate(library.directories)
        ]
        if not any(was):
            raise LibraryError(
                f"`{base}` is no directory, and no revision of a git repository with the incidents;"
                " name a directory of incidents, or add --incidents DIR"
            )
        yield _library([past or now for past, now in zip(was, library.directories, strict=True)])


def _library(directories: list[Path]) -> Library:
    return Library(directories[1:], first=directories[0])


def _checked_out(revision: str, directory: Path, target: Path) -> Path | None:
    """The directory as it was, written to `target`; None where git does not keep it or does not
    know the revision."""
    commit = _git(
        directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if commit is None or not (_git(directory, "ls-files", "--", ".")):
        return None
    name = commit.decode().strip()
    target.mkdir()
    if _git(directory, "ls-tree", name, "./"):
        archive = _git(directory, "archive", "--format=tar", name, ".")
        with tarfile.open(fileobj=io.BytesIO(archive or b"")) as files:
            files.extractall(target, filter="data")
    return target


def _git(directory: Path, *arguments: str) -> bytes | None:
    """What git prints; None when it fails or is not there."""
    try:
        run = subprocess.run(
            ["git", "-C", str(directory), *arguments],  # noqa: S607  the user's own git
            capture_output=True,
            check=False,
        )
    except OSError:
        return None
    return run.stdout if run.returncode == 0 else None
