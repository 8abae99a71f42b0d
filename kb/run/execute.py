"""Runs the programs of a plan: no shell, no input, no terminal, and an end to time and output."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import IO

import msgspec

from kb.errors import RunError
from kb.log.clean import clean_block, strip_controls
from kb.run.plan import Errors, Line, Plan, as_typed

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


Processes = Sequence[subprocess.Popen[bytes]]
"""Of one line."""


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

    def printed(self, line: Line) -> bytes:
        """What the programs of a line print, until they end or are ended."""
        processes: list[subprocess.Popen[bytes]] = []
        reading, writing = os.pipe()
        try:
            try:
                _start(line, writing, processes)
            finally:
                os.close(writing)
            return self._read(reading, processes)
        finally:
            for process in processes:
                _end(process)
            os.close(reading)

    def _read(self, pipe: int, processes: Processes) -> bytes:
        output = b""
        while self._left and not self._must_stop():
            ready = select.select([pipe], [], [], _LOOK_SECONDS)[0]
            part = os.read(pipe, min(self._left, _CHUNK_BYTES)) if ready else b""
            output += part
            self._left -= len(part)
            if not part and (ready or _have_ended(processes)):
                break
        if not self._left:
            self.notes.append(f"stopped after {MAX_BYTES:,} bytes of output")
        self._wait(processes)
        return output

    def _wait(self, processes: Processes) -> None:
        """They have closed their output, which is not their end."""
        while self._left and not _have_ended(processes) and not self._must_stop():
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
    for line in plan.lines:
        printed = clean_block(run.printed(line)).decode("utf-8", "replace")
        texts.append(f"$ {as_typed(line)}\n{strip_controls(printed)}".rstrip("\n"))
        if run.notes:
            break
    return Output("\n".join(texts), tuple(run.notes))


def end_all() -> None:
    """Kill what runs: kb ends, and does not wait for the threads that would do it."""
    for process in list(_RUNNING):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _start(line: Line, writing: int, processes: list[subprocess.Popen[bytes]]) -> None:
    """Start the programs of a line, and add each to the processes; what is to be seen goes to the
    pipe.

    Raises:
        RunError: a program is not there.
    """
    given: int | IO[bytes] = subprocess.DEVNULL
    errors = {
        Errors.SHOWN: writing,
        Errors.DROPPED: subprocess.DEVNULL,
        Errors.PIPED: subprocess.STDOUT,
    }
    for program in line:
        try:
            process = subprocess.Popen(  # noqa: S603  no shell, and a person has seen it
                program.words,
                stdin=given,
                stdout=writing if program is line[-1] else subprocess.PIPE,
                stderr=errors[program.errors],
                start_new_session=True,
                env={**os.environ, **_PLAIN},
            )
        except (OSError, ValueError) as error:
            why = (isinstance(error, OSError) and error.strerror) or error
            raise RunError(f"cannot run {program.words[0]} here: {why}") from error
        _RUNNING.add(process)
        processes.append(process)
        if not isinstance(given, int):
            given.close()  # so that who writes into it hears of the reader's end
        given = process.stdout or subprocess.DEVNULL


def _have_ended(processes: Processes) -> bool:
    """Whether all have; they are not waited for, so that their groups keep their numbers."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return all(os.waitid(os.P_PID, process.pid, options) for process in processes)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    _RUNNING.discard(process)
