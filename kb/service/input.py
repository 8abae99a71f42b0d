"""What is asked about: a pasted text, files, a directory, or what was piped in."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from kb.errors import KbError, LogError, OutputError

if TYPE_CHECKING:
    from kb.log import Log, Source
    from kb.sessions import Session

MAX_PASTE_CHARACTERS = 1_000_000
"""A longer paste is kept in a file and shown in the log view: an editor would be slow with it."""
MAX_PASTE_LINES = 5_000
"""The same limit in lines."""
MAX_PASTE_LINE_CHARACTERS = 20_000
"""The same limit for one line: an editor that wraps a longer one does not keep up with typing."""

_OPEN_FILES = Path("/proc/self/fd")
"""Where Linux lets a process open again what it has open, whether it has a name or not."""
_READ_BYTES = 1 << 20
"""Of a pipe at a time."""
_MAX_TITLE_CHARACTERS = 60
"""Of a title, so that it fits on one line."""
_MAX_KEPT_CHARACTERS = 65_536
"""Of a text in a file, for the history, which keeps no longer ones."""


class UserInput(msgspec.Struct, frozen=True):
    """One thing to diagnose."""

    text: str = ""
    """What was typed or pasted."""
    paths: tuple[Path, ...] = ()
    """Files or directories that are asked about together with the text."""
    name: str = ""
    """Of the attachment: as the user named it, or what it was."""
    spooled: bool = False
    """The path is a file of our own: it holds what was pasted or piped in."""
    followed: bool = False
    """It is still being written: what is added is to be read, too."""

    def __bool__(self) -> bool:
        return bool(self.text.strip() or self.paths)

    @property
    def title(self) -> str:
        """One line that tells it from others."""
        from kb.log.clean import decode_path  # imports NumPy too

        first = next((line for line in self.text.splitlines() if line.strip()), "")
        return decode_path(self.name) or first.strip()[:_MAX_TITLE_CHARACTERS]

    @property
    def sources(self) -> tuple[Source, ...]:
        """All of it, to be read.

        Raises:
            LogError: a path does not exist or cannot be read.
        """
        from kb.log import Log, Source  # imports NumPy, which the first screen does not wait for

        typed = Log.from_text(self.text).sources if self.text.strip() else ()
        if self.spooled:
            (path,) = self.paths
            return (*typed, Source(None, lambda: path.open("rb"), path=path))
        return (*typed, *Log.from_paths(self.paths).sources)

    def open(self) -> Log:
        """All of it as one log, to be read.

        Raises:
            LogError: a path does not exist or cannot be read.
        """
        from kb.log import Log

        return Log(self.sources)

    def kept_text(self) -> str:
        """What the history keeps of the text: of what was pasted into a file, its beginning."""
        if not self.spooled:
            return self.text
        with self.paths[0].open(encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_KEPT_CHARACTERS)

    def kept_paths(self) -> tuple[str, ...]:
        """The files that can be opened again."""
        from kb.log.clean import decode_path

        paths = (decode_path(str(path.absolute())) for path in self.paths)
        return () if self.spooled else tuple(paths)


def is_large(text: str) -> bool:
    """Whether a paste is too much for an editor."""
    return (
        len(text) > MAX_PASTE_CHARACTERS
        or text.count("\n") > MAX_PASTE_LINES
        or max(map(len, text.split("\n"))) > MAX_PASTE_LINE_CHARACTERS
    )


def bounded_lines(
    stream: IO[bytes],
    most: int,
    instead_of: Callable[[bytes, bytes], str | None] = lambda _beginning, _end: None,
) -> Iterator[str | None]:
    """The lines without their ends, in bounded memory. For one of more bytes than `most`: what
    `instead_of` makes of its beginning and its end, which have at least a piece of `most`."""
    while line := stream.readline(most):
        if line.endswith(b"\n") or len(line) < most:
            yield line.decode("utf-8", "replace").rstrip("\r\n")
            continue
        beginning = before = line
        while line and not line.endswith(b"\n"):
            before, line = line, stream.readline(most)
        yield instead_of(beginning, before + line)


def attach(text: str) -> UserInput:
    """Keep a large paste in a file of its own.

    Raises:
        OutputError: the temporary directory cannot hold it.
    """
    path = _spooled([text.encode("utf-8", "surrogatepass")])
    return UserInput(paths=(path,), name="pasted log", spooled=True)


def asked_again(session: Session) -> tuple[UserInput, list[str]]:
    """What a case began with, as it is now, and what the user should know of it.

    Raises:
        OutputError: the temporary directory cannot hold what was pasted.
    """
    from kb.sessions import paths_again

    paths, notices = paths_again(session)
    name = ", ".join(map(str, paths))
    if not paths and is_large(session.text):
        return attach(session.text), notices
    return UserInput(session.text, tuple(paths), name), notices


def from_arguments(paths: Sequence[Path], follow: bool = False) -> UserInput:
    """What `kb tui PATH...` is asked about, or `cmd | kb tui`. `follow` a log that is still being
    written.

    Raises:
        KbError: there is no path to follow.
        LogError: a path does not exist or cannot be read, or there is no terminal to type at.
        OutputError: the temporary directory cannot hold what is piped in.
    """
    if follow and not paths:
        raise KbError("--follow needs the log or the directory: kb -f PATH")
    user_input = _named(paths, follow) if paths else _piped()
    if not sys.stdin.isatty():
        _read_keyboard()
    return user_input


def _named(paths: Sequence[Path], follow: bool) -> UserInput:
    name = ", ".join(map(str, paths))
    user_input = UserInput(paths=tuple(paths), name=name, followed=follow)
    _ = user_input.sources  # a wrong path is told before the screen opens
    return user_input


def _piped() -> UserInput:
    """The pipe, read to its end."""
    if sys.stdin.isatty():
        return UserInput()
    path = _spooled(iter(lambda: sys.stdin.buffer.read(_READ_BYTES), b""))
    return UserInput(paths=(path,), name="piped log", spooled=True)


def _read_keyboard() -> None:
    """Put the keyboard in the place of stdin."""
    try:
        keyboard = os.open("/dev/tty", os.O_RDONLY)
    except OSError as error:
        raise LogError("/dev/tty", "no terminal for keyboard input; use kb ask instead") from error
    os.dup2(keyboard, sys.stdin.fileno())
    os.close(keyboard)


def _spooled(parts: Iterable[bytes]) -> Path:
    """A file for what was pasted or piped in, with all secrets. On Linux no directory names it, so
    that it is gone when the app ends, even if it is killed."""
    nameless = _OPEN_FILES.is_dir()
    try:
        file = (  # open as long as the app, which is to read it again
            tempfile.TemporaryFile() if nameless else tempfile.NamedTemporaryFile(prefix="kb-")  # noqa: SIM115
        )
        for part in parts:
            file.write(part)
        file.flush()
    except OSError as error:
        raise OutputError(f"cannot keep the input: {error.strerror or error}") from error
    atexit.register(file.close)
    return _OPEN_FILES / str(file.fileno()) if nameless else Path(file.name)
