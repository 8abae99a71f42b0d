"""What the process inherits from its terminal, made usable once at its start: the standard streams,
their encoding, the size of the terminal and the time zone; and how its threads load modules."""

from __future__ import annotations

import builtins
import codecs
import fcntl
import gc
import io
import json
import os
import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from kb.errors import KbError, LogError, OutputError

if TYPE_CHECKING:
    from typing import NoReturn

    from typing_extensions import Buffer

PLAIN = "kb.plain"
"""How stdout and stderr write a sign that their encoding lacks: as one of ASCII."""
AS_JSON = "kb.json"
"""The same in JSON: as an escape, so that the reader of the JSON loses nothing."""

_STAND_INS = {
    sign: plain
    for plain, signs in (
        ("#", "█▓▉▊▋▌▍▎▏▐▀▁▂▃▄▅▆▇"),
        ("-", "░▒‐‑‒–—―−─━┄┅┈┉╌╍═╴╶╸╺"),
        ("|", "│┃┆┇┊┋╎╏║╵╷╹╻"),
        ("+", "┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┣┫┳┻╋╔╗╚╝╠╣╦╩╬"),
        ("*", "•·∙‣▪●◐✓"),
        ("o", "○◦"),
        (">", "›»▸▶→⇒"),
        ("<", "‹«◂◀←⇐"),
        ("...", "…"),
        ("'", "‘’‚′"),
        ('"', "“”„″"),
        ("x", "×"),
        (" ", "\u00a0"),
    )
    for sign in signs
}
"""A readable sign of ASCII for each that kb or a record prints. Any other becomes `?`."""

_OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""New ones before the collector of cycles looks: a command keeps most of what it makes while it
loads, so the looks after each 700, which Python has, find nothing."""

_SIZE = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
"""Columns or lines that a terminal can have."""

_DAY_SECONDS = 24 * 60 * 60


def prepare() -> None:
    """Make usable what the caller handed on."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    _replace_unusable_streams()
    _write_any_text()
    _wait_for_slow_ends()
    _lose_what_stderr_cannot_take()
    _forget_odd_sizes()
    _forget_odd_time_zone()
    _keep_rights_of_the_user()
    _load_modules_in_turn()
    # OpenBLAS ends the process where it gets no threads. No matrix of kb is large enough for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _keep_rights_of_the_user() -> None:
    """A umask that takes them leaves directories that nobody can enter, and workers without a
    semaphore."""
    os.umask(os.umask(0o077) & 0o077)


def _load_modules_in_turn() -> None:
    """One thread after the other: where one loads a package that imports its own modules, and
    another begins with one of these, Python ends either import with a deadlock."""
    in_turn, load = threading.RLock(), builtins.__import__

    def load_in_turn(*arguments: Any, **named: Any) -> Any:
        with in_turn:
            return load(*arguments, **named)

    builtins.__import__ = load_in_turn
    # A process that is forked while another thread loads would wait for it in vain.
    os.register_at_fork(
        before=in_turn.acquire, after_in_parent=in_turn.release, after_in_child=in_turn.release
    )


def writable(text: str, lacking: str = PLAIN) -> str:
    """The text as the encoding of stdout has it; `lacking` names what is done where it lacks a
    sign."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, lacking).decode(encoding)


class _Refused(io.RawIOBase):
    """In the place of a stream that cannot be used: whoever does not need it goes on."""

    def __init__(self, error: KbError) -> None:
        self._error = error
        self._null = os.open(os.devnull, os.O_RDWR)

    def fileno(self) -> int:
        """Of the null device."""
        return self._null

    def readable(self) -> bool:
        """It can be asked."""
        return True

    def writable(self) -> bool:
        """It can be asked."""
        return True

    def readinto(self, _buffer: object) -> NoReturn:
        """Raise the error."""
        raise self._error

    def write(self, _data: object) -> NoReturn:
        """Raise the error."""
        raise self._error


class _Lossy(io.FileIO):
    """A file that takes what it can: a message that cannot be written is no failure."""

    def write(self, data: Buffer) -> int:
        """Write what can be written."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _replace_unusable_streams() -> None:
    """Replace a stream that the caller closed (`<&-`) or opened for the other direction: what needs
    it is an error, but for what stderr is told."""
    no_input = LogError("standard input", "it is closed, or not open for reading")
    no_output = OutputError("cannot write to stdout: it is closed, or not open for writing")
    for name, unfit, error in (
        ("stdin", os.O_WRONLY, no_input),
        ("stdout", os.O_RDONLY, no_output),
    ):
        stream = getattr(sys, name)
        if stream is None or fcntl.fcntl(stream, fcntl.F_GETFL) & os.O_ACCMODE == unfit:
            refused = io.TextIOWrapper(_Refused(error), "utf-8", write_through=True)  # type: ignore[type-var]
            setattr(sys, name, refused)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _write_any_text() -> None:
    """Whatever the encoding of the terminal is, no text is an error."""
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, PLAIN), (sys.stderr, PLAIN)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def _wait_for_slow_ends() -> None:
    """A caller may hand on a pipe that does not wait: for Python, nothing to read is then the end,
    and a full pipe is an error."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        os.set_blocking(stream.fileno(), True)


def _lose_what_stderr_cannot_take() -> None:
    """A message that is lost, because the disk is full or nobody reads it, changes neither the
    answer nor the exit code."""
    lossy = io.BufferedWriter(_Lossy(sys.stderr.fileno(), "w", closefd=False))
    sys.stderr = io.TextIOWrapper(lossy, sys.stderr.encoding, PLAIN, line_buffering=True)


def _forget_odd_sizes() -> None:
    """Libraries read a size as a number without asking whether it is one."""
    for name in ("COLUMNS", "LINES"):
        if not _SIZE.fullmatch(os.environ.get(name, "")):
            os.environ.pop(name, None)


def _forget_odd_time_zone() -> None:
    """`datetime` knows no zone that is a day or more away from UTC, and raises."""
    if abs(time.localtime().tm_gmtoff) >= _DAY_SECONDS:
        os.environ["TZ"] = "UTC"
        time.tzset()


def _plain(error: UnicodeError) -> tuple[str, int]:
    signs, end = _lacking(error)
    return "".join(_STAND_INS.get(sign, "?") for sign in signs), end


def _escaped(error: UnicodeError) -> tuple[str, int]:
    signs, end = _lacking(error)
    return json.dumps(signs)[1:-1], end


def _lacking(error: UnicodeError) -> tuple[str, int]:
    """The signs that cannot be encoded, and the place behind them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return error.object[error.start : error.end], error.end


codecs.register_error(PLAIN, _plain)
codecs.register_error(AS_JSON, _escaped)
