"""Mixed work in one process for a long time: `python -m benchmarks.soak SECONDS`.

Asks, batches and re-indexing of a team's directory take turns; each line of the table has the
memory and the open files after some more of it. Both must level off.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from kb.classify.inputs import Unit, find_units
from kb.classify.worker import Worker
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log
from kb.settings import Settings

JOBS = Path("benchmarks/jobs")
SAMPLES = Path("benchmarks/samples")
RECORD = next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md"))
LINES = 24


def main(seconds: float) -> None:
    """Work so long and print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["KB_CACHE"] = f"{scratch}/cache"
        settings = Settings(incidents=(f"{scratch}/team",))
        turns = _turns(Path(scratch) / "team", settings)
        _work(turns, seconds)


def _work(turns: Iterator[str], seconds: float) -> None:
    started = time.monotonic()
    done: dict[str, int] = {}
    print("| minutes | queries | batches | rebuilds | memory (MB) | open files |", flush=True)
    print("| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    due = 0.0
    for kind in turns:
        done[kind] = done.get(kind, 0) + 1
        passed = time.monotonic() - started
        if passed >= due:
            counts = " | ".join(f"{done.get(name, 0):,}" for name in ("ask", "batch", "index"))
            print(f"| {passed / 60:.1f} | {counts} | {_memory()} | {_open_files()} |", flush=True)
            due += seconds / LINES
        if passed >= seconds:
            return


def _turns(team: Path, settings: Settings) -> Iterator[str]:
    """Do one thing after the other for ever, and say what it was."""
    logs = [*find_units([str(SAMPLES)], Unit.FILE), *find_units([f"{JOBS}/*/logs"], Unit.JOB)]
    team.mkdir()
    for number in cycle(range(1000)):
        _write_record(team, number)
        with KnowledgeBase.open(settings) as knowledge:
            yield "index"
            for path in logs:
                diagnose(Log.from_paths([Path(path)]), knowledge)
                yield "ask"
                diagnose(Log.from_text(f"rank {number} hangs in {path}, what now?"), knowledge)
                yield "ask"
        with Worker(settings) as worker:
            for path in logs:
                worker.classify(path)
            yield "batch"


def _write_record(team: Path, number: int) -> None:
    text = RECORD.read_text(encoding="utf-8").replace(f"id: {RECORD.stem}", "id: of-the-team")
    text = text.replace("## Cause\n", f"## Cause\n\nRound {number}.\n", 1)
    (team / "of-the-team.md").write_text(text, encoding="utf-8")


def _memory() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0)
