"""Runs `kb` as a fork of a process that has imported it. Each call is a process of its own, with
its own streams, directory, environment and end; only the imports, which take two thirds of the time
of a short command, are done once. As a script, it is that process."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import BinaryIO

import msgspec

_IMPORTED = ("faiss", "kb.cli.ask", "kb.service", "kb.conversation", "kb.views.text")
"""ONNX Runtime starts a thread when it is imported, and a fork has no such threads."""
_OF_THE_COMMAND = ("KB_", "_KB_", "COMP_")
"""Only the command reads such variables; others are read when Python starts."""


class Forked:
    """A server of calls of the packages in one directory. It ends with the process that made it."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._directory = TemporaryDirectory()
        self._place = f"{self._directory.name}/calls"
        self._environment = {**environment, "PYTHONPATH": str(home)}
        ready, tells = os.pipe()
        self._server = subprocess.Popen(
            [sys.executable, "-P", __file__, self._place, str(tells)],
            stdin=subprocess.PIPE,
            cwd=home,
            env=self._environment,
            pass_fds=[tells],
        )
        os.close(tells)
        with os.fdopen(ready) as told:
            assert told.read() == "ready", "the server did not start"

    def can_run(self, environment: Mapping[str, str]) -> bool:
        """Whether a call in this environment differs in nothing that Python reads at its start."""
        changed = environment.items() ^ self._environment.items()
        return all(name.startswith(_OF_THE_COMMAND) for name, _ in changed)

    def run(
        self,
        arguments: Sequence[str],
        stdin: bytes,
        directory: Path,
        environment: Mapping[str, str],
        timeout_s: float,
    ) -> subprocess.CompletedProcess[bytes]:
        """As `subprocess.run`, for `kb` with these arguments.

        Raises subprocess.TimeoutExpired when it does not end; it is killed then.
        """
        call = _Call(list(arguments), str(directory), dict(environment))
        with TemporaryFile() as out, TemporaryFile() as err, socket.socket(socket.AF_UNIX) as line:
            line.connect(self._place)
            line.settimeout(timeout_s)
            reading, writing = os.pipe()
            socket.send_fds(line, [b"!"], [reading, out.fileno(), err.fileno()])
            os.close(reading)
            line.sendall(json.dumps(msgspec.structs.asdict(call)).encode())  # bytes as surrogates
            line.shutdown(socket.SHUT_WR)
            feeding = threading.Thread(target=_feed, args=(writing, stdin))
            feeding.start()
            with line.makefile() as replies:
                process = int(replies.readline())
                try:
                    code = int(replies.readline())
                except TimeoutError:
                    os.kill(process, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(call.arguments, timeout_s) from None
                finally:
                    feeding.join()
            return subprocess.CompletedProcess(call.arguments, code, _all_of(out), _all_of(err))


class _Call(msgspec.Struct, frozen=True):
    arguments: list[str]
    directory: str
    environment: dict[str, str]


def _feed(writing: int, text: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(writing, "wb") as pipe:
        pipe.write(text)


def _all_of(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


def _become_a_call(listening: socket.socket) -> _Call:
    """Wait for calls, and return each in a process of its own, whose streams are those of the
    caller. Its parent tells the caller its number and its end."""
    while sys.stdin not in (found := select.select([listening, sys.stdin], [], [])[0]):
        assert found
        line, _ = listening.accept()
        if not os.fork():
            listening.close()
            _, streams, _, _ = socket.recv_fds(line, 1, 3)
            with line.makefile("rb") as request:
                call = _Call(**json.load(request))
            process = os.fork()
            if not process:
                line.close()
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                    os.close(stream)
                return call
            for stream in streams:
                os.close(stream)
            line.sendall(b"%d\n" % process)
            _, status = os.waitpid(process, 0)
            line.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            os._exit(0)
        line.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    os._exit(0)


def _serve() -> None:
    """Import the command, and say so; then be one call after the other."""
    place, told = sys.argv[1:]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as the command does before it imports NumPy
    for name in _IMPORTED:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        os.write(int(told), b"ready")
        os.close(int(told))
        call = _become_a_call(listening)
    os.chdir(call.directory)
    os.environ.clear()
    os.environ.update(call.environment)
    sys.argv[1:] = call.arguments
    runpy.run_module("kb", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _serve()
