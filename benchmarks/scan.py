"""`python -m benchmarks.scan`: `kb classify` beside `grep` and `wc`, one job of many ranks, and the
cost of looking for outputs of checks. `python -m benchmarks.scan workers` measures only one large
file that two workers share.

Machines are shared and noisy: read the ratios. A core each: `--jobs 1`, except where it is said.
"""

import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kb.corpus.base import KnowledgeBase
from kb.diagnosis.scan import scan_log
from kb.log import Log
from kb.settings import Settings

RUNS = 2
RECOGNITION_RUNS = 20
RECOGNITION_BYTES = (20_000, 1_000_000, 20_000_000)
ORDINARY = Path("kb/contribute/lint/ordinary.log")
BIG = 2_000_000_000
LARGE = 12_000_000_000
FILES = 10_000
RANKS = 1_000
CALM = (
    "2026-11-21 03:{m:02d}:{s:02d} INFO rank {rank} step {step} loss 2.31 lr 1e-4 tokens/s 41000\n"
)
WARNING = "2026-11-21 03:{m:02d}:{s:02d} WARNING rank {rank} step {step} lr 1e-4 is deprecated\n"
FAILURES = (
    "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:{n}, unhandled system error",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 MiB",
    "NVRM: Xid (PCI:0000:17:00): 79, pid={n}, GPU has fallen off the bus.",
    "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-{n} (size 9637888)",
    "FrobnicateError: widget {n} of tray 7 is jammed",
)

SIGNS = (
    "Traceback",
    "[A-Za-z]+(Error|Exception)",
    "[Ff]ail(ed|ure)",
    "[Tt]im(ed|e) ?out",
    "[Kk]illed",
    "[Ss]egmentation fault|Segfault",
    "out of memory|OutOfMemory",
    "Xid \\(",
    "NCCL WARN",
    "core dumped",
    "Connection (refused|reset)",
    "No space left",
    "[Uu]nreachable",
    "Broken pipe",
    "SIG(KILL|TERM|SEGV|BUS|ABRT)",
)
"""What somebody without the tool would look for."""


def main() -> None:
    """Print the whole table."""
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores,"
        f" Python {platform.python_version()}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["KB_CACHE"] = str(folder / "cache")
        _run([*_kb(), "index"])
        line = _written(folder / "line.log", "x\n")
        start, _memory = _best([*_kb(), "classify", "--jobs", "1", line])
        print(f"kb classify of one line, which is start and end: {start:.2f} s")
        if sys.argv[1:] == ["workers"]:
            _workers(folder / "large.log")
            return
        for title, every in (("ordinary", 0), ("1 % warnings", 100), ("10 % warnings", 10)):
            _big(folder / "big.log", title, every, start)
            (folder / "big.log").unlink()
        _workers(folder / "large.log")
        _many(folder / "many")
        _job(folder / "job")
        _recognition(folder / "recognition.log")


def _job(folder: Path) -> None:
    """One job: one rank fails by itself, all others lose it."""
    folder.mkdir()
    calm = "".join(_line(n, 0) for n in range(BIG // RANKS // len(_line(0, 0))))
    for rank in range(RANKS):
        error = FAILURES[-1] if rank == RANKS // 2 else "RuntimeError: Connection closed by peer"
        stack = f"Traceback (most recent call last):\n{error}\n"
        _written(folder / f"rank_{rank:04d}.log", calm + stack.format(n=rank))
    seconds, memory = _best([*_kb(), "ask", "-f", folder])
    print(f"\none job of {RANKS} ranks, {BIG / 1e9:.0f} GB in all")
    print(f"kb ask -f DIR                        {seconds:8.1f} s, memory {memory / 1e6:.0f} MB")


def _recognition(path: Path) -> None:
    """What it costs a scan to look for outputs of checks: the processor time of this process with
    and without, in turn."""
    print("\nlooking for outputs of checks, beside the same scan without it")
    with KnowledgeBase.open(Settings()) as knowledge:
        texts = {f"{size:,} bytes of calm lines": _calm(size) for size in RECOGNITION_BYTES}
        texts["a log with the set-up of NCCL and vLLM"] = ORDINARY.read_text() * 6
        for title, text in texts.items():
            log = Log.from_paths([_written(path, text)])
            seconds: dict[bool, list[float]] = {True: [], False: []}
            for turn in range(2 * max(RECOGNITION_RUNS, RECOGNITION_BYTES[-1] // len(text) // 20)):
                looks = turn % 2 == 0
                outputs = knowledge.guides.patterns if looks else None
                started = time.process_time()
                scan_log(log, knowledge.signatures, knowledge.markers, outputs)
                seconds[looks].append(time.process_time() - started)
            ratio = statistics.median(seconds[True]) / statistics.median(seconds[False])
            print(f"{title:<42} {(ratio - 1) * 100:+8.1f} %", flush=True)


def _calm(size: int) -> str:
    return "".join(_line(n, 0) for n in range(size // len(_line(0, 0))))


def _big(path: Path, title: str, every: int, start: float) -> None:
    block = "".join(_line(n, every) for n in range(200_000)).encode()
    with path.open("wb") as file:
        for _ in range(BIG // len(block)):
            file.write(block)
    size = path.stat().st_size
    print(f"\n{size / 1e9:.1f} GB of {title} lines")
    signs = _written(path.with_name("signs"), "\n".join(SIGNS))
    seconds, memory = _best([*_kb(), "classify", "--jobs", "1", path])
    _row("kb classify --jobs 1", seconds, size)
    _row("  without start and end", seconds - start, size)
    print(f"  memory {memory / 1e6:.0f} MB")
    for name, command in (
        (f"grep -c -E -f, {len(SIGNS)} expressions", ["grep", "-c", "-E", "-f", signs, path]),
        ("grep -c -F, one word", ["grep", "-c", "-F", "Traceback", path]),
        ("wc -l", ["wc", "-l", path]),
    ):
        _row(name, _best(command)[0], size)


def _workers(path: Path) -> None:
    """One file, with a failure in each of its parts, by one worker and by two, in turn. The second
    can be as much faster as both cores are free; what both take in all does not depend on that."""
    print("\none file by one worker and by two, all of it")
    for size, title, every in (
        (BIG, "ordinary lines", 0),
        (BIG, "1 % warnings", 100),
        (BIG, "25 % warnings", 4),
        (LARGE, "ordinary lines", 0),
    ):
        if shutil.disk_usage(path.parent).free < 2 * size:
            print(f"{size / 1e9:.0f} GB of {title}: the disk is too small")
            continue
        _with_failures(path, size, every)
        runs = [[_cost([*_kb(), "classify", "--jobs", n, path]) for n in "12"] for _ in range(RUNS)]
        one, two = (min(pairs) for pairs in zip(*runs, strict=True))
        print(
            f"{size / 1e9:.0f} GB of {title:<15} {one[0]:8.2f} s and {two[0]:8.2f} s,"
            f" {one[0] / two[0]:.2f} times as fast;"
            f" of all processors {one[2]:.2f} s and {two[2]:.2f} s",
            flush=True,
        )
        path.unlink()


def _with_failures(path: Path, size: int, every: int) -> None:
    calm = "".join(_line(n, every) for n in range(200_000)).encode()
    with path.open("wb") as file:
        for number in range(size // len(calm)):
            file.write(calm)
            failure = FAILURES[number % len(FAILURES)].format(n=number)
            file.write(f"Traceback (most recent call last):\n{failure}\n".encode())


def _many(folder: Path) -> None:
    folder.mkdir()
    chance = random.Random(1)
    for number in range(FILES):
        lines = [_line(n + number, 0) for n in range(chance.randrange(50, 400))]
        if number % 4 == 0:
            lines.append(FAILURES[number // 4 % len(FAILURES)].format(n=number) + "\n")
        _written(folder / f"{number:05d}.log", "".join(lines))
    print(f"\n{FILES} small files, every fourth with a failure")
    for jobs in (1, os.cpu_count() or 1):
        seconds, memory = _best([*_kb(), "classify", "--jobs", str(jobs), folder])
        name = f"kb classify --jobs {jobs}"
        print(f"{name:<36} {FILES / seconds:8.0f} files/s, memory {memory / 1e6:.0f} MB")


def _line(number: int, every: int) -> str:
    form = WARNING if every and number % every == 0 else CALM
    return form.format(m=number // 60 % 60, s=number % 60, rank=number % 8, step=number)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _row(name: str, seconds: float, size: int) -> None:
    print(f"{name:<36} {size / seconds / 1e9:8.2f} GB/s {seconds:8.2f} s", flush=True)


def _kb() -> list[str]:
    return [str(Path(sys.executable).with_name("kb"))]


def _best(command: Sequence[str | Path]) -> tuple[float, int]:
    return min(_run(command) for _ in range(RUNS))


def _run(command: Sequence[str | Path]) -> tuple[float, int]:
    """Seconds and peak memory in bytes of a process."""
    return _cost(command)[:2]


def _cost(command: Sequence[str | Path]) -> tuple[float, int, float]:
    """Seconds and peak memory in bytes of a process, and the seconds of processors that it and all
    its workers took."""
    started = time.perf_counter()
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode > 1:
        sys.exit(f"{command} failed with exit code {process.returncode}")
    seconds = time.perf_counter() - started
    return seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
