"""`python -m benchmarks.leads QUESTIONS.jsonl [SOURCE...]`: how well imported reports are found.

Each line of the questions is `{"question", "expected", "kind"}`: `expected` is a pattern of the
source, title or address of the right report, and empty where no report is. With SOURCEs they are
imported into a directory of its own; without, the user's imports are asked. Prints, beside plain
BM25 over the whole texts, how often the right report is first and among the first three, which
leads are shown above the bar, and how long a search takes.
"""

from __future__ import annotations

import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from index.documents import Query
from kb.backlog import Backlog
from kb.backlog.leads import SHOW_LEADS_AT, rank
from kb.backlog.model import Report
from kb.backlog.question import question_of
from kb.backlog.store import BacklogStore
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log
from kb.paths import backlogs
from kb.settings import Settings

FIRST = 3
"""Leads that are shown at most."""


class Question(msgspec.Struct, frozen=True):
    """One question, and the report that answers it."""

    question: str
    expected: str = ""
    kind: str = "prose"


class Asked(msgspec.Struct, frozen=True):
    """What came of it."""

    question: Question
    place: int | None
    """Of the right report among the leads, from 1."""
    plain_place: int | None
    """The same by plain BM25."""
    best: float
    """The score of the first lead."""
    needed: bool
    """Whether the records left the question open."""
    milliseconds: float
    found: tuple[tuple[str, float], ...]
    """The first leads."""


def main(arguments: Sequence[str]) -> None:
    """Print the table; with `-v` also what each question found."""
    verbose = "-v" in arguments
    names = [one for one in arguments if one != "-v"]
    questions = [
        msgspec.json.decode(line, type=Question)
        for line in Path(names[0]).read_text(encoding="utf-8").splitlines()
    ]
    with tempfile.TemporaryDirectory() as directory:
        if names[1:]:
            os.environ["KB_DATA"] = directory
            _import(names[1:])
        plain = plain_bm25()
        with KnowledgeBase.open(Settings()) as knowledge:
            backlog = Backlog(lambda sentence: print(sentence, file=sys.stderr))
            rows = [_ask(one, knowledge, backlog, plain) for one in questions]
            backlog.close()
        _table(rows)
        if verbose:
            _each(rows)


def _import(sources: Iterable[str]) -> None:
    for source in sources:
        name = re.sub(r"[^A-Za-z0-9._-]", "-", Path(source).resolve().name)
        started = time.perf_counter()
        command = [sys.executable, "-m", "kb", "import", source, "--into", name]
        subprocess.run(command, check=True)
        print(f"  {time.perf_counter() - started:.0f} s")


def _ask(
    question: Question,
    knowledge: KnowledgeBase,
    backlog: Backlog,
    plain: Callable[[str], list[Report]],
) -> Asked:
    diagnosis = diagnose(Log.from_text(question.question), knowledge)
    query: Query = question_of(diagnosis.evidence)
    rank(query, backlog, knowledge.encoder)  # the second time it is warm
    started = time.perf_counter()
    _asked, ranked = rank(query, backlog, knowledge.encoder)
    milliseconds = 1000 * (time.perf_counter() - started)
    return Asked(
        question,
        _place(question, [[one.report for one in cases] for cases in ranked]),
        _place(question, [[report] for report in plain(question.question)]),
        ranked[0][0].score if ranked else 0.0,
        not diagnosis.verdict.is_found or diagnosis.verdict.value == "possible",
        milliseconds,
        tuple((cases[0].report.title, cases[0].score) for cases in ranked[:FIRST]),
    )


def _place(question: Question, cases: Sequence[Sequence[Report]]) -> int | None:
    if not question.expected:
        return None
    wanted = re.compile(question.expected, re.IGNORECASE)
    for place, reports in enumerate(cases, 1):
        if any(wanted.search(f"{one.source} {one.title} {one.url}") for one in reports):
            return place
    return None


def plain_bm25() -> Callable[[str], list[Report]]:
    """A search by FTS5 over title, story, lines and resolution of all imports."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE plain USING fts5(text, content='')")
    reports: list[Report] = []
    for path in backlogs():
        with BacklogStore.open(path) as store:
            for filed in store.all_reports():
                one = filed.report
                fix = one.resolution.quote if one.resolution else ""
                text = "\n".join([one.title, one.symptom, *one.lines, fix])
                connection.execute(
                    "INSERT INTO plain (rowid, text) VALUES (?, ?)", (len(reports), text)
                )
                reports.append(one)

    def search(text: str) -> list[Report]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        rows = connection.execute(
            "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 10", (words,)
        )
        return [reports[number] for (number,) in rows]

    return search


def _table(rows: Sequence[Asked]) -> None:
    print(f"{'':<12}{'questions':>10}{'R@1':>7}{'R@3':>7}{'shown':>7}   plain BM25: R@1  R@3")
    kinds = sorted({row.question.kind for row in rows if row.question.expected})
    for kind in [*kinds, "all"]:
        some = [row for row in rows if row.question.expected and kind in (row.question.kind, "all")]
        ours, plain = [row.place for row in some], [row.plain_place for row in some]
        shown = [row for row in some if row.best >= SHOW_LEADS_AT and row.place and row.place <= 3]
        print(
            f"{kind:<12}{len(some):>10}{_share(ours, 1):>7.0%}{_share(ours, FIRST):>7.0%}"
            f"{len(shown) / len(some):>7.0%}{_share(plain, 1):>18.0%}{_share(plain, FIRST):>5.0%}"
        )
    negatives = [row for row in rows if not row.question.expected]
    above = [row for row in negatives if row.best >= SHOW_LEADS_AT]
    print(f"questions without a report: {len(negatives)}, of which {len(above)} show a lead")
    times = sorted(row.milliseconds for row in rows)
    print(
        f"search, warm: p50 {statistics.median(times):.0f} ms,"
        f" p99 {times[min(len(times) - 1, int(len(times) * 0.99))]:.0f} ms"
    )
    size = sum(path.stat().st_size for path in backlogs())
    print(f"on disk: {size / 1e6:.0f} MB")


def _share(places: Sequence[int | None], most: int) -> float:
    return sum(place is not None and place <= most for place in places) / len(places)


def _each(rows: Iterable[Asked]) -> None:
    for row in rows:
        mark = {None: "-"}.get(row.place, str(row.place))
        print(f"{row.question.kind:<9}{mark:>4} {row.best:.2f}  {row.question.question[:90]}")
        if row.place is None or row.place > FIRST:
            for title, score in row.found:
                print(f"{'':>20}{score:.2f} {title[:90]}")


if __name__ == "__main__":
    main(sys.argv[1:])
