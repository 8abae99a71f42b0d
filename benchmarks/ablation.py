"""What each channel is worth, for docs/quality.md: `make ablation`, with [models].

Every row is fitted and judged anew, on incidents held out (see benchmarks/fusion.py). Two rows
use nothing of this project but the records: the plain encoder over whole texts, and SQLite's
BM25 over whole texts.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.export_encoder import find_source
from benchmarks.fusion import NAMES, Answer, held_out, read_samples
from benchmarks.quality import OWN, PAGE, fill
from index.encoder import load_encoder
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.evaluate import LabelledReport
from kb.incident import Incident, Kind
from kb.settings import Settings, load_settings

CHANNELS = {
    "signatures": ("strong_signatures", "weak_signatures"),
    "words": ("coverage", "shared_idf", "best_line_idf"),
    "meaning": ("cosine",),
    "facts": (
        "shared_systems",
        "log_lines",
        "no_failure_seen",
        "progress_without_failure",
        "shared_code",
        "other_code",
        "other_reason",
        "unexplained_exception",
        "other_hardware",
        "after_fix",
        "absent_system",
    ),
}
ANSWERED = 0.8
"""False matches are compared where so many answerable reports are answered."""


class Row(msgspec.Struct, frozen=True):
    """One line of the table. Shares from 0 to 1."""

    name: str
    recall_at_1: float
    recall_at_3: float
    separation: float
    """Area under the ROC curve, answerable reports against the others."""
    false_matches: float
    """Share of unanswerable reports answered when `ANSWERED` of the answerable ones are."""


def table(paths: Sequence[Path]) -> Iterator[Row]:
    """Yield the rows, baselines first."""
    settings = load_settings()
    with KnowledgeBase.open(settings) as knowledge:
        samples = read_samples(paths, knowledge)
    cases = [sample.case for sample in samples]
    records = [one for one in IncidentDirectories().load()[0] if one.kind is Kind.INCIDENT]
    yield _row("plain BM25 over whole texts", _baseline(cases, records, _bm25(records)))
    yield _row("plain MiniLM over whole texts", _baseline(cases, records, _minilm(records)))
    plain = Settings(settings.incidents, str(find_source().parent))
    with KnowledgeBase.open(plain) as knowledge:
        by_plain = read_samples(paths, knowledge)
    yield _row("meaning alone, plain encoder", held_out(by_plain, CHANNELS["meaning"]))
    yield _row("all, plain encoder", held_out(by_plain))
    for size in range(1, len(CHANNELS)):
        for chosen in combinations(CHANNELS, size):
            yield _row(" + ".join(chosen), held_out(samples, _names(chosen)))
    yield _row("all", held_out(samples))


def _names(channels: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in NAMES if any(name in CHANNELS[channel] for channel in channels))


Scores = Callable[[str], np.ndarray[tuple[int], np.dtype[np.float64]]]
"""From a text to a score of every record."""


def _baseline(
    cases: Sequence[LabelledReport], records: Sequence[Incident], scores_of: Scores
) -> list[Answer]:
    answers = []
    for case in cases:
        scores = scores_of(case.text)
        order = np.argsort(-scores, kind="stable")
        places = [place for place, one in enumerate(order) if records[one].id in case.relevant]
        position = places[0] + 1.0 if places else float("inf")
        answers.append(Answer(case, float(scores[order[0]]), position))
    return answers


def _whole(record: Incident) -> str:
    body = record.body
    return "\n".join(
        [record.title, body.symptom, body.cause, *body.evidence, *record.header.aliases]
    )


def _minilm(records: Sequence[Incident]) -> Scores:
    encoder = load_encoder(str(find_source().parent))
    passages = encoder.encode([_whole(record) for record in records])
    return lambda text: np.asarray(passages @ encoder.encode([text])[0], dtype=np.float64)


def _bm25(records: Sequence[Incident]) -> Scores:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE whole USING fts5(text)")
    connection.executemany("INSERT INTO whole VALUES (?)", [(_whole(one),) for one in records])

    def scores_of(text: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        scores = np.zeros(len(records))
        words = set("".join(c if c.isalnum() else " " for c in text).split())
        terms = " OR ".join(f'"{word}"' for word in sorted(words))
        if terms:
            query = "SELECT rowid, bm25(whole) FROM whole WHERE whole MATCH ?"
            for number, score in connection.execute(query, (terms,)):
                scores[number - 1] = -score
        return scores

    return scores_of


def _row(name: str, answers: Sequence[Answer]) -> Row:
    wanted = [answer for answer in answers if answer.case.relevant]
    others = np.array([answer.confidence for answer in answers if not answer.case.relevant])
    sure = np.array([answer.confidence for answer in wanted])
    apart = np.sign(sure[:, None] - others[None, :])
    bar = float(np.quantile(sure, 1 - ANSWERED))
    return Row(
        name=name,
        recall_at_1=float(np.mean([answer.position <= 1 for answer in wanted])),
        recall_at_3=float(np.mean([answer.position <= 3 for answer in wanted])),
        separation=float((apart + 1).mean() / 2),
        false_matches=float((others >= bar).mean()),
    )


def to_markdown(rows: Sequence[Row]) -> str:
    """The table as it stands in docs/quality.md."""
    head = f"| channels | at 1 | at 3 | separation | false matches at {ANSWERED:.0%} answered |\n"
    body = (
        f"| {row.name} | {row.recall_at_1:.3f} | {row.recall_at_3:.3f} |"
        f" {row.separation:.3f} | {row.false_matches:.3f} |\n"
        for row in rows
    )
    return head + "| --- | --: | --: | --: | --: |\n" + "".join(body)


def main() -> None:
    """Measure, then rewrite the table on the page and the machine it was made on."""
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores\n"
    fill(PAGE, {"ablation": to_markdown(list(table(OWN))), "machine": machine})


if __name__ == "__main__":
    main()
