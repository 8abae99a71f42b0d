"""Which lines speak for which record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from index.encoder import load_encoder, model_name
from index.store import Store
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.corpus.sync import IndexSync
from kb.corpus.tier import Tier, TierName
from kb.diagnosis import By, diagnose
from kb.diagnosis.retrieval import retrieve
from kb.evidence import collect
from kb.log import Log

SIGNATURE = "- pattern: flange .. quux\n  strength: strong\n"


def declare(path: Path, signature: str) -> None:
    """A record with one signature only."""
    source = Path("tests/tui/incidents/shm-too-small.md").read_text()
    head, _signatures, rest = source.replace("shm-too-small", path.stem).partition("signatures:\n")
    path.write_text(f"{head}signatures:\n{signature}references:{rest.partition('references:')[2]}")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """Two records that declare the same text, one as a literal and one as an expression."""
    directory = tmp_path_factory.mktemp("both")
    declare(directory / "as-a-literal.md", SIGNATURE)
    declare(directory / "as-an-expression.md", f"{SIGNATURE}  regex: true\n")
    encoder = load_encoder()
    source = IncidentDirectories(first=directory)
    sync = IndexSync(source, Store(None), lambda: encoder, model_name())
    tier = Tier(TierName.CURATED, sync.open, lambda: encoder)
    with KnowledgeBase(tier, lambda: encoder) as knowledge:
        yield knowledge


def by_signature(text: str, knowledge: KnowledgeBase) -> dict[str, list[int]]:
    """The lines that count as signatures of each record."""
    evidence = collect(Log.from_text(text).blocks(), knowledge.signatures, knowledge.markers)
    return {
        one.incident.id: [why.line.number for why in one.why if why.by is By.SIGNATURE]
        for one in retrieve(evidence, knowledge)
    }


def test_a_line_counts_as_signature_only_where_the_pattern_of_the_record_matched(
    both: KnowledgeBase,
) -> None:
    text = "[rank0]: RuntimeError: shared memory segment of NCCL: flange ab quux"
    assert by_signature(text, both) == {"as-a-literal": [], "as-an-expression": [1]}
    best = diagnose(Log.from_text(text), both).matches[0]
    assert (best.incident.id, best.why[0].by) == ("as-an-expression", By.SIGNATURE)


def test_a_line_that_both_patterns_match_counts_for_both(both: KnowledgeBase) -> None:
    text = "[rank0]: RuntimeError: shared memory segment of NCCL: flange .. quux"
    assert by_signature(text, both) == {"as-a-literal": [1], "as-an-expression": [1]}


def test_each_record_is_shown_with_its_own_line(both: KnowledgeBase) -> None:
    text = "RuntimeError: flange ab quux\nRuntimeError: flange .. quux\n"
    assert by_signature(text, both) == {"as-a-literal": [2], "as-an-expression": [1]}
