"""A tier beside the curated records changes none of their answers, however large it is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from benchmarks.tiers import ForeignDocuments, make_tier, open_tier, shipped
from index.documents import Query
from index.encoder import load_encoder, model_name
from kb.corpus.base import KnowledgeBase
from kb.corpus.sync import IndexSync, curated_sync, tier_store
from kb.corpus.tier import Tier, TierName
from kb.paths import tier_directory
from kb.settings import Settings
from tests.conftest import FOUNDING, copy_cache, environment

REPORTS = Path("benchmarks/reports")
FORMS = (("log", "en"), ("prose", "en"), ("prose", "zh"))
"""Kind and language of the reports of each founding incident."""
NEGATIVES = 5
FEW = 1_000
MANY = 20_000
"""Fifty for each curated record; `benchmarks.tiers` makes a million."""

pytestmark = pytest.mark.xdist_group("tiers")


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (REPORTS / name).read_text().splitlines()]


@cache
def texts() -> list[str]:
    """A log, an English and a Chinese text of each founding incident, and some negatives."""
    founding = rows("founding.jsonl")
    of_incidents = [
        next(
            row["text"]
            for row in founding
            if incident in row["relevant"] and (row["kind"], row["lang"]) == form
        )
        for incident in FOUNDING
        for form in FORMS
    ]
    return of_incidents + [row["text"] for row in rows("negatives.jsonl")[:NEGATIVES]]


SOME = slice(None, None, 4)
"""Of the texts: of each form at least one, and a negative."""


@pytest.fixture(scope="module")
def own_cache(built_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of these tests alone: another tier may lie in it."""
    copied = copy_cache(built_cache, tmp_path_factory.mktemp("tiers") / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KB_CACHE", str(copied))
        yield copied


@pytest.fixture
def tier(own_cache: Path) -> Iterator[Path]:
    """Where the second tier lies; nothing is there yet, and nothing stays."""
    directory = tier_directory(TierName.IMPORTED, model_name())
    assert directory.parent == own_cache
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


Answers = Callable[[Sequence[str]], list[tuple[int, bytes, bytes]]]


@pytest.fixture(scope="module")
def answers(own_cache: Path) -> Answers:
    """Ask the real command, each text in a process of its own."""
    with ThreadPoolExecutor(2) as pool:
        yield lambda some: list(pool.map(lambda text: answer(text, own_cache), some))


def answer(text: str, directory: Path, *program: str) -> tuple[int, bytes, bytes]:
    """All that a user gets, except how long it took."""
    run = subprocess.run(
        [*program, sys.executable, "-m", "kb", "ask", "--json"],
        input=text.encode(),
        capture_output=True,
        env=environment(directory),
    )
    assert b"Traceback" not in run.stderr
    timeless, found = re.subn(rb'"elapsed_ms": [\d.]+', b"", run.stdout)
    assert found == 1, run.stderr
    return run.returncode, timeless, run.stderr


@pytest.fixture(scope="module")
def alone(answers: Answers) -> list[tuple[int, bytes, bytes]]:
    """The answers to some of the texts while there is no second tier."""
    return answers(texts()[SOME])


@pytest.mark.slow
def test_answers_stay_the_same_beside_very_many(
    answers: Answers, alone: list[tuple[int, bytes, bytes]], tier: Path
) -> None:
    assert make_tier(MANY).added == MANY
    assert answers(texts()[SOME]) == alone
    found = open_tier().search(Query(lines=(texts()[0],), passages=(texts()[0],)))
    assert found


@pytest.mark.slow
def test_a_second_tier_that_is_garbage_disturbs_nobody(
    answers: Answers, alone: list[tuple[int, bytes, bytes]], tier: Path
) -> None:
    make_tier(10)
    files = list(tier.iterdir())
    assert len(files) >= 2
    for file in files:
        file.write_bytes(b"garbage" * 10_000)
    assert answers(texts()[SOME]) == alone


@pytest.mark.slow
def test_a_question_opens_no_file_of_the_second_tier(
    own_cache: Path, tier: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    strace = ("strace", "-f", "-qq", "-e", "trace=%file", "-o", str(trace))
    if not shutil.which("strace") or subprocess.run([*strace, "true"]).returncode:
        pytest.skip("this machine has no strace, or does not let it trace")
    make_tier(10)
    answer(texts()[0], own_cache, *strace)
    seen = trace.read_text(errors="replace")
    assert "/index.sqlite" in seen
    assert tier.name not in seen


@pytest.fixture
def both(own_cache: Path, tier: Path) -> Iterator[KnowledgeBase]:
    """The curated records and some foreign documents, each tier with its own encoder."""
    make_tier(FEW)
    encoder = load_encoder()
    sync = curated_sync(Settings(), lambda: encoder)
    curated = Tier(TierName.CURATED, sync.open, lambda: encoder)
    with KnowledgeBase(curated, lambda: encoder, {TierName.IMPORTED: open_tier()}) as knowledge:
        yield knowledge


def test_each_tier_finds_its_own_documents_and_no_others(both: KnowledgeBase) -> None:
    foreign = {one.id for one in ForeignDocuments(FEW).read({}).documents}
    curated_ids = set(both.ids())
    copied = shipped()[: FEW // 2 : 50]
    for record in copied:
        query = Query((record.words,), record.passages[:1], record.tags, frozenset(record.patterns))
        imported = {one.id for one in both.search(query, TierName.IMPORTED)}
        curated = {one.id for one in both.search(query)}
        assert record.id in curated <= curated_ids
        assert any(found.endswith(f"-of-{record.id}") for found in imported)
        assert imported <= foreign


def test_an_imported_report_is_found_by_its_words_and_comes_back_whole(
    both: KnowledgeBase,
) -> None:
    report = next(one for one in ForeignDocuments(FEW).read({}).documents if "report" in one.id)
    query = Query(lines=(report.words,), passages=report.passages, tags=report.tags)
    found = max(both.search(query, TierName.IMPORTED), key=lambda one: one.shared_idf)
    assert (found.id, found.payload) == (report.id, report.payload)
    assert found.coverage == pytest.approx(1)
    assert found.cosine == pytest.approx(1, abs=1e-5)


def test_the_opened_engine_has_the_second_tier_at_hand(own_cache: Path, tier: Path) -> None:
    encoder = load_encoder()
    store = tier_store(TierName.IMPORTED, Settings())
    IndexSync(ForeignDocuments(4), store, lambda: encoder, encoder.name).update()
    report = ForeignDocuments(4).read({}).documents[1]
    query = Query(lines=(report.words,), passages=report.passages)
    with KnowledgeBase.open(Settings()) as knowledge:
        assert report.id in {one.id for one in knowledge.search(query, TierName.IMPORTED)}
        assert report.id not in {one.id for one in knowledge.search(query)}


def test_a_tier_that_nobody_made_gives_no_results(own_cache: Path, tier: Path) -> None:
    query = Query(lines=("NCCL hangs",), passages=("NCCL hangs",))
    with KnowledgeBase.open(Settings()) as knowledge:
        assert knowledge.search(query, TierName.IMPORTED) == []
        assert knowledge.search(query)
        IndexSync(
            ForeignDocuments(2),
            tier_store(TierName.IMPORTED, Settings()),
            lambda: knowledge.encoder,
            knowledge.encoder.name,
        ).update()
        assert knowledge.search(query, TierName.IMPORTED), "it was made meanwhile"
