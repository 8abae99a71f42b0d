"""`python -m benchmarks.screen`: how long the screen makes somebody wait, and the memory it takes.

Each row is measured in a process of its own; machines are shared and noisy, the best run counts.
"""

import asyncio
import os
import platform
import resource
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

from textual.app import App, ComposeResult

from tui.lines import Lines
from tui.widgets.log_view import LogView

RUNS = 3
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
    with tempfile.TemporaryDirectory() as name:
        _log(_big(Path(name, "big.log")), "a log of 2 GB")
        _log(_long(Path(name, "long.log")), "one line of 30 MB")


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
