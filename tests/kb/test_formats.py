"""The same log is told the same, whatever launcher and logger wrote its lines.

The forms are the rows of `kb/rules/prefixes.toml` and `kb/rules/times.toml`: a new row is tested by
being added.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log
from kb.markdown import parse
from kb.rules import read_rows
from kb.rules.rows import Export, Prefix, Time
from kb.verdict import Verdict

Form = Callable[[int], str]
"""What stands in front of a line of a rank."""

Lines = Sequence[tuple[int, str]]
"""The lines of a log with their ranks."""

TIMES = [row for table in ("date", "epoch", "clock") for row in read_rows("times", table, Time)]
PREFIXES = [row for row in read_rows("prefixes", "prefix", Prefix) if row.yields.text == "boom"]
TELLING = {
    "kubectl logs --prefix",
    "Loki: logcli, behind the time",
    "level in front of a date; vLLM",
    "level in front of a rank",
    "loguru, behind the time",
    "structlog, behind the time",
}
"""These name a system or say how bad a line is: verdict and confidence may differ."""
TOLERANCE = 0.02

SHARED_MEMORY = (
    "step 1 loss 2.31",
    "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x1 (size 9637888)",
)
LOST_A_PEER = (
    *(f"step {step} loss 2.31 lr 1e-4" for step in range(6)),
    "Traceback (most recent call last):",
    '  File "/opt/train.py", line 3, in main',
    "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:2345",
)
RECORDS = ("ray/ray-oom-killer-node-memory-threshold", "pytorch/checkpoint-write-failed-disk-full")


def of_ranks(ranks: int, lines: Sequence[str]) -> Lines:
    """The lines of all ranks, interleaved."""
    return [(rank, line) for line in lines for rank in range(ranks)]


def evidence_of(record: str) -> Lines:
    body = parse(Path("incidents", f"{record}.md").read_text()).body
    return of_ranks(2, [line for line in body.evidence_text.split("\n") if line.strip()])


LOGS = {
    "8 ranks": of_ranks(8, SHARED_MEMORY),
    "64 ranks": of_ranks(64, SHARED_MEMORY),
    "stacks": of_ranks(4, LOST_A_PEER),
    "recorded": of_ranks(1, Path("benchmarks/samples/nccl-shm.log").read_text().splitlines()),
    **{record: evidence_of(record) for record in RECORDS},
}


class Told(NamedTuple):
    """What must not depend on the form of a log."""

    distinct_lines: int
    ranks: frozenset[int | None]
    culprits: tuple[int | None, ...]
    world_size: int | None


class Answer(NamedTuple):
    """What must not depend on it where the form says nothing else."""

    verdict: Verdict
    first: str


def told(knowledge: KnowledgeBase, lines: Lines, form: Form) -> tuple[Told, Answer, float]:
    """What is told of a log in this form, and how surely."""
    log = Log.from_text("\n".join(form(rank) + line for rank, line in lines))
    diagnosis = diagnose(log, knowledge)
    first, job = diagnosis.matches[0], diagnosis.job
    lines_told = Told(
        len(diagnosis.evidence.lines),
        frozenset(line.rank for line in diagnosis.evidence.lines),
        tuple(culprit.rank for culprit in job.culprits) if job else (),
        job.world_size if job else None,
    )
    return lines_told, Answer(diagnosis.verdict, first.incident.id), first.confidence


@cache
def usual(knowledge: KnowledgeBase, log: str) -> tuple[Told, Answer, float]:
    """What is told of a log with ISO times."""
    return told(knowledge, LOGS[log], "2026-11-21 03:10:07 [rank{}]: ".format)


def assert_told_alike(knowledge: KnowledgeBase, log: str, form: Form) -> None:
    found, answer, confidence = told(knowledge, LOGS[log], form)
    usual_found, usual_answer, usual_confidence = usual(knowledge, log)
    assert (found, answer) == (usual_found, usual_answer)
    assert confidence == pytest.approx(usual_confidence, abs=TOLERANCE)


def assert_folded_alike(knowledge: KnowledgeBase, log: str, form: Form) -> None:
    found, _answer, _confidence = told(knowledge, LOGS[log], form)
    expected = usual(knowledge, log)[0]
    assert (found.distinct_lines, found.world_size) == (
        expected.distinct_lines,
        expected.world_size,
    )


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("time", [time for row in TIMES for time in row.examples])
def test_a_log_with_any_time_is_told_alike(knowledge: KnowledgeBase, log: str, time: str) -> None:
    for form in (f"{time} [rank{{}}]: ", f"[rank{{}}]: [{time}] "):
        assert_told_alike(knowledge, log, form.format)


def in_front(row: Prefix, rank: int) -> str:
    """What the row takes off, with the rank where the row tells none."""
    taken = row.examples[0].removesuffix("boom")
    if row.yields.rank is None:
        return f"{taken}[rank{rank}]: "
    return re.sub(rf"(?<!\d){row.yields.rank}(?!\d)", str(rank), taken)


@pytest.mark.slow
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in PREFIXES])
@pytest.mark.parametrize("time", [pytest.param(row.examples[0], id=row.name) for row in TIMES])
def test_a_log_with_any_prefix_and_time_is_told_alike(
    knowledge: KnowledgeBase, row: Prefix, time: str
) -> None:
    check = assert_folded_alike if row.name in TELLING else assert_told_alike
    check(knowledge, "8 ranks", lambda rank: f"{time} {in_front(row, rank)}")
    check(knowledge, "8 ranks", lambda rank: f"{in_front(row, rank)}{time} ")


def exported(row: Export, line: str) -> str:
    """The line as the platform of the row writes it."""
    return row.examples[0].replace("boom", json.dumps(line)[1:-1])


def pretty(objects: Sequence[str]) -> str:
    """An array of objects over many lines, as command lines of clouds print it."""
    return json.dumps([json.loads(one) for one in objects], indent=2)


EXPORTS = read_rows("exports", "export", Export)


@pytest.mark.parametrize("form", ["a line each", "an array over many lines", "an array in a line"])
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in EXPORTS])
def test_an_exported_log_is_told_like_the_log_itself(
    knowledge: KnowledgeBase, row: Export, form: str
) -> None:
    objects = [exported(row, f"[rank{rank}]: {line}") for rank, line in LOGS["stacks"]]
    text = "\n".join(objects)
    if form != "a line each":
        text = pretty(objects) if "many" in form else f"[{', '.join(objects)}]"
    diagnosis = diagnose(Log.from_text(text), knowledge)
    usual_told, usual_answer, _ = usual(knowledge, "stacks")
    job = diagnosis.job
    assert job is not None
    assert tuple(culprit.rank for culprit in job.culprits) == usual_told.culprits
    assert job.world_size == usual_told.world_size
    assert {line.rank for line in diagnosis.evidence.lines} == usual_told.ranks
    assert diagnosis.matches[0].incident.id == usual_answer.first
    assert diagnosis.verdict is usual_answer.verdict


@pytest.mark.parametrize("every", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
def test_a_table_is_told_like_the_log_itself(
    knowledge: KnowledgeBase, every: Literal[0, 1]
) -> None:
    text = io.StringIO()
    table = csv.writer(text, quoting=every)
    table.writerow(["@timestamp", "@logStream", "@message"])
    for second, (rank, line) in enumerate(LOGS["stacks"]):
        time = f"2026-11-21 03:{second // 60:02}:{second % 60:02}.000"
        table.writerow([time, f"node-{rank}/job", f"[rank{rank}]: {line}"])
    diagnosis = diagnose(Log.from_text(text.getvalue()), knowledge)
    usual_told, usual_answer, _ = usual(knowledge, "stacks")
    job = diagnosis.job
    assert job is not None
    assert tuple(culprit.rank for culprit in job.culprits) == usual_told.culprits
    assert {culprit.host for culprit in job.culprits} == {
        f"node-{rank}" for rank in usual_told.culprits
    }
    assert diagnosis.matches[0].incident.id == usual_answer.first


def test_a_quotation_mark_without_end_costs_no_line() -> None:
    rows = [f'2026-11-21 03:10:07,a-{number},"line {number}' for number in range(20_000)]
    text = "\n".join(["@timestamp,@logStream,@message", *rows])
    said = b"".join(block.data for block in Log.from_text(text).blocks()).decode()
    assert all(f"line {number}" in said for number in range(20_000))


def test_a_line_of_an_export_has_its_number_in_the_file() -> None:
    objects = [
        '{"logName":"a","timestamp":"2026-11-21T03:10:07Z","textPayload":"one"}',
        '{"logName":"a","timestamp":"2026-11-21T03:10:08Z","textPayload":"two\\nthree"}',
    ]
    text = pretty(objects)
    (block,) = Log.from_text(text).blocks()
    lines = text.split("\n")
    said = block.data.decode().splitlines()
    assert [line.rpartition(" ")[2] for line in said] == ["one", "two", "three"]
    numbers = [block.number_of(place) for place in range(len(said))]
    assert [lines[number - 1].strip() for number in numbers] == [
        '"textPayload": "one"',
        *2 * ('"textPayload": "two\\nthree"',),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"message": "step 1", "timestamp": "2026-11-21T03:10:07Z", "level": "info"}\n',
        '{"log": 3, "time": null, "stream": "stdout"}\n{\n{\n}\n',
        '{\n  "a": 1\n}\n[1, 2]\n',
        "[" * 5000 + "\n",
    ],
)
def test_what_is_no_export_stays_as_it_is(text: str) -> None:
    (block,) = Log.from_text(text).blocks()
    assert block.data.decode() == text


def test_what_an_export_holds_beside_its_lines_stays() -> None:
    text = (
        '{"log":"one\\n","stream":"stdout","time":"2026-11-21T03:10:07Z"}\n'
        "mpirun noticed\n"
        '{"log":"\\u001b[31mtwo\\n","stream":"stderr","time":"2026-11-21T03:10:08Z\\n x"}\n'
        '{"log": "cut'
    )
    (block,) = Log.from_text(text).blocks()
    assert block.data.decode().splitlines() == [
        "2026-11-21T03:10:07Z one",
        "mpirun noticed",
        "2026-11-21T03:10:08Z-x two",
        '{"log": "cut',
    ]
    assert block.numbers == (1, 2, 3, 4)
