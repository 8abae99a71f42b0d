"""`python -m fuzz SECONDS [TARGET...]`: fuzz each target, or all if none is named, for so many
seconds, as many at once as there are processors.

What breaks one is left in build/fuzz, and inputs that reach new code below it.
"""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["kb", "index", "markdown_it", "mdit_py_plugins"]):
    from fuzz.targets import TARGETS

FOUND = Path("build/fuzz")
SEEDS = {"record": "incidents/nccl"}
"""For a target, besides what once broke it and the sample of a log."""
LIMITS = ("-timeout=20", "-max_len=16000", "-verbosity=0")
"""Seconds and bytes of an input."""


def main(seconds: str, names: list[str]) -> int:
    """Return 1 if a target broke. The processes fork from one that is instrumented: that takes
    longer than a short run."""
    waiting = iter(names)
    running = [_start(name, seconds) for name in islice(waiting, os.cpu_count())]
    failed = 0
    while running:
        process, status = os.wait()
        running.remove(process)
        failed += status != 0
        running += [_start(name, seconds) for name in islice(waiting, 1)]
    return min(failed, 1)


def _start(name: str, seconds: str) -> int:
    """Return the process that fuzzes this target."""
    found = FOUND / name
    found.mkdir(parents=True, exist_ok=True)
    process = os.fork()
    if process:
        return process
    target = TARGETS[name]
    target(b"")  # what is loaded once is no part of the first input's time
    seeds = [f"tests/fuzz_corpus/{name}", "benchmarks/samples", SEEDS.get(name)]
    options = [*LIMITS, f"-max_total_time={seconds}", f"-artifact_prefix={FOUND}/{name}-"]
    atheris.Setup([name, *options, str(found), *filter(None, seeds)], target)
    atheris.Fuzz()
    raise AssertionError("libFuzzer ends the process")


sys.exit(main(sys.argv[1], sys.argv[2:] or list(TARGETS)))
