"""Runs the programs of a plan: no shell, no input, no terminal, and an end to time and output."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import threading
from contextlib import suppress
from time import monotonic

import msgspec

from kb.errors import RunError
from kb.log.clean import clean_block, strip_controls
from kb.run.plan import Plan

MAX_SECONDS = 30
"""Of all programs of a plan together: a check that takes longer is run by hand."""
MAX_BYTES = 200_000
"""Of the output, some thousand lines; what a program prints behind it is not waited for."""
_LOOK_SECONDS = 0.1
"""Between two looks at whether to stop."""
_CHUNK_BYTES = 1 << 16
_PLAIN = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "SYSTEMD_PAGER": "cat"}
"""No colours, and nobody who waits for a key."""


_RUNNING: set[subprocess.Popen[bytes]] = set()
"""Those to be ended with kb itself."""


class Output(msgspec.Struct, frozen=True):
    """What was printed, without control characters."""

    text: str
    """Each command behind `$ `, and what it printed below."""
    notes: tuple[str, ...] = ()
    """How it ended, where that is worth a word."""


class _Run:
    """One plan on its way."""

    def __init__(self, stop: threading.Event, seconds: float) -> None:
        self._stop = stop
        self._deadline = monotonic() + seconds
        self._left = MAX_BYTES
        self.notes: list[str] = []

    def printed(self, words: tuple[str, ...]) -> bytes:
        """What a program prints, until it ends or is ended."""
        try:
            process = subprocess.Popen(  # noqa: S603  no shell, and a person has seen it
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **_PLAIN},
            )
        except (OSError, ValueError) as error:
            why = (isinstance(error, OSError) and error.strerror) or error
            raise RunError(f"cannot run {words[0]} here: {why}") from error
        _RUNNING.add(process)
        try:
            return self._read(process)
        finally:
            _end(process)
            _RUNNING.discard(process)

    def _read(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None  # noqa: S101  for the type
        output, pipe = b"", process.stdout.fileno()
        while self._left and not self._must_stop():
            ready = select.select([pipe], [], [], _LOOK_SECONDS)[0]
            part = os.read(pipe, min(self._left, _CHUNK_BYTES)) if ready else b""
            output += part
            self._left -= len(part)
            if not part and (ready or _has_ended(process)):
                break
        if not self._left:
            self.notes.append(f"stopped after {MAX_BYTES:,} bytes of output")
        self._wait(process)
        return output

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """It has closed its output, which is not its end."""
        while self._left and not _has_ended(process) and not self._must_stop():
            self._stop.wait(_LOOK_SECONDS / 10)

    def _must_stop(self) -> bool:
        if self._stop.is_set():
            raise RunError("stopped")
        if monotonic() < self._deadline:
            return False
        note = "stopped because it took too long"
        if note not in self.notes:
            self.notes.append(note)
        return True


def execute(plan: Plan, stop: threading.Event, seconds: float = MAX_SECONDS) -> Output:
    """Run the programs one after the other, until one is stopped. Whatever they leave running in
    their group is killed.

    Raises:
        RunError: a program is not there, or `stop` was set.
    """
    run, texts = _Run(stop, seconds), []
    for words in plan.lines:
        printed = clean_block(run.printed(words)).decode("utf-8", "replace")
        texts.append(f"$ {shlex.join(words)}\n{strip_controls(printed)}".rstrip("\n"))
        if run.notes:
            break
    return Output("\n".join(texts), tuple(run.notes))


def end_all() -> None:
    """Kill what runs: kb ends, and does not wait for the threads that would do it."""
    for process in list(_RUNNING):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has; it is not waited for, so that its group keeps its number."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, options) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None  # noqa: S101  for the type
    process.stdout.close()
