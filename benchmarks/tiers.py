"""`python -m benchmarks.tiers`: what many imported documents cost beside the curated records.

Prints the time and memory that it takes to index them, the median time to search them, and the time
of a cold `kb ask` without and with them: the ratio of the last two should be 1.
"""

import hashlib
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import count, cycle, islice
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from index.documents import Changes, Document, Query
from kb.corpus.directories import IncidentDirectories
from kb.corpus.sources import SourceContent
from kb.corpus.sync import IndexSync, tier_store
from kb.corpus.tier import Tier, TierName
from kb.settings import Settings

Value = TypeVar("Value")

DOCUMENTS = 100_000
COLD_RUNS = 9
"""Of each kind; the fastest counts, as other programs run on the machine too."""
SEARCHES = 50
QUESTION = "NCCL watchdog timeout on _ALLGATHER_BASE with FSDP and LoRA, all ranks hang"

_WORDS_OF_A_REPORT = 60


class HashingEncoder:
    """Hashes words into 64 dimensions: quick, and texts that share words are close."""

    name = "words hashed into 64 dimensions"
    dim = 64

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per text: (n, 64)."""
        rows = np.array([self._count(text) for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _count(self, text: str) -> NDArray[np.int64]:
        words = text.lower().split() or [""]
        return np.bincount([zlib.crc32(word.encode()) % self.dim for word in words], minlength=64)


class ForeignDocuments:
    """A source of documents that nobody reviewed. Every second one is a copy of a shipped record,
    with its words, its title and its tags; the others are made of the words of all records."""

    def __init__(self, total: int) -> None:
        self._total = total

    def fingerprint(self) -> str:
        """Their number says all about them."""
        return str(self._total)

    def read(self, stored: Mapping[str, str]) -> SourceContent:
        """Those that the store does not know yet, copies and made-up ones in turn."""
        pairs = zip(_copies(), _made_up(), strict=False)
        content = SourceContent([], [], [])
        for document in islice((document for pair in pairs for document in pair), self._total):
            if stored.get(document.id) == document.digest:
                content.unchanged.append(document.id)
            else:
                content.documents.append(document)
        return content


@cache
def shipped() -> list[Document]:
    """The documents of the shipped records; reading them takes seconds."""
    return IncidentDirectories().read({}).documents


def make_tier(total: int) -> Changes:
    """Index that many foreign documents as the imported tier of the user's cache."""
    store = tier_store(TierName.IMPORTED, Settings())
    sync = IndexSync(ForeignDocuments(total), store, HashingEncoder, HashingEncoder.name)
    changes, _problems = sync.update()
    return changes


def open_tier() -> Tier:
    """The tier that `make_tier` made, with its encoder."""
    return Tier(TierName.IMPORTED, tier_store(TierName.IMPORTED, Settings()).open, HashingEncoder)


def _copies() -> Iterator[Document]:
    for number, record in enumerate(cycle(shipped())):
        yield _foreign(
            f"copy-{number}-of-{record.id}", record.words, record.passages[0], record.tags
        )


def _made_up() -> Iterator[Document]:
    generator = random.Random(0)
    words = sorted({word for record in shipped() for word in record.words.split()})
    tags = sorted({tag for record in shipped() for tag in record.tags})
    for number in count():
        text = " ".join(generator.choices(words, k=_WORDS_OF_A_REPORT))
        yield _foreign(f"report-{number}", text, text, frozenset(generator.choices(tags, k=2)))


def _foreign(identifier: str, words: str, title: str, tags: frozenset[str]) -> Document:
    return Document(
        id=identifier,
        digest=hashlib.sha256(f"{identifier}\0{words}".encode()).hexdigest(),
        words=words,
        passages=(title,),
        patterns=(),
        example="",
        tags=tags,
        payload=title.encode(),
    )


def main() -> None:
    """Print the whole table."""
    with tempfile.TemporaryDirectory() as name:
        without, beside = Path(name, "without"), Path(name, "beside")
        _cold(without)
        shutil.copytree(without, beside)
        changes, seconds, memory = _in_process(beside, _make)
        _row(f"indexing {changes.added:,} imported documents", f"{seconds:.0f} s")
        _row("  memory", f"{memory / 1e6:.0f} MB")
        _row("  on disk", f"{_size(beside) / 1e6:.0f} MB")
        milliseconds, _seconds, memory = _in_process(beside, _search)
        _row("searching them, warm, p50", f"{milliseconds:.0f} ms")
        _row("  memory", f"{memory / 1e6:.0f} MB")
        pairs = [(_cold(without), _cold(beside)) for _ in range(COLD_RUNS)]
        alone, together = (min(seconds) for seconds in zip(*pairs, strict=True))
        _row("kb ask, cold process, without them", f"{1000 * alone:.0f} ms")
        _row("  with them", f"{1000 * together:.0f} ms")
        _row("  ratio", f"{together / alone:.2f}")


def _make() -> Changes:
    return make_tier(DOCUMENTS)


def _search() -> float:
    """The median time of a search, in milliseconds."""
    tier, times = open_tier(), []
    for record in islice(shipped(), SEARCHES):
        query = Query(tuple(record.example.splitlines()), record.passages[:1], record.tags)
        started = time.perf_counter()
        tier.search(query)
        times.append(time.perf_counter() - started)
    tier.close()
    return 1000 * statistics.median(times)


def _in_process(directory: Path, work: Callable[[], Value]) -> tuple[Value, float, int]:
    """The result of some work in a process of its own, its seconds, its peak memory in bytes."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_measured, str(directory), work).result()


def _measured(directory: str, work: Callable[[], Value]) -> tuple[Value, float, int]:
    os.environ["KB_CACHE"] = directory
    started = time.perf_counter()
    value = work()
    seconds = time.perf_counter() - started
    return value, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _cold(directory: Path) -> float:
    """Seconds of one question to a process of its own."""
    environment = {**os.environ, "KB_CACHE": str(directory)}
    environment["KB_CONFIG"] = str(directory / "none.toml")
    command = [sys.executable, "-m", "kb", "ask", "--json", QUESTION]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - started


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob(f"{TierName.IMPORTED}-*/*"))


def _row(what: str, value: str) -> None:
    print(f"{what:<52} {value:>16}", flush=True)


if __name__ == "__main__":
    main()
