"""`make bench`: start-up, latency, index build and memory, beside the plain script, in one run.

Budgets are those of docs/performance.md. Machines are shared and noisy: read the ratios.
"""

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.diagnosis import diagnose
from kb.log import Log
from kb.markdown import render
from kb.settings import Settings

QUESTION = "NCCL watchdog timeout on _ALLGATHER_BASE with FSDP and LoRA, all ranks hang"
INCIDENTS = 600
SAMPLE = "benchmarks/samples/nccl-shm.log"
COLD_RUNS = 7
WARM_RUNS = 60
CALM = (
    "2026-11-21 03:00:{second:02d} INFO rank {rank} step {step} loss 2.31 lr 1e-4 tokens/s 41000\n"
)


def main() -> None:
    """Print the whole table."""
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores,"
        f" Python {platform.python_version()}, onnxruntime {version('onnxruntime')}"
    )
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        os.environ["KB_CACHE"] = name
        _index(cache)
        _start_up(cache)
        _contribute(cache)
        _warm()
        _scan()


def _row(what: str, value: str, budget: str = "") -> None:
    print(f"{what:<52} {value:>16}   {budget}", flush=True)


def _index(cache: Path) -> None:
    shipped, _problems = IncidentDirectories().load()
    seconds, _memory = _run([*_kb(), "index"])
    _row(f"index, {len(shipped)} records, empty cache", f"{seconds:.1f} s")
    seconds, memory = _run([*_kb(), "index", "--rebuild"])
    _row("  built anew from the records", f"{seconds:.1f} s")
    in_proportion = f"{seconds * INCIDENTS / len(shipped):.1f} s"
    _row(f"  in proportion, {INCIDENTS} records", in_proportion, "15 s")
    _row("  memory", f"{memory / 1e6:.0f} MB")
    team = cache / "team"
    team.mkdir()
    command = [*_kb(), "index", "--incidents", str(team)]
    changed = team / f"{shipped[0].id}.md"
    changed.write_text(render(shipped[0]))
    _run(command)
    changed.write_text(changed.read_text().replace("## Symptom\n", "## Symptom\n\nAgain.\n"))
    _row("index, one file changed", f"{_run(command)[0]:.2f} s", "0.5 s")


def _start_up(cache: Path) -> None:
    _row("kb --version", _cold([*_kb(), "--version"]), "100 ms")
    ours = [_run([*_kb(), "ask", "--json", QUESTION]) for _ in range(COLD_RUNS)]
    cold = statistics.median(seconds for seconds, _memory in ours)
    _row("kb ask, cold process, index built (median)", f"{1000 * cold:.0f} ms", "500 ms")
    _row("  memory", f"{max(memory for _seconds, memory in ours) / 1e6:.0f} MB")
    plain = [sys.executable, "-m", "benchmarks.plain_script"]
    _run([*plain, "build", str(cache)])
    theirs = [_run([*plain, "ask", str(cache), QUESTION]) for _ in range(COLD_RUNS)]
    slow = statistics.median(seconds for seconds, _memory in theirs)
    _row("plain script, cold process, index built (median)", f"{1000 * slow:.0f} ms")
    _row("  memory", f"{max(memory for _seconds, memory in theirs) / 1e6:.0f} MB")
    _row("  times slower than kb ask", f"{slow / cold:.1f}", "at least 12")


def _contribute(cache: Path) -> None:
    draft = cache / "draft.md"
    written = _run([*_kb(), "new", "--from-log", SAMPLE, "-o", str(draft)])[0]
    _row("kb new --from-log", f"{written:.2f} s", "a fraction of a second")
    _row("kb lint, all records, first time, index built", f"{_run([*_kb(), 'lint'])[0]:.1f} s")
    _row("  again", f"{_run([*_kb(), 'lint'])[0]:.1f} s", "10 s")
    record = next(Path("incidents").glob("*/nccl-shm-too-small-container.md"))
    changed = cache / "team" / record.name
    changed.write_text(record.read_text().replace("## Symptom\n", "## Symptom\n\nAgain.\n"))
    one = statistics.median(_run([*_kb(), "lint", str(changed)])[0] for _ in range(3))
    _row("kb lint, one file (median)", f"{one:.2f} s", "a fraction of a second")


def _warm() -> None:
    texts = {
        "short": QUESTION,
        "100-line": _log(99) + f"[rank3]: RuntimeError: {QUESTION}\n",
        "100,000-line": _log(99_999) + f"[rank3]: RuntimeError: {QUESTION}\n",
    }
    with KnowledgeBase.open(Settings()) as knowledge:
        for name, text in texts.items():
            runs = WARM_RUNS if len(text) < 100_000 else 12
            times = _times(lambda text=text: diagnose(Log.from_text(text), knowledge), runs)  # type: ignore[misc]
            budget = "p50 15, p99 100 ms" if name == "100-line" else ""
            _row(f"warm diagnosis, {name} paste, p50 / p99", _percentiles(times), budget)


def _scan() -> None:
    block = _log(10_000).encode()
    with (
        tempfile.NamedTemporaryFile(suffix=".log") as file,
        KnowledgeBase.open(Settings()) as knowledge,
    ):
        copies = 300_000_000 // len(block)
        for _ in range(copies):
            file.write(block)
        file.flush()
        path = Path(file.name)
        seconds = min(_times(lambda: diagnose(Log.from_paths([path]), knowledge), 3))
        _row(
            "scanning a large log",
            f"{copies * len(block) / seconds / 1e9:.2f} GB/s",
            "0.8 GB/s a core",
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    _row("  memory of this process", f"{memory / 1e6:.0f} MB", "400 MB")


def _log(lines: int) -> str:
    return "".join(CALM.format(second=n % 60, rank=n % 8, step=n) for n in range(lines))


def _kb() -> list[str]:
    return [str(Path(sys.executable).with_name("kb"))]


def _cold(command: Sequence[str]) -> str:
    return f"{1000 * statistics.median(_run(command)[0] for _ in range(COLD_RUNS)):.0f} ms"


def _run(command: Sequence[str]) -> tuple[float, int]:
    """Seconds and peak memory in bytes of a process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}")
    return time.perf_counter() - started, usage.ru_maxrss * 1024


def _times(function: Callable[[], object], runs: int) -> list[float]:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return times


def _percentiles(times: Sequence[float]) -> str:
    ordered = sorted(times)
    last = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    return f"{1000 * statistics.median(ordered):.0f} / {1000 * last:.0f} ms"


if __name__ == "__main__":
    main()
