"""Directories of incidents: those of the package, and a team's own on top."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec

from index.documents import Document
from kb.corpus.sources import SourceContent
from kb.errors import CorpusError, IncidentError
from kb.incident import Incident
from kb.paths import expand_user, packaged_incidents
from kb.problem import Problem
from kb.walk import OnClosed, files_below, ignore_closed


class IncidentFile(msgspec.Struct, frozen=True):
    """One file of the library and how it is called in messages."""

    path: Path
    name: str

    # A query that finds its index up to date reads no Markdown, so it is imported here.

    def source(self) -> bytes:
        """The bytes of the file.

        Raises:
            IncidentError: it cannot be read, or is too large.
        """
        from kb.markdown import read_source

        return read_source(self.path, self.name)

    def read(self, source: bytes | None = None) -> Incident:
        """Read the record, from the bytes where they are there already.

        Raises:
            IncidentError: the file is not a valid record, or cannot be read.
        """
        from kb.markdown import parse_source, unforeseen

        data = self.source() if source is None else source
        return unforeseen(
            self.name, "read this file", lambda: parse_source(data, self.name, self.path.stem)
        )

    def document(self, source: bytes) -> Document:
        """Read the record and make of it what is indexed.

        Raises:
            IncidentError: the file is not a valid record, or cannot be indexed.
        """
        from kb.corpus.document import to_document
        from kb.markdown import unforeseen

        incident = self.read(source)
        return unforeseen(self.name, "index this record", lambda: to_document(incident, source))


class IncidentDirectories:
    """An ordered list of directories; a later one overrides equal ids. The first is the shipped one
    unless another is given."""

    def __init__(self, extra: Iterable[Path | str] = (), first: Path | None = None) -> None:
        self.directories = [
            first or packaged_incidents(),
            *(expand_user(path) for path in extra),
        ]
        for directory in self.directories:
            if not directory.is_dir():
                raise CorpusError(
                    f"{directory} is not a directory; check --incidents,"
                    " KB_INCIDENTS and the configuration"
                )

    def files(self) -> list[IncidentFile]:
        """The files that count, in order of their ids; overridden ones are left out."""
        return self.files_and_closed()[0]

    def files_and_closed(self) -> tuple[list[IncidentFile], list[IncidentFile]]:
        """The files that count, and in their form the folders that cannot be listed: to read one
        says so."""
        chosen: dict[str, IncidentFile] = {}
        closed: list[IncidentFile] = []
        for directory in self.directories:
            folders: list[Path] = []
            for path in markdown_files(directory, folders.append):
                chosen[path.stem] = _file_of(directory, path)
            closed.extend(_file_of(directory, folder) for folder in folders)
        return [chosen[key] for key in sorted(chosen)], closed

    def ids(self) -> list[str]:
        """The ids of all incidents; reads no file."""
        return [file.path.stem for file in self.files()]

    def find(self, identifier: str) -> IncidentFile | None:
        """The file of one incident."""
        return next((file for file in self.files() if file.path.stem == identifier), None)

    def load(self) -> tuple[list[Incident], list[Problem]]:
        """Read every file. Return the valid records, and the problems of the invalid ones."""
        incidents: list[Incident] = []
        problems: list[Problem] = []
        for file in chain(*self.files_and_closed()):
            try:
                incidents.append(file.read())
            except IncidentError as error:
                problems.extend(error.problems)
        return incidents, problems

    def read(self, stored: Mapping[str, str]) -> SourceContent:
        """The records as documents; a file whose digest is stored is not parsed again."""
        # A completion of ids waits for none of this.
        from kb.corpus.document import digest

        content = SourceContent([], [], [])
        for file in chain(*self.files_and_closed()):
            try:
                source = file.source()
                if stored.get(file.path.stem) == digest(source):
                    content.unchanged.append(file.path.stem)
                else:
                    content.documents.append(file.document(source))
            except IncidentError as error:
                content.problems.extend(error.problems)
        return content

    def fingerprint(self) -> str:
        """Changes when any file is added, removed or written."""
        digest = hashlib.sha256()
        for file in self.files():
            with suppress(OSError):  # it was just removed, or reading it will say what is wrong
                status = file.path.stat()
                place = f"{file.path}\0{status.st_size}\0{status.st_mtime_ns}\0"
                digest.update(os.fsencode(place))
        return digest.hexdigest()


def _file_of(directory: Path, path: Path) -> IncidentFile:
    return IncidentFile(path, f"{directory.name}/{path.relative_to(directory)}")


def markdown_files(directory: Path, on_closed: OnClosed = ignore_closed) -> Iterator[Path]:
    """The incident files below a directory, sorted. Skips README.md, hidden files and everything
    that is not a regular file (pipes, devices, broken links)."""
    named = (entry for entry in files_below(directory, on_closed) if entry.name.endswith(".md"))
    shown = (
        entry for entry in named if not entry.name.startswith(".") and entry.name != "README.md"
    )
    yield from sorted(Path(entry.path) for entry in shown)
