"""`python -m benchmarks.backlog [REPORTS...]`: what many imported reports cost.

For each number of reports it prints how fast they are filed, their size on disk, the memory and the
time of a search, cold and warm, how many of the ten nearest in meaning are found, and a cold `kb
ask` without and with them: for a match, and for a question that no record answers.

The reports are made by a rule: the title is that of a shipped record with a number; the story is 60
words drawn from all records, and 66 more are in the rest of the thread; the lines are two of the
record's evidence. Their vectors are those of the records' passages with noise, as encoding a
million would take hours; how fast texts are encoded is printed apart.
"""

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from index.codes import CodeIndex, cosines
from index.documents import Document, Query
from index.encoder import load_encoder
from kb.backlog import Backlog
from kb.backlog.gist import gist_of
from kb.backlog.library import NEAREST_CODES, path_of
from kb.backlog.model import Report, Resolution, Role
from kb.backlog.store import BacklogStore, Filed
from kb.corpus.directories import IncidentDirectories

Value = TypeVar("Value")

SIZES = (10_000, 100_000, 1_000_000)
SEARCHES = 60
COLD_RUNS = 7
"""Of each kind; the fastest counts, as other programs run on the machine too."""
MATCH = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"
QUESTION = "the tokenizer drops the last space of the prompt and the labels are shifted by one"

_WORDS_OF_A_STORY = 60
_WORDS_OF_A_REST = 66
"""As in the reports of 13 public collections."""
_BATCH = 2_000
_NOISE = 0.6
"""Length of the noise in a vector, whose own length is 1."""
_NEAREST = 10
_ENCODED = 256


@cache
def shipped() -> list[Document]:
    """The documents of the shipped records."""
    return IncidentDirectories().read({}).documents


def made_up(total: int) -> Iterator[Report]:
    """That many reports, by the rule."""
    generator = random.Random(0)  # the same every time
    words = [word for record in shipped() for word in record.words.split()]
    for number in range(total):
        record = shipped()[number % len(shipped())]
        lines = [line for line in record.example.splitlines() if line.strip()] or ["no line"]
        yield Report(
            id=f"{number:016x}",
            source=f"issues.json#{number}",
            title=f"{record.passages[0][:120]} ({number})",
            symptom=" ".join(generator.choices(words, k=_WORDS_OF_A_STORY)),
            lines=tuple(generator.choices(lines, k=2)),
            rest=" ".join(generator.choices(words, k=_WORDS_OF_A_REST)),
            resolution=Resolution("It was fixed in the next release.", Role.OTHER),
            resolved=True,
        )


@cache
def _bases() -> NDArray[np.float32]:
    encoded: NDArray[np.float32] = load_encoder().encode([one.passages[0] for one in shipped()])
    return encoded


def vectors(first: int, count: int) -> NDArray[np.float32]:
    """Those of some reports: of the record's passage, with noise."""
    noise = np.random.default_rng(first).normal(size=(count, _bases().shape[1]))
    noise *= _NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    rows = _bases()[np.arange(first, first + count) % len(_bases())] + noise
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def file_all(total: int) -> tuple[float, float]:
    """File the reports and their vectors; give the reports per second of each."""
    reports, filing, adding = made_up(total), 0.0, 0.0
    with BacklogStore.create(path_of("made-up")) as store:
        store.use_encoder(load_encoder().name)
        for first in range(0, total, _BATCH):
            batch = [
                Filed(one, one.source, "issues.json", one.source[12:], "", one.id)
                for one in islice(reports, _BATCH)
            ]
            started = time.perf_counter()
            store.add(batch)
            filed = time.perf_counter()
            rows = vectors(first, len(batch))
            encoded = time.perf_counter()
            store.add_vectors(range(first + 1, first + 1 + len(batch)), rows)
            filing += filed - started
            adding += time.perf_counter() - encoded
    return total / filing, total / adding


def search_all(total: int) -> tuple[list[float], float]:
    """Milliseconds of each search, the first of which is cold; and the share of the nearest in
    meaning that is found."""
    encoder, times, found = load_encoder(), [], []
    for record in islice(shipped(), SEARCHES):
        passage = record.passages[-1]
        query = Query(tuple(record.example.splitlines()[:6]), (passage,), record.tags)
        encoder.encode([passage])
        backlog = backlog_of_all()
        started = time.perf_counter()
        backlog.search(query, encoder)
        times.append(1000 * (time.perf_counter() - started))
        if len(found) < _NEAREST:
            found.append(_recall(passage, total))
    return times, statistics.mean(found)


@cache
def backlog_of_all() -> Backlog:
    """The imports, opened once."""
    return Backlog(lambda sentence: print(sentence, file=sys.stderr))


def _recall(passage: str, total: int) -> float:
    row = load_encoder().encode([passage])[0]
    exact = np.concatenate(
        [vectors(first, min(_BATCH, total - first)) @ row for first in range(0, total, _BATCH)]
    )
    best = set((np.argsort(-exact)[:_NEAREST] + 1).tolist())
    with BacklogStore.open(path_of("made-up")) as store:
        numbers, codes = _codes()
        near = [int(numbers[place]) for place in codes.nearest(row, NEAREST_CODES)]
        known, small = store.vectors(near, len(row))
    order = np.argsort(-cosines(row, small))[:_NEAREST]
    return len(best & {known[place] for place in order}) / _NEAREST


@cache
def _codes() -> tuple[NDArray[np.uint32], CodeIndex]:
    with BacklogStore.open(path_of("made-up")) as store:
        numbers, codes = store.codes(load_encoder().dim)
    return numbers, CodeIndex(codes)


def main(sizes: Sequence[int]) -> None:
    """Print the whole table."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        _cold(home, MATCH)  # builds the index
        alone = [min(_cold(home, text) for _ in range(COLD_RUNS)) for text in (MATCH, QUESTION)]
        _row("kb ask, cold, without imports: match / none", " / ".join(_ms(one) for one in alone))
        _row("encoding", f"{_in_process(home, encoding_rate)[0]:.0f} reports/s")
        for total in sizes:
            _one_size(home, total, alone)


def _one_size(home: Path, total: int, alone: Sequence[float]) -> None:
    for file in (home / "data" / "backlog").glob("*"):
        file.unlink()
    print(f"{total:,} reports")
    (filing, adding), _memory = _in_process(home, file_all, total)
    _row("  filing, and their vectors", f"{filing:,.0f} and {adding:,.0f} reports/s")
    size = sum(file.stat().st_size for file in (home / "data" / "backlog").glob("made-up*"))
    _row("  on disk", f"{size / 1e6:,.0f} MB")
    (times, recall), memory = _in_process(home, search_all, total)
    warm = sorted(times[1:])
    _row("  search: cold, warm p50, p99", f"{times[0]:.0f}, {_middle(warm)}, {warm[-1]:.0f} ms")
    _row("  memory", f"{memory / 1e6:,.0f} MB")
    _row("  of the ten nearest in meaning, found", f"{recall:.0%}")
    for text, before, what in zip((MATCH, QUESTION), alone, ("match", "none"), strict=True):
        now = min(_cold(home, text) for _ in range(COLD_RUNS))
        _row(f"  kb ask, cold: {what}", f"{_ms(now)}, ratio {now / before:.2f}")


def encoding_rate() -> float:
    """Reports per second."""
    encoder, texts = load_encoder(), [gist_of(report) for report in made_up(_ENCODED)]
    encoder.encode(texts[:8])
    started = time.perf_counter()
    encoder.encode(texts)
    return len(texts) / (time.perf_counter() - started)


def _in_process(home: Path, work: Callable[..., Value], *arguments: int) -> tuple[Value, int]:
    """The result of some work in a process of its own, and its peak memory in bytes."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_measured, str(home), work, *arguments).result()


def _measured(home: str, work: Callable[..., Value], *arguments: int) -> tuple[Value, int]:
    os.environ.update(_environment(Path(home)))
    value = work(*arguments)
    return value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _cold(home: Path, text: str) -> float:
    """Seconds of one question to a process of its own."""
    command = [sys.executable, "-m", "kb", "ask", "--json", text]
    started = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=_environment(home))
    return time.perf_counter() - started


def _environment(home: Path) -> dict[str, str]:
    own = {"KB_CACHE": "cache", "KB_DATA": "data", "KB_STATE": "state", "KB_CONFIG": "none.toml"}
    return {**os.environ, **{name: str(home / place) for name, place in own.items()}}


def _middle(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.0f}"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def _row(what: str, value: str) -> None:
    print(f"{what:<52} {value:>28}", flush=True)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or SIZES)
