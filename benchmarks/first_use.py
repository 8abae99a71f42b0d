"""`python -m benchmarks.first_use`: the first answer of a fresh installation.

Builds the wheel and installs it into a new virtual environment, as a user does, with the versions
of constraints.txt. Then each line starts from a cache of its own.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

QUESTION = "NCCL WARN Error while creating shared memory segment"
ANSWER = '"id": "nccl-shm-too-small-container"'
TEAM_RECORD = "xid79-gpu-fallen-off-bus"
RUNS = 5


def main() -> None:
    """Print seconds of the very first question, and the median of each kind of cache."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        kb = install(scratch)
        team = _team(scratch)
        blocked = scratch / "a-file"
        blocked.touch()

        first = scratch / "first"

        def empty() -> Path:
            return Path(tempfile.mkdtemp(dir=scratch))

        _row("the very first", [ask(kb, first)])
        _row("empty cache", _asked(kb, empty))
        _row("empty cache, with a team's directory", _asked(kb, empty, "--incidents", str(team)))
        _row("cache that cannot be written", _asked(kb, lambda: blocked / "cache"))
        _row("index built", _asked(kb, lambda: first))


def install(scratch: Path) -> Path:
    """Return the command of a new installation below a directory."""
    environment = scratch / "venv"
    venv.create(environment, with_pip=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--quiet"]
    started = time.perf_counter()
    _run([*pip, "wheel", ".", "--no-deps", "--wheel-dir", str(scratch)])
    _row("pip wheel .", [time.perf_counter() - started])
    (wheel,) = scratch.glob("*.whl")
    _run([*pip, "install", "-c", "constraints.txt", str(wheel)])
    return environment / "bin" / "kb"


def ask(kb: Path, cache: Path, *options: str) -> float:
    """Return the seconds that a question takes."""
    environment = {**os.environ, "KB_CACHE": str(cache), "KB_CONFIG": str(cache / "none.toml")}
    started = time.perf_counter()
    run = subprocess.run(
        [kb, "ask", "--json", *options, QUESTION],
        capture_output=True,
        text=True,
        env=environment,
        cwd=kb.parent,
    )
    seconds = time.perf_counter() - started
    if ANSWER not in run.stdout:
        sys.exit(f"kb ask gave another answer: {run.stdout}{run.stderr}")
    return seconds


def _asked(kb: Path, cache: Callable[[], Path], *options: str) -> list[float]:
    return [ask(kb, cache(), *options) for _ in range(RUNS)]


def _team(scratch: Path) -> Path:
    record = next(Path("incidents").glob(f"*/{TEAM_RECORD}.md"))
    team = scratch / "team"
    team.mkdir()
    text = record.read_text(encoding="utf-8").replace(f"id: {TEAM_RECORD}", "id: team-record")
    (team / "team-record.md").write_text(text.replace("## Symptom\n", "## Symptom\n\nOurs.\n"))
    return team


def _run(command: list[str]) -> None:
    if subprocess.run(command).returncode:
        sys.exit(f"{' '.join(command)} failed")


def _row(what: str, seconds: list[float]) -> None:
    print(f"{what:<40} {statistics.median(seconds):6.2f} s", flush=True)


if __name__ == "__main__":
    main()
