"""The last cases, on this machine only, so that one can be gone on with.

What is kept is what the user gave: the text, the names of the logs, the messages and the ticks.
Read again, they make the same case, with the records as they are by then. Each case is a file of
its own, which is written whole whenever something happens.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import msgspec
import zstandard

from index.private import FILE, make_directory
from index.progress import Notify
from kb.containment import contained
from kb.errors import KbError, OutputError, short_name
from kb.evidence.secrets import blank_secrets
from kb.files import read_regular, write_whole
from kb.log.clean import decode_path, replace_surrogates
from kb.log.reader import log_files
from kb.paths import state_directory
from kb.settings import Settings
from kb.verdict import Verdict
from kb.walk import ignore_closed

MAX_SESSIONS_KEPT = 50
"""Number of cases; older ones are forgotten."""
MAX_MESSAGES_KEPT = 200
"""Of a case: all of them are read again when it goes on, 50 ms each."""
MAX_CHARACTERS_KEPT = 1 << 20
"""Of the text and the messages of a case, so that the file stays quick to write."""
MAX_TEXT_CHARACTERS = 1 << 17
"""Of the text or one message: as much as is masked in half a second."""

_LOCK_TIMEOUT_SECONDS = 2
"""How long to wait for another process that writes; then the case is not kept."""
_IDENTIFIER_BYTES = 4
"""Of a random name: short enough to be typed."""
_MAX_FILE_BYTES = 1 << 22
"""Of a case, however it is packed."""
_MAX_TITLE_CHARACTERS = 70


class Session(msgspec.Struct, frozen=True):
    """A case, as the user's side of it."""

    id: str
    time: datetime
    """Of the last thing that happened, with its time zone."""
    text: str
    """What it began with, as typed or pasted; secrets are blank in it and in the messages."""
    paths: tuple[str, ...]
    """The logs that it began with."""
    stamps: tuple[str, ...] = ()
    """Of each log, what changes with its content."""
    messages: tuple[str, ...] = ()
    done: tuple[tuple[str, int], ...] = ()
    """Steps that are ticked: id of the incident, place of the step in its fix."""
    verdict: Verdict | None = None
    """As it stood last."""
    incident: str | None = None
    """The first match, as it stood last."""

    def __post_init__(self) -> None:
        """A time of no clock is damage, and cannot be shown in every zone."""
        self.time.astimezone()

    @classmethod
    def of(cls, text: str, paths: Sequence[Path], telling: Sequence[str] = ()) -> Self:
        """One that begins now. Of a long text, the beginning, the end and the lines that matter are
        kept."""
        names = tuple(decode_path(str(path.absolute())) for path in paths)
        stamps = tuple(map(_stamp, paths))
        return cls(os.urandom(_IDENTIFIER_BYTES).hex(), _now(), _kept(text, telling), names, stamps)

    def with_message(self, message: str) -> Self:
        """The same after one more message."""
        messages = (*self.messages, _kept(message))
        return msgspec.structs.replace(self, messages=messages, time=_now())

    def standing(
        self, verdict: Verdict, incident: str | None, done: frozenset[tuple[str, int]]
    ) -> Self:
        """The same as it stands now."""
        stands = msgspec.structs.replace(
            self, verdict=verdict, incident=incident, done=tuple(sorted(done))
        )
        return self if stands == self else msgspec.structs.replace(stands, time=_now())

    @property
    def title(self) -> str:
        """One line that tells it from others."""
        told = next((line for line in self.text.splitlines() if line.strip()), "")
        said = next(iter(self.messages), "")
        line = " ".join((told or ", ".join(self.paths) or said).split())
        return line[:_MAX_TITLE_CHARACTERS] + ("..." if len(line) > _MAX_TITLE_CHARACTERS else "")

    @property
    def changed_paths(self) -> tuple[str, ...]:
        """The logs that are not as they were."""
        pairs = zip(self.paths, self.stamps, strict=False)
        return tuple(path for path, stamp in pairs if _stamp(Path(path)) not in (stamp, ""))

    @property
    def is_empty(self) -> bool:
        """Nothing was said so far."""
        return not (self.text or self.paths or self.messages)

    @property
    def fits(self) -> bool:
        """Whether it is small enough to be kept."""
        characters = len(self.text) + sum(map(len, self.messages))
        return len(self.messages) <= MAX_MESSAGES_KEPT and characters <= MAX_CHARACTERS_KEPT


class Sessions:
    """The files of the last cases. Errors are reported with `notify`, each once, and never raised.

    With `history = false` in the settings there are none.
    """

    def __init__(self, settings: Settings, notify: Notify) -> None:
        self.is_kept = settings.history
        self.notices: list[str] = []
        """What was reported so far."""
        self._notify = notify
        self._age = timedelta(days=settings.keep_days)
        self._directory = cases_directory()
        self._names: dict[str, str] = {}
        """Where a case is kept that somebody else went on with too: under a name of its own."""
        self._seen: dict[str, bytes] = {}
        """The files as they were read or written here."""

    def all(self) -> list[Session]:
        """Those that are not too old, newest first. A damaged one is named and left out."""
        if not self.is_kept:
            return []
        found = [session for path in self._files() if (session := self._read(path))]
        found.sort(key=lambda session: session.time, reverse=True)
        return [session for session in found if _now() - session.time < self._age]

    def last(self) -> Session | None:
        """The newest one."""
        return next(iter(self.all()), None)

    def find(self, identifier: str) -> Session:
        """The one whose id is or begins so.

        Raises:
            KbError: there is none, or there are several.
        """
        found = [one for one in self.all() if one.id.startswith(identifier)]
        if len(found) != 1 or not identifier:
            many = "several cases begin with" if found and identifier else "there is no case"
            raise KbError(f"{many} {identifier or 'without a name'}; kb cases lists them")
        return found[0]

    def keep(self, session: Session) -> bool:
        """Keep it as it is now, and say whether that was done; one that became too large stays as
        it was."""
        if not self.is_kept or session.is_empty:
            return False
        if not session.fits:
            self._report("this case is too long to be kept: --resume knows it up to here")
            return False
        with self._reporting_errors(), self._locked():
            self._write(session)
            return True
        return False

    def forget(self, session: Session) -> None:
        """Remove it.

        Raises:
            OutputError: the system refuses.
        """
        _remove(self._path(session.id))

    def forget_all(self) -> int:
        """Remove all of them, those too that are damaged or old; give their number.

        Raises:
            OutputError: the system refuses.
        """
        files = self._files()
        for path in files:
            _remove(path)
        return len(files)

    def _write(self, session: Session) -> None:
        first = session.id not in self._seen
        name = self._names.get(session.id, session.id)
        if not first and self._content(self._path(name)) not in (self._seen[session.id], None):
            name = self._names[session.id] = os.urandom(_IDENTIFIER_BYTES).hex()
        stored = msgspec.json.encode(msgspec.structs.replace(session, id=name))
        data = zstandard.ZstdCompressor().compress(stored)
        if data != self._seen.get(session.id):
            write_whole(self._path(name), data)
            self._seen[session.id] = data
        if first:
            self._forget_old()

    def _forget_old(self) -> None:
        oldest = (_now() - self._age).timestamp()
        for number, path in enumerate(self._files()):
            if number >= MAX_SESSIONS_KEPT or path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Newest first."""
        with self._reporting_errors():
            written = [(path.stat().st_mtime_ns, path) for path in self._directory.glob("*.zst")]
            return [path for _, path in sorted(written, reverse=True)]
        return []

    def _read(self, path: Path) -> Session | None:
        def report(why: str) -> None:
            self._report(f"{why}; --resume leaves it out")

        with contained(f"the case in {path} is damaged", report):
            data = read_regular(path, _MAX_FILE_BYTES)
            stored = msgspec.json.decode(_unpacked(data), type=Session)
            session = msgspec.structs.replace(stored, id=path.stem)  # whatever the file says
            self._seen[session.id] = data
            return session
        return None

    def _content(self, path: Path) -> bytes | None:
        try:
            return read_regular(path, _MAX_FILE_BYTES)
        except FileNotFoundError:
            return None

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.zst"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock  # takes a while, and most cases are only read

        make_directory(self._directory)
        with FileLock(self._directory / ".lock", _LOCK_TIMEOUT_SECONDS, FILE):
            yield

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except (OutputError, OSError, NotImplementedError) as error:
            # The last one: a file system without locks. A lock that others hold is an OSError.
            self._report(f"cannot save the case: {error}")

    def _report(self, sentence: str) -> None:
        if sentence not in self.notices:
            self.notices.append(sentence)
            self._notify(sentence)


def cases_directory() -> Path:
    """Where the cases are."""
    return state_directory() / "cases"


def session_to_resume(sessions: Sessions, identifier: str) -> Session | None:
    """The case to go on with, by its id, or the last one; None where those that were kept are
    damaged.

    Raises:
        KbError: there is none.
    """
    if not sessions.is_kept:
        raise KbError("cases are not kept: the configuration has `history = false`")
    if identifier:
        return sessions.find(identifier)
    last = sessions.last()
    if last is None and not sessions.notices:
        raise KbError("there is no case to go on with; start one: kb chat TEXT")
    return last


def paths_again(session: Session) -> tuple[list[Path], list[str]]:
    """The logs of a case that can be read again, and what the user should know of them."""
    paths, notices = [], []
    changed = session.changed_paths
    for path in map(Path, session.paths):
        if why := _why_not_again(path):
            notices.append(f"{short_name(path)} {why}; the case goes on without it")
        else:
            paths.append(path)
            if str(path) in changed:
                notices.append(f"{short_name(path)} changed since; it is read as it is now")
    return paths, notices


def _why_not_again(path: Path) -> str | None:
    """Why the logs at a path cannot be read again; None where one of them can."""
    if not (path.is_file() or path.is_dir()):
        return "can be read only once" if path.exists() else "is gone"
    if not os.access(path, os.R_OK):
        return "cannot be read"
    logs = log_files(path, ignore_closed) if path.is_dir() else [path]
    if not any(os.access(log, os.R_OK) for log in logs):
        return "holds no log that can be read"
    return None


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot forget {path.stem}: {error.strerror}") from error


def _unpacked(data: bytes) -> bytes:
    unpacker = zstandard.ZstdDecompressor()
    return unpacker.decompress(data, max_output_size=_MAX_FILE_BYTES)


def _stamp(path: Path) -> str:
    """What changes with the content of a log, or of those in a directory; nothing of what is
    neither."""
    try:
        if path.is_file():
            return _state(path)
        if path.is_dir():
            logs = sorted(log_files(path, ignore_closed))
            states = "\n".join(f"{log} {_state(log)}" for log in logs)
            return hashlib.sha256(states.encode("utf-8", "surrogateescape")).hexdigest()
    except (OSError, ValueError):
        pass
    return ""


def _state(path: Path) -> str:
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _now() -> datetime:
    return datetime.now(UTC)


def _kept(text: str, telling: Sequence[str] = ()) -> str:
    """What UTF-8 can hold of it, without secrets, and shortened."""
    return blank_secrets(replace_surrogates(shortened(text, telling)))


def shortened(text: str, telling: Sequence[str] = ()) -> str:
    """A long text without its middle, but for some lines of it."""
    if len(text) <= MAX_TEXT_CHARACTERS:
        return text
    part = MAX_TEXT_CHARACTERS // 3
    head = text[: text.rfind("\n", 0, part) + 1 or part]
    end = text[text.find("\n", len(text) - part) + 1 or len(text) - part :]
    middle = "\n".join(telling)[:part]
    return f"{head}{middle}\n{end}"
