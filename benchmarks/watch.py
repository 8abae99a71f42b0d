"""`kb watch` beside a log that grows: `python -m benchmarks.watch [GIGABYTES]`.

A log is written at speed and rotated, by renaming it and by copying and truncating it in turns.
Incidents are planted in it: some right before or behind a rotation, some in lines that are written
in halves, each of them a second time later on. Prints which were said once, which were missed or
said twice, and the memory and lag of `kb watch`.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.incident import Kind
from kb.log import Log
from kb.settings import Settings
from kb.verdict import Verdict

PLANTED = 24
PART_BYTES = 250_000_000
"""Of a log until it is rotated."""
KEPT = 2
"""Rotated parts that are left, as logrotate has it."""
CALM = (
    "2026-11-21 03:{m:02d}:{s:02d} INFO rank {rank} step {step} loss 2.31 lr 1e-4 tokens/s 41000\n"
)
CALM_LINES = 20_000
BYTES_PER_SECOND = 60_000_000
"""Many times what any job writes."""
PATIENCE_S = 60


class Plant(msgspec.Struct, frozen=True):
    """An incident, and the lines that tell of it."""

    incident: str
    text: str


class Said(msgspec.Struct):
    """What `kb watch` said, and when by the clock of this process."""

    counts: Counter[str]
    at: dict[str, float]
    others: list[dict[str, object]]


def main(gigabytes: float) -> None:
    """Write, watch, and print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["KB_CACHE"] = f"{scratch}/cache"
        plants = _plants()
        log = Path(scratch) / "job" / "train.log"
        log.parent.mkdir()
        log.touch()
        with subprocess.Popen(
            [sys.executable, "-m", "kb", "watch", "--format", "jsonl", str(log.parent)],
            stdout=subprocess.PIPE,
        ) as watch:
            said = Said(Counter(), {}, [])
            reading = threading.Thread(
                target=_read, args=(watch, said, {p.incident for p in plants})
            )
            reading.start()
            started = time.monotonic()
            written = _write(log, plants, int(gigabytes * 1e9))
            seconds = time.monotonic() - started
            _wait(said, len(plants))
            memory = _peak_memory(watch.pid)
            watch.terminate()
            reading.join()
        _print(plants, said, written, (gigabytes, seconds, memory))


def _plants() -> list[Plant]:
    """Records all over the knowledge whose own lines, between everyday ones, are a match."""
    plants: list[Plant] = []
    calm = "".join(_calm(300))
    with KnowledgeBase.open(Settings()) as knowledge:
        incidents = [one for one in knowledge.incidents() if one.kind is Kind.INCIDENT]
        step = len(incidents) // (3 * PLANTED)
        for incident in incidents[::step]:
            text = incident.body.evidence[0].text.strip() + "\n"
            found = diagnose(Log.from_text(calm + text + calm), knowledge, 1)
            sure = found.verdict is Verdict.MATCH and found.matches[0].incident.id == incident.id
            if sure and len(plants) < PLANTED:
                plants.append(Plant(incident.id, text))
    return plants


def _calm(count: int) -> list[str]:
    return [CALM.format(m=n // 60 % 60, s=n % 60, rank=n % 8, step=n // 8) for n in range(count)]


def _write(log: Path, plants: list[Plant], total: int) -> dict[str, float]:
    """Write so many bytes, and return when each incident was written first."""
    calm = "".join(_calm(CALM_LINES)).encode()
    places = 2 * len(plants)  # each a second time
    rotations = total // PART_BYTES
    written: dict[str, float] = {}
    done, started = 0, time.monotonic()
    for place in range(places):
        plant = plants[place % len(plants)]
        rotates = place * rotations // places != (place + 1) * rotations // places
        while done < (place + 1) * total // places:
            done += _append(log, calm)
            time.sleep(max(0, done / BYTES_PER_SECOND - (time.monotonic() - started)))
        if rotates and place % 3 == 0:
            _rotate(log, place)
        _append_in_halves(log, plant.text.encode())
        written.setdefault(plant.incident, time.monotonic())
        if rotates and place % 3 == 1:
            _rotate(log, place)
        _append(log, calm[: len(calm) // 8])
        if rotates and place % 3 == 2:
            _rotate(log, place)
    return written


def _append(log: Path, data: bytes) -> int:
    with log.open("ab") as file:
        return file.write(data)


def _append_in_halves(log: Path, data: bytes) -> None:
    half = len(data) // 2
    _append(log, data[:half])
    time.sleep(0.7)  # longer than a look takes
    _append(log, data[half:])


def _rotate(log: Path, number: int) -> None:
    """By renaming and by truncating in turns; the oldest parts go."""
    for old in range(KEPT, 1, -1):
        if (part := log.with_name(f"{log.name}.{old - 1}")).exists():
            part.replace(log.with_name(f"{log.name}.{old}"))
    first = log.with_name(f"{log.name}.1")
    if number % 2:
        log.replace(first)
        log.touch()
    else:
        shutil.copyfile(log, first)
        os.truncate(log, 0)


def _read(watch: subprocess.Popen[bytes], said: Said, planted: set[str]) -> None:
    for event in _events(watch):
        incident = str(event["incident"])
        if incident in planted:
            said.counts[incident] += 1
            said.at.setdefault(incident, time.monotonic())
        else:
            said.others.append(event)


def _events(watch: subprocess.Popen[bytes]) -> Iterator[dict[str, object]]:
    for line in watch.stdout or ():
        yield json.loads(line)


def _wait(said: Said, planted: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while len(said.counts) < planted and time.monotonic() < until:
        time.sleep(0.2)


def _peak_memory(process: int) -> int:
    """In MB."""
    status = Path(f"/proc/{process}/status").read_text()
    return (
        int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
        // 1000
    )


def _print(
    plants: list[Plant], said: Said, written: dict[str, float], cost: tuple[float, float, int]
) -> None:
    gigabytes, seconds, memory = cost
    names = [plant.incident for plant in plants]
    lags = sorted(said.at[name] - written[name] for name in names if name in said.at)
    rows = {
        "written": f"{gigabytes:g} GB in {seconds:.0f} s, rotated each {PART_BYTES >> 20} MB",
        "incidents planted, each twice": len(names),
        "said once": sum(said.counts[name] == 1 for name in names),
        "missed": ", ".join(name for name in names if not said.counts[name]) or 0,
        "said twice": ", ".join(name for name in names if said.counts[name] > 1) or 0,
        "said, and not planted": len(said.others),
        "from the last byte to the line, median / worst": (
            f"{lags[len(lags) // 2]:.1f} / {lags[-1]:.1f} s" if lags else "-"
        ),
        "memory": f"{memory} MB",
    }
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print("| what | measured |\n| --- | --- |")
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    for event in said.others:
        print(f"  not planted: {event['verdict']} {event['incident']} {event['text']}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
