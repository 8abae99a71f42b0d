"""Directories of records: those of the package, and a team's own on top."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Generic, TypeVar, cast

import msgspec

from index.documents import Document
from kb.corpus.sources import SourceContent
from kb.errors import CorpusError, IncidentError, short_name
from kb.guides import Guide, Record, is_guide
from kb.incident import Incident
from kb.paths import config_file, expand_user, packaged_incidents
from kb.problem import Problem
from kb.walk import OnClosed, files_below, ignore_closed, is_regular


class RecordFile(msgspec.Struct, frozen=True):
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

    def head(self) -> bytes:
        """The bytes of the file; none where it cannot be read, which is said by what reads it."""
        try:
            return self.source()
        except IncidentError:
            return b""

    def read(self, source: bytes | None = None) -> Record:
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
        from kb.corpus.guide_document import to_guide_document
        from kb.markdown import unforeseen

        record = self.read(source)
        return unforeseen(
            self.name,
            "index this record",
            lambda: (
                to_document(record, source)
                if isinstance(record, Incident)
                else to_guide_document(record, source)
            ),
        )


Kept = TypeVar("Kept", bound=Record)


class RecordDirectories(Generic[Kept]):
    """An ordered list of directories; a later one overrides equal ids, whatever the kind. The first
    is the shipped one unless another is given. Here are records of every kind."""

    @staticmethod
    def holds(source: bytes) -> bool:  # noqa: ARG004
        """Whether the file of a record belongs here."""
        return True

    def __init__(self, extra: Iterable[Path | str] = (), first: Path | None = None) -> None:
        self.directories = [
            first or packaged_incidents(),
            *(expand_user(path) for path in extra),
        ]
        for directory in self.directories:
            if not os.path.isdir(directory):  # noqa: PTH112  Path raises on a name that is too long
                raise CorpusError(
                    f"{short_name(directory)} is not a directory; check --incidents,"
                    f" KB_INCIDENTS and {config_file()}"
                )

    def all_files(self) -> list[RecordFile]:
        """The files of any kind that count, in order of their ids; overridden ones are left
        out."""
        return self.all_files_and_closed()[0]

    def all_files_and_closed(self) -> tuple[list[RecordFile], list[RecordFile]]:
        """The files of any kind that count, and in their form the folders that cannot be listed:
        to read one says so."""
        chosen: dict[str, RecordFile] = {}
        closed: list[RecordFile] = []
        for directory in self.directories:
            folders: list[Path] = []
            for path in markdown_files(directory, folders.append):
                chosen[path.stem] = _file_of(directory, path)
            closed.extend(_file_of(directory, folder) for folder in folders)
        return [chosen[key] for key in sorted(chosen)], closed

    def files(self) -> list[RecordFile]:
        """Those of `all_files` that belong here."""
        return self.all_files()

    def _held(self) -> list[RecordFile]:
        return [file for file in self.all_files() if self.holds(file.head())]

    def ids(self) -> list[str]:
        """The ids of all records here; parses no file."""
        return [file.path.stem for file in self.files()]

    def find(self, identifier: str) -> RecordFile | None:
        """The file of one record."""
        found = (file for file in self.all_files() if file.path.stem == identifier)
        return next((file for file in found if self.holds(file.head())), None)

    def load(self) -> tuple[list[Kept], list[Problem]]:
        """Read every file. Return the valid records, and the problems of the invalid ones."""
        records: list[Kept] = []
        problems: list[Problem] = []
        for file, source in self._sources(problems):
            try:
                records.append(cast(Kept, file.read(source)))
            except IncidentError as error:
                problems.extend(error.problems)
        return records, problems

    def read(self, stored: Mapping[str, str]) -> SourceContent:
        """The records as documents; a file whose digest is stored is not parsed again."""
        # A completion of ids waits for none of this.
        from kb.corpus.document import digest

        content = SourceContent([], [], [])
        for file, source in self._sources(content.problems):
            try:
                if stored.get(file.path.stem) == digest(source):
                    content.unchanged.append(file.path.stem)
                else:
                    content.documents.append(file.document(source))
            except IncidentError as error:
                content.problems.extend(error.problems)
        return content

    def _sources(self, problems: list[Problem]) -> Iterator[tuple[RecordFile, bytes]]:
        """The files that belong here, with their bytes. One that cannot be read is a problem of the
        incidents, because nobody knows what it is."""
        for file in chain(*self.all_files_and_closed()):
            try:
                source = file.source()
            except IncidentError as error:
                if self.holds(b""):
                    problems.extend(error.problems)
            else:
                if self.holds(source):
                    yield file, source

    def fingerprint(self) -> str:
        """Changes when any file of any kind is added, removed or written; reads none."""
        digest = hashlib.sha256()
        for file in self.all_files():
            with suppress(OSError):  # it was just removed, or reading it will say what is wrong
                status = file.path.stat()
                place = f"{file.path}\0{status.st_size}\0{status.st_mtime_ns}\0"
                digest.update(os.fsencode(place))
        return digest.hexdigest()


def _file_of(directory: Path, path: Path) -> RecordFile:
    return RecordFile(path, f"{directory.name}/{path.relative_to(directory)}")


class IncidentDirectories(RecordDirectories[Incident]):
    """The incidents of the directories."""

    @staticmethod
    def holds(source: bytes) -> bool:
        """Whether it is no guide."""
        return not is_guide(source)

    def files(self) -> list[RecordFile]:
        """Those of `all_files` that are incidents."""
        return self._held()


class GuideDirectories(RecordDirectories[Guide]):
    """The checks and playbooks of the directories."""

    @staticmethod
    def holds(source: bytes) -> bool:
        """Whether it is a guide."""
        return is_guide(source)

    def files(self) -> list[RecordFile]:
        """Those of `all_files` that are checks or playbooks."""
        return self._held()


def markdown_files(directory: Path, on_closed: OnClosed = ignore_closed) -> Iterator[Path]:
    """The record files below a directory, sorted. Skips README.md, hidden files and everything
    that is not a regular file (pipes, devices, broken links)."""
    named = (entry for entry in files_below(directory, on_closed) if entry.name.endswith(".md"))
    shown = (
        entry
        for entry in named
        if not entry.name.startswith(".") and entry.name != "README.md" and is_regular(entry)
    )
    yield from sorted(Path(entry.path) for entry in shown)
