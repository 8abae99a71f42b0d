"""All that is watched: finds the files, and says what is news."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from index.progress import Notify
from kb.classify import Unit
from kb.log import Log
from kb.log.reader import log_files
from kb.service.service import Service, result_of
from kb.verdict import Verdict
from kb.watch.case import Case, shown
from kb.watch.event import Event, is_news
from kb.watch.follow import is_copy

if TYPE_CHECKING:
    from kb.diagnosis import Diagnosis

_MAX_FILES = 10_000
"""Followed at once: each costs up to 20 kB of memory, and an open file as far as they go."""
_MAX_UNKNOWN_SAID = 1_000
"""Failures that nothing known fits: who did not read so many reads no more."""
_LOOKS_UNTIL_GONE = 10
"""At which a path is missing before that is said: for a moment, rotation leaves none."""


class Said(msgspec.Struct, frozen=True):
    """What is said once."""

    path: str
    verdict: Verdict
    incident: str | None
    kind: str


class Watcher:
    """Looks at growing logs. Each incident of a case is said once; one that was said as possible
    is said again when it is sure."""

    def __init__(self, paths: Sequence[Path], unit: Unit, service: Service, notify: Notify) -> None:
        self.said: set[Said] = set()
        self.bytes_read = 0
        self._paths = tuple(dict.fromkeys(paths))
        self._unit = unit
        self._service = service
        self._notify = notify
        self._cases: dict[Path, Case] = {}
        self._missing: dict[Path, int] = {}
        self._notices: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for case in self._cases.values():
            case.close()

    @property
    def behind(self) -> bool:
        """There is more to read than a look takes."""
        return any(case.behind for case in self._cases.values())

    @property
    def found_known(self) -> bool:
        """Whether an incident was said."""
        return any(said.verdict.is_found for said in self.said)

    def look(self) -> Iterator[Event]:
        """Read what is new, and say what it shows."""
        self._find()
        files = sum(case.files for case in self._cases.values())
        for case in list(self._cases.values()):
            self.bytes_read += case.look(self._service, files)
            yield from self._news(case, at_once=False)

    def finish(self) -> Iterator[Event]:
        """Say what would only be said later."""
        for case in self._cases.values():
            self.bytes_read += case.last_look(self._service)
            yield from self._news(case, at_once=True)

    def _find(self) -> None:
        """Follow what is there now."""
        found = {path: self._files(path) for path in self._paths}
        if self._unit is Unit.FILE:
            found = {file: {file: file.name} for files in found.values() for file in files}
        for path in dict.fromkeys([*self._cases, *found]):
            if path not in self._cases:
                self._cases[path] = Case(path, self._say_once)
            case = self._cases[path]
            case.follow(found.get(path, {}))
            if not case.files and self._unit is Unit.FILE:
                del self._cases[path]

    def _files(self, path: Path) -> dict[Path, str]:
        """The files of a path, with their names below it."""
        try:
            is_directory = stat.S_ISDIR(path.stat().st_mode)
        except OSError as error:
            self._miss(path, error)
            return {}
        self._missing[path] = 0
        if not is_directory:
            return {path: path.name}
        files = sorted(file for file in log_files(path, self._closed) if not is_copy(file))
        if len(files) > _MAX_FILES:
            self._say_once(
                f"{shown(path)}: only {_MAX_FILES:,} of {len(files):,} files are followed"
            )
        return {file: str(file.relative_to(path)) for file in files[:_MAX_FILES]}

    def _miss(self, path: Path, error: OSError) -> None:
        was_there = path in self._missing
        self._missing[path] = self._missing.get(path, 0) + 1
        if self._missing[path] == (_LOOKS_UNTIL_GONE if was_there else 1):
            why = error.strerror or str(error)
            self._notify(f"{shown(path)}: {why}; kb waits for it")

    def _closed(self, folder: Path) -> None:
        self._say_once(f"cannot list {shown(folder)}; what lies in it is not followed")

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._notices:
            self._notices.add(sentence)
            self._notify(sentence)

    def _news(self, case: Case, *, at_once: bool) -> Iterator[Event]:
        for log in case.logs(at_once=at_once):
            diagnosis = self._diagnosed(log)
            event = Event.of(case.name, diagnosis, of_several=case.files > 1)
            if is_news(diagnosis) and self._is_first(event):
                yield event
        end = case.end(at_once=at_once)
        if end is not None:
            event = Event.of(case.name, self._diagnosed(end), of_several=False)
            if event.verdict is Verdict.HEALTHY and self._is_first(event):
                yield event

    def _diagnosed(self, log: Log) -> Diagnosis:
        return result_of(self._service.diagnose(lambda: log, top=1))

    def _is_first(self, event: Event) -> bool:
        said = Said(event.path, event.verdict, event.incident, event.kind)
        sure = msgspec.structs.replace(said, verdict=Verdict.MATCH)
        if self.said & {said, sure} or (said.incident is None and self._is_full()):
            return False
        self.said.add(said)
        return True

    def _is_full(self) -> bool:
        full = len(self.said) >= _MAX_UNKNOWN_SAID
        if full:
            self._say_once(
                f"{_MAX_UNKNOWN_SAID:,} kinds of failures were said; of more that nothing known"
                " fits, none is"
            )
        return full
