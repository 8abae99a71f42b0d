"""`python -m benchmarks.screen`: how long the screen makes somebody wait, and the memory it takes.

Each row is measured in a process of its own; machines are shared and noisy, the best run counts.
"""

import asyncio
import fcntl
import os
import platform
import pty
import re
import resource
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from multiprocessing import get_context
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

from textual.app import App, ComposeResult

from tui.lines import Lines
from tui.widgets.log_view import LogView

RUNS = 3
BETWEEN_KEYS_S = 0.02
LOADED_S = 3.0
PATIENCE_S = 10.0
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
BIG = 2_000_000_000
LINE = "2026-11-21 03:00:00 INFO rank {rank} step {step} loss 2.31 lr 1e-4 tokens/s 41000\n"
LONG_LINE = 30_000_000


class Viewer(App[None]):
    """A screen with a log on it."""

    def compose(self) -> ComposeResult:
        """The log alone."""
        yield LogView()


def main() -> None:
    """Print the whole table."""
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores,"
        f" Python {platform.python_version()}"
    )
    _start()
    with tempfile.TemporaryDirectory() as name:
        _log(_big(Path(name, "big.log")), "a log of 2 GB")
        _log(_long(Path(name, "long.log")), "one line of 30 MB")


def _start() -> None:
    """The real command on a terminal: its first screen, and letters typed from then on."""
    runs = [_typed() for _ in range(RUNS)]
    loading = sorted(key for _first, keys, _later in runs for key in keys)
    loaded = sorted(key for _first, _keys, later in runs for key in later)
    print(f"\nkb tui, the index built       best of {RUNS}")
    print(f"first screen                         {min(run[0] for run in runs) * 1000:8.0f} ms")
    for title, keys in (("while the index loads", loading), ("when it is loaded", loaded)):
        print(
            f"letter to screen {title:<21} {keys[len(keys) // 2] * 1000:6.0f} ms p50"
            f" {keys[-1] * 1000:6.0f} ms worst of {len(keys)}"
        )


def _typed() -> tuple[float, list[float], list[float]]:
    """Seconds to the first screen, and from each letter to its echo: at once, and later on."""
    started = time.perf_counter()
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-m", "kb", "tui"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 34, 120, 0, 0))
    _read_until(terminal, b"Paste an error")
    first = time.perf_counter() - started
    keys = [_echoed(terminal, letter) for letter in ascii_lowercase]
    time.sleep(LOADED_S)
    later = [_echoed(terminal, letter) for letter in ascii_uppercase]
    os.kill(process, signal.SIGTERM)
    os.waitpid(process, 0)
    os.close(terminal)
    return first, keys, later


def _echoed(terminal: int, letter: str) -> float:
    """Each letter is typed once: the line it stands in is drawn again and again."""
    started = time.perf_counter()
    os.write(terminal, letter.encode())
    _read_until(terminal, letter.encode())
    took = time.perf_counter() - started
    time.sleep(BETWEEN_KEYS_S)
    return took


def _read_until(terminal: int, text: bytes) -> None:
    seen = b""
    while text not in ESCAPE.sub(b"", seen):
        ready, _write, _other = select.select([terminal], [], [], PATIENCE_S)
        if not ready:
            raise TimeoutError(text)
        seen += os.read(terminal, 1 << 16)


def _log(path: Path, title: str) -> None:
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        runs = pool.map(_shown, [path] * RUNS, chunksize=1)
    first, counted, end, memory = map(min, zip(*runs, strict=True))
    print(f"\n{title}")
    print(f"first screen                         {first * 1000:8.0f} ms")
    print(f"all lines counted                    {counted * 1000:8.0f} ms")
    print(f"to the last line                     {end * 1000:8.0f} ms")
    print(f"memory of the process                {memory / 1e6:8.0f} MB")


def _shown(path: Path) -> tuple[float, float, float, int]:
    return asyncio.run(_show(path))


async def _show(path: Path) -> tuple[float, float, float, int]:
    """Seconds to the first screen, until all is counted, and to the end; then bytes."""
    app = Viewer()
    async with app.run_test(size=(80, 24)) as pilot:
        started = time.perf_counter()
        view = app.query_one(LogView)
        view.show(Lines.open(path))
        while not _text(view):
            await pilot.pause(0)
        first = time.perf_counter() - started
        await app.workers.wait_for_complete()
        await pilot.pause(0)
        counted = time.perf_counter() - started
        view.jump(view.line_count)
        while view.line_count > view.size.height and not view.scroll_offset.y:
            await pilot.pause(0)
        return first, counted, time.perf_counter() - started - counted, _peak()


def _text(view: LogView) -> bool:
    return bool(view.line_count) and "INFO" in view.render_line(0).text


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def _big(path: Path) -> Path:
    block = "".join(LINE.format(rank=n % 8, step=n) for n in range(200_000)).encode()
    with path.open("wb") as file:
        for _ in range(BIG // len(block)):
            file.write(block)
    return path


def _long(path: Path) -> Path:
    with path.open("wb") as file:
        file.write(b"INFO ")
        for _ in range(LONG_LINE // 1_000_000):
            file.write(b"x" * 1_000_000)
    return path


if __name__ == "__main__":
    main()
