"""The incidents before a change: at a git revision, or in another directory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kb.contribute.git import git_line, run_git
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
    if base and Path(base).is_dir():  # an empty name is not the working directory
        yield _library([*others, Path(base)])
        return
    top = git_line(last, "rev-parse", "--show-toplevel")
    commit = git_line(
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
                if git_line(directory, "rev-parse", "--show-toplevel") == top
                else directory
                for number, directory in enumerate(library.directories)
            ]
        )


def _library(directories: list[Path]) -> IncidentDirectories:
    return IncidentDirectories(directories[1:], first=directories[0])


def _checked_out(commit: str, directory: Path, target: Path) -> Path:
    """Write the Markdown of the directory at the revision to `target`; empty if it did not exist
    yet. A directory that git does not track, such as an installed package in a work tree, is
    returned unchanged."""
    if not git_line(directory, "ls-files", "--", "."):
        return directory
    target.mkdir()
    found = dict(_markdown_at(commit, directory))
    for name, content in zip(found, _contents(directory, list(found.values())), strict=True):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return target


def _markdown_at(commit: str, directory: Path) -> Iterator[tuple[str, str]]:
    """The name and the identifier of each Markdown file. Links are left out, and names that lead
    out of the directory, which git itself does not make."""
    for entry in git_line(directory, "ls-tree", "-r", "-z", commit, "./").split("\0"):
        described, _tab, name = entry.partition("\t")
        is_file = described.startswith("100")  # 120000 is a link, 160000 a submodule
        if is_file and name.endswith(".md") and not {"..", ""} & set(name.split("/")):
            yield name, described.split(" ")[2]


def _contents(directory: Path, identifiers: list[str]) -> Iterator[bytes]:
    """Files as they are stored: unlike a checkout or an archive, without the filters that the
    repository configures.

    Raises:
        CorpusError: the repository is a partial clone that lacks one.
    """
    asked = "".join(f"{identifier}\n" for identifier in identifiers)
    packed = io.BytesIO(run_git(directory, "cat-file", "--batch", given=asked.encode()))
    for identifier in identifiers:
        described = packed.readline().split()
        if len(described) != 3:  # otherwise: identifier, type, size
            raise CorpusError(f"git lacks a part of {directory} ({identifier}); run: git fetch")
        yield packed.read(int(described[2]))
        packed.readline()
