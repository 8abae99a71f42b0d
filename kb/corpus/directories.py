"""Directories of records: those of the package, and a team's own on top."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import MappingProxyType
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

NOTHING_STORED: Mapping[str, str] = MappingProxyType({})


class RecordDirectories(Generic[Kept]):
    """An ordered list of directories; a later one overrides equal ids, whatever the kind, unless
    its file is broken. The first is the shipped one unless another is given. Here are records of
    every kind."""

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
        """The file of the last directory for each id, of any kind, in order of the ids."""
        return self.all_files_and_closed()[0]

    def all_files_and_closed(self) -> tuple[list[RecordFile], list[RecordFile]]:
        """As `all_files`, and in their form the folders that cannot be listed: to read one says
        so."""
        versions, closed = self._versions()
        return [files[-1] for files in versions], closed

    def _versions(self) -> tuple[list[list[RecordFile]], list[RecordFile]]:
        """The files of each id, those of the first directory first; and the folders that cannot be
        listed."""
        versions: dict[str, list[RecordFile]] = {}
        closed: list[RecordFile] = []
        for directory in self.directories:
            folders: list[Path] = []
            for path in markdown_files(directory, folders.append):
                versions.setdefault(path.stem, []).append(_file_of(directory, path))
            closed.extend(_file_of(directory, folder) for folder in folders)
        return [versions[key] for key in sorted(versions)], closed

    def in_use(self) -> tuple[list[RecordFile], list[Problem]]:
        """The files that belong here, in order of their ids, and what is wrong with those that
        cannot be used. One that overrides another is parsed: if it is broken, the other stays in
        use."""
        problems: list[Problem] = []
        return [file for file, _source in self._sources(problems)], problems

    def files(self) -> list[RecordFile]:
        """Those of `in_use`, whatever is wrong with others."""
        return self.in_use()[0]

    def ids(self) -> list[str]:
        """The ids of all records here; parses no file but those that override another."""
        return [file.path.stem for file in self.files()]

    def find(self, identifier: str) -> tuple[RecordFile | None, list[Problem]]:
        """The file of one record that is in use, and what is wrong with those that are not."""
        problems: list[Problem] = []
        for files in self._versions()[0]:
            if files[0].path.stem == identifier:
                found = self._version_in_use(files, problems)
                return next((file for file, _source in found), None), problems
        return None, problems

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
        for file, source in self._sources(content.problems, stored):
            try:
                if stored.get(file.path.stem) == digest(source):
                    content.unchanged.append(file.path.stem)
                else:
                    content.documents.append(file.document(source))
            except IncidentError as error:
                content.problems.extend(error.problems)
        return content

    def _sources(
        self, problems: list[Problem], stored: Mapping[str, str] = NOTHING_STORED
    ) -> Iterator[tuple[RecordFile, bytes]]:
        """The files that belong here, with their bytes."""
        versions, closed = self._versions()
        for files in chain(versions, ([folder] for folder in closed)):
            yield from self._version_in_use(files, problems, stored)

    def _version_in_use(
        self,
        files: Sequence[RecordFile],
        problems: list[Problem],
        stored: Mapping[str, str] = NOTHING_STORED,
    ) -> Iterator[tuple[RecordFile, bytes]]:
        """Of the files of one id, the last that is no broken one, with its bytes, if it belongs
        here. One that cannot be read is a problem of the incidents, because nobody knows what it
        is."""
        concerned = len(files) > 1 and any(self.holds(file.head()) for file in files)
        for file in reversed(files):
            try:
                source = file.source()
                if concerned and file is not files[0]:
                    _check_usable(file, source, stored)
            except IncidentError as error:
                if self.holds(file.head()):
                    problems.extend(error.problems)
            else:
                if self.holds(source):
                    yield file, source
                return

    def fingerprint(self) -> str:
        """Changes when any file of any kind is added, removed or written, with what else `digest`
        holds, and with the markers, whose scanner is kept with it; reads no file of them."""
        from kb.corpus.document import digest as document_digest
        from kb.rules import file_digest

        digest = hashlib.sha256(document_digest(b"").encode() + file_digest("markers"))
        for entry in sorted(chain(*map(_entries, self.directories)), key=lambda one: one.path):
            with suppress(OSError):  # it was just removed, or reading it will say what is wrong
                status = entry.stat()
                place = f"{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\0"
                digest.update(os.fsencode(place))
        return digest.hexdigest()


def _file_of(directory: Path, path: Path) -> RecordFile:
    return RecordFile(path, f"{directory.name}/{path.relative_to(directory)}")


def _check_usable(file: RecordFile, source: bytes, stored: Mapping[str, str]) -> None:
    """Raises:
    IncidentError: the file cannot be indexed. One that is stored could be.
    """
    from kb.corpus.document import digest

    if stored.get(file.path.stem) != digest(source):
        file.document(source)


class IncidentDirectories(RecordDirectories[Incident]):
    """The incidents of the directories."""

    @staticmethod
    def holds(source: bytes) -> bool:
        """Whether it is no guide."""
        return not is_guide(source)


class GuideDirectories(RecordDirectories[Guide]):
    """The checks and playbooks of the directories."""

    @staticmethod
    def holds(source: bytes) -> bool:
        """Whether it is a guide."""
        return is_guide(source)


def markdown_files(directory: Path, on_closed: OnClosed = ignore_closed) -> Iterator[Path]:
    """The record files below a directory, sorted. Skips README.md, hidden files and everything
    that is not a regular file (pipes, devices, broken links)."""
    yield from sorted(Path(entry.path) for entry in _entries(directory, on_closed))


def _entries(directory: Path, on_closed: OnClosed = ignore_closed) -> Iterator[os.DirEntry[str]]:
    named = (entry for entry in files_below(directory, on_closed) if entry.name.endswith(".md"))
    return (
        entry
        for entry in named
        if not entry.name.startswith(".") and entry.name != "README.md" and is_regular(entry)
    )
