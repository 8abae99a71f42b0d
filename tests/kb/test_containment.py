"""Whatever one of many does, the rest is done, and the bad one is named.

The property is about failures that nobody foresees, so most tests let one function fail for one
item: here alone, functions of our own are replaced.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kb.classify.cluster
import kb.classify.journal
import kb.classify.timeline
import kb.contribute.lint.context
import kb.corpus.document
import kb.diagnosis.diagnose
import kb.diagnosis.retrieval
import kb.diagnosis.scan
import kb.log.reader
import kb.markdown
import kb.views.classify
import kb.views.page
from index.documents import Document, Pattern
from index.encoder import load_encoder
from index.store import Store
from kb.classify import MainLine, Result, Summary, encode, summarize
from kb.classify.timeline import find_timeline
from kb.classify.worker import Worker
from kb.cli import cli
from kb.containment import contained, surviving
from kb.contribute.diff import compare
from kb.contribute.lint import ALL_RULES, lint
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.diagnosis import diagnose
from kb.errors import CorpusError
from kb.history import History, Search
from kb.incident import Incident
from kb.job.root_cause import rules
from kb.log import Log
from kb.service.doctor import run_checks
from kb.settings import Settings
from kb.verdict import Verdict
from kb.views.classify import to_csv, to_text
from kb.views.page import to_html

BAD, GOOD = "bad", "good"
FAILURE = "OddError: broken on purpose"
SHIPPED = "nccl-shm-too-small-container"
SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9)\n"
JOB = {
    "rank0.log": "[rank0]: step 1\n[rank0]: NCCL watchdog timeout: peer is gone\n",
    "rank1.log": "[rank1]: step 1\n[rank1]: RuntimeError: CUDA error: an illegal memory access\n",
}
DONE = "".join(f"step {n}/100 loss 2.5\n" for n in range(1, 101)) + "training finished\n"


class OddError(Exception):
    """What nobody foresaw."""


def failing(function: Callable[..., Any], mark: str) -> Callable[..., Any]:
    """The function, which now fails where an argument speaks of the mark."""

    def failing_for_one(*arguments: Any, **named: Any) -> Any:
        if any(mark in repr(argument) for argument in arguments):
            raise OddError("broken on purpose")
        return function(*arguments, **named)

    return failing_for_one


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`fail(module, "function")` lets it fail for the bad item."""

    def fail(module: Any, name: str, mark: str = BAD) -> None:
        monkeypatch.setattr(module, name, failing(getattr(module, name), mark))

    return fail


@pytest.fixture
def told() -> list[str]:
    return []


# The tools


def test_a_failure_is_told_with_its_reason(told: list[str]) -> None:
    made = surviving([1, 0, 2], lambda n: 2 // n, lambda n: f"{n} is left out", told.append)
    assert list(made) == [2, 1]
    assert told == ["0 is left out: ZeroDivisionError: integer division or modulo by zero"]


def test_what_is_raised_on_purpose_passes(told: list[str]) -> None:
    with pytest.raises(CorpusError), contained("x", told.append):
        raise CorpusError("y")
    with pytest.raises(KeyboardInterrupt), contained("x", told.append):
        raise KeyboardInterrupt
    assert told == []


def test_a_reason_is_one_short_line(told: list[str]) -> None:
    with contained("x", told.append):
        raise OddError("first\n" + "9" * 100_000)
    assert len(told[0]) < 300
    assert "\n" not in told[0]


# Reading logs


def test_one_file_of_a_directory_that_cannot_be_read(
    knowledge: KnowledgeBase, tmp_path: Path, fail: Callable[..., None]
) -> None:
    (tmp_path / "a.log").write_text(f"{BAD}\n")
    (tmp_path / "b.log").write_text(SHM)
    fail(kb.log.reader, "clean_block")
    found = diagnose(Log.from_paths([tmp_path]), knowledge)
    assert found.matches[0].incident.id == SHIPPED
    assert found.notices == (f"cannot read a.log: {FAILURE}",)


def test_one_part_of_a_log_that_cannot_be_scanned(
    knowledge: KnowledgeBase, fail: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kb.log.reader, "BLOCK_BYTES", 1_000)
    calm = "step 1 loss 2.0\n" * 100
    fail(kb.diagnosis.scan, "MarkedBlock")
    log = Log.from_text(f"{calm}{BAD}\n{calm}{SHM}{calm}")
    found = diagnose(log, knowledge)
    assert found.matches[0].incident.id == SHIPPED
    (notice,) = found.notices
    assert notice.startswith("lines 63 to 12")
    assert notice.endswith(f" of the input are left out: {FAILURE}")


def test_a_log_of_which_a_part_is_left_out_is_not_called_healthy(
    knowledge: KnowledgeBase, fail: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kb.log.reader, "BLOCK_BYTES", 1_000)
    calm = "\n".join(f"step {n}/599 loss 2.{n} lr 1e-4 tokens/s 1000" for n in range(1, 600))
    calm += "\ntraining finished"
    assert diagnose(Log.from_text(f"{calm}\n"), knowledge).verdict is Verdict.HEALTHY
    fail(kb.diagnosis.scan, "MarkedBlock")
    found = diagnose(Log.from_text(f"{BAD}\n{calm}\n"), knowledge)
    assert found.verdict is Verdict.UNKNOWN


def _break(path: Path) -> None:
    path.symlink_to("nowhere")


def _damage(path: Path) -> None:
    path.write_bytes(b"\x28\xb5\x2f\xfdbroken")


def _cut(path: Path) -> None:
    path.write_bytes(gzip.compress(DONE.encode() * 50)[:-9])


def _swell(path: Path) -> None:
    path.write_bytes(gzip.compress(b"calm\n" * (1 << 20), 9) * 60 + gzip.compress(DONE.encode()))


@pytest.mark.parametrize("spoil", [_break, _damage, _cut, _swell])
def test_a_job_one_of_whose_files_is_not_read_whole_is_not_called_healthy(
    knowledge: KnowledgeBase, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    for rank in range(3):
        (tmp_path / f"rank_{rank}.log").write_text(DONE)
    assert diagnose(Log.from_paths([tmp_path]), knowledge).verdict is Verdict.HEALTHY
    spoil(tmp_path / "rank_3.log")
    found = diagnose(Log.from_paths([tmp_path]), knowledge)
    assert found.verdict is Verdict.UNKNOWN
    assert [notice for notice in found.notices if "rank_3.log" in notice]


def test_a_dump_that_may_not_be_read_is_one_of_many(
    knowledge: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "b.log").write_text(SHM)
    dump = tmp_path / "nccl_trace_1"
    dump.write_text("{}")
    log = Log.from_paths([tmp_path])
    dump.unlink()  # root may read everything, so the file is gone instead
    found = diagnose(log, knowledge)
    assert found.matches[0].incident.id == SHIPPED
    assert found.notices == ("cannot read nccl_trace_1: No such file or directory",)


# Diagnosing


def test_a_record_that_cannot_be_weighed(
    knowledge: KnowledgeBase, fail: Callable[..., None]
) -> None:
    rest = [match.incident.id for match in diagnose(Log.from_text(SHM), knowledge).matches]
    assert rest[0] == SHIPPED
    fail(kb.diagnosis.retrieval, "_scored", f"Candidate(id='{SHIPPED}'")
    found = diagnose(Log.from_text(SHM), knowledge)
    assert SHIPPED not in {match.incident.id for match in found.candidates}
    assert found.notices == (f"the record {SHIPPED} is left out: {FAILURE}",)


def job(folder: Path) -> Log:
    for name, text in JOB.items():
        (folder / name).write_text(text)
    return Log.from_paths([folder])


@pytest.mark.parametrize("place", range(len(rules.RULES)))
def test_a_rule_of_the_root_cause_that_fails(
    knowledge: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    def odd(_attempt: object) -> None:
        raise OddError("broken on purpose")

    before, after = rules.RULES[:place], rules.RULES[place + 1 :]
    known = diagnose(job(tmp_path), knowledge).job
    assert known
    assert [culprit.rank for culprit in known.culprits] == [1]
    monkeypatch.setattr(rules, "RULES", (*before, odd, rules.RULES[place], *after))
    found = diagnose(job(tmp_path), knowledge)
    assert found.job == known
    if place <= 1:  # the rule that decides here is asked second
        assert found.notices == (f"who failed first is told without the rule odd: {FAILURE}",)


@pytest.mark.parametrize("name", ["compare", "attribute_lines"])
def test_a_job_that_cannot_be_analysed_is_diagnosed(
    knowledge: KnowledgeBase, tmp_path: Path, fail: Callable[..., None], name: str
) -> None:
    import kb.job.analysis

    fail(kb.job.analysis, name, "")
    (tmp_path / "c.log").write_text(SHM)
    found = diagnose(job(tmp_path), knowledge)
    assert found.evidence.total_lines
    assert SHIPPED in {match.incident.id for match in found.candidates}
    assert [notice.partition(": ")[2] for notice in found.notices] == [FAILURE]


def test_one_unit_of_a_batch(
    built_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[..., None],
) -> None:
    monkeypatch.setenv("KB_CACHE", str(built_cache))
    (tmp_path / f"{BAD}.log").write_text(SHM)
    (tmp_path / f"{GOOD}.log").write_text(SHM)
    fail(kb.classify.worker, "open_log")
    with Worker(Settings()) as worker:
        bad, good = (worker.classify(str(tmp_path / f"{name}.log")) for name in (BAD, GOOD))
    assert isinstance(good, Result)
    assert good.incident == SHIPPED
    assert not isinstance(bad, Result)
    assert bad.reason.endswith(FAILURE)


# Results of a batch


def unknown(path: str, text: str) -> Result:
    return Result(path, Verdict.UNKNOWN, None, None, MainLine(path, 7, text, 3, f"host-{path}"))


def results() -> list[Result]:
    return [
        unknown("bad.log", "[rank3]: 2024-05-01 10:00:00 BadError: bad widget"),
        unknown("good.log", "[rank3]: 2024-05-01 10:00:00 JamError: widget 1"),
        unknown("too.log", "[rank3]: 2024-05-01 10:00:00 JamError: widget 2"),
        Result("seen.log", Verdict.MATCH, SHIPPED, 0.9, MainLine("seen.log", 1, SHM)),
    ]


@pytest.mark.parametrize("name", ["_masked", "_cluster"])
def test_a_result_that_cannot_be_grouped(
    fail: Callable[..., None], told: list[str], name: str
) -> None:
    fail(kb.classify.cluster, name)
    summary = summarize(results(), [], told.append)
    assert [result.path for result in summary.results] == [
        "bad.log",
        "good.log",
        "seen.log",
        "too.log",
    ]
    (cluster,) = summary.clusters
    assert [result.path for result in cluster.members] == ["good.log", "too.log"]
    assert told == [f"bad.log: not grouped by message: {FAILURE}"]


def test_a_message_that_drain_fails_at(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from drain3.drain import Drain

    monkeypatch.setattr(Drain, "add_log_message", failing(Drain.add_log_message, "BadError"))
    summary = summarize(results(), [], told.append)
    assert [len(cluster.members) for cluster in summary.clusters] == [2]
    assert len(told) == 1
    assert "BadError" in told[0]


def test_a_row_of_jsonl_that_cannot_be_written(told: list[str]) -> None:
    """A real one: half of a surrogate pair is in no encoding."""
    torn = unknown("torn.log", "x \ud800 y")
    rows = [json.loads(line) for line in encode([*results(), torn], told.append).splitlines()]
    assert [row["path"] for row in rows] == [result.path for result in results()]
    assert len(told) == 1
    assert told[0].startswith("torn.log: no row: ")


def test_a_row_of_csv_that_cannot_be_written(told: list[str]) -> None:
    summary = summarize([*results(), unknown("torn.log", "x \ud800 y")], [])
    table = list(csv.DictReader(io.StringIO(to_csv(summary, told.append).decode())))
    assert [row["path"] for row in table] == ["bad.log", "good.log", "seen.log", "too.log"]
    assert len(told) == 1
    assert told[0].startswith("torn.log: no row: ")


def test_a_row_of_the_table_that_cannot_be_shown(
    fail: Callable[..., None], told: list[str]
) -> None:
    summary = summarize(results(), [])
    fail(kb.views.classify, "_cluster", "BadError")
    text = to_text(summary, told.append).decode()
    assert "JamError" in text
    assert SHIPPED in text
    assert "BadError" not in text
    assert len(told) == 1
    assert told[0].endswith(f": no row: {FAILURE}")


def test_a_time_that_cannot_be_placed(fail: Callable[..., None], told: list[str]) -> None:
    fail(kb.classify.timeline, "_printed")
    found = find_timeline(results()[:3], told.append)
    assert found
    assert sum(slot.counts.total() for slot in found.slots) == 2
    assert told == [f"bad.log is left out of the timeline: {FAILURE}"]


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("_unit", "bad.log"),
        ("_cluster", "cluster "),
        ("_timeline", "the section `timeline`"),
        ("_places", "the section `places`"),
        ("_record", f"record {SHIPPED}"),
    ],
)
def test_a_part_of_the_page_that_cannot_be_shown(
    fail: Callable[..., None], told: list[str], name: str, lost: str
) -> None:
    summary, records = summarize(results(), []), shipped_record()
    whole = to_html(summary, records, told.append).decode()
    assert told == []
    fail(kb.views.page, name, "bad" if name in ("_unit", "_cluster") else "")
    page = to_html(summary, records, told.append).decode()
    assert len(page) < len(whole)
    assert page.rstrip().endswith("</html>")
    assert "JamError: widget 1" in page
    assert len(told) == 1
    assert told[0].startswith(lost)
    assert told[0].endswith(f"left out of the page: {FAILURE}")


def shipped_record() -> dict[str, Incident]:
    file, _problems = IncidentDirectories().find(SHIPPED)
    assert file
    return {SHIPPED: file.read()}


def test_half_of_a_surrogate_pair_does_not_cost_the_page() -> None:
    summary = Summary((*results(), unknown("torn.log", "x \ud800 y")), (), ())
    page = to_html(summary, {}).decode()
    assert "x ? y" in page
    assert "JamError: widget 1" in page


# Records


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Two records of a team; to one of them something will happen."""
    folder = tmp_path / "team"
    folder.mkdir()
    shutil.copy("tests/tui/incidents/shm-too-small.md", folder / "shm-too-small.md")
    text = (folder / "shm-too-small.md").read_text()
    text = text.replace("id: shm-too-small", "id: bad-one").replace("title: ", "title: Bad. ", 1)
    (folder / "bad-one.md").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("module", "name", "what"),
    [
        (kb.markdown, "parse_source", "read this file"),
        (kb.corpus.document, "find_facts", "index this record"),
        (kb.corpus.document, "_words", "index this record"),
    ],
)
def test_a_record_that_cannot_be_indexed(
    team: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, what: str
) -> None:
    text = (team / "bad-one.md").read_text()
    (team / "bad-one.md").write_text(text.replace("NCCL WARN", "bad NCCL WARN"))
    monkeypatch.setattr(module, name, failing_for_texts(getattr(module, name)))
    content = IncidentDirectories(first=team).read({})
    assert [document.id for document in content.documents] == ["shm-too-small"]
    (problem,) = content.problems
    assert (problem.path, problem.code) == ("team/bad-one.md", "SHP117")
    assert problem.message == f"kb cannot {what}: {FAILURE}"


def failing_for_texts(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `failing`, for a function of lines that come one by one."""

    def failing_for_one(first: Any, *others: Any) -> Any:
        whole = first if isinstance(first, bytes | Incident) else list(first)
        return failing(function, "bad")(whole, *others)

    return failing_for_one


def test_kb_list_goes_on_without_a_record(team: Path, fail: Callable[..., None]) -> None:
    fail(kb.markdown, "parse_source")
    records, problems = IncidentDirectories(first=team).load()
    assert [record.id for record in records] == ["shm-too-small"]
    assert [problem.path for problem in problems] == ["team/bad-one.md"]


def test_a_signature_that_does_not_compile(tmp_path: Path) -> None:
    """A real one, as it is after an update of Hyperscan that accepts less."""
    documents = [
        Document(name, name, "words", ("passage",), (pattern,), "", frozenset(), b"")
        for name, pattern in (
            (BAD, Pattern("(?<=look)behind", regex=True)),
            (GOOD, Pattern("NCCL WARN")),
        )
    ]
    store = Store(tmp_path / "index")
    changes = store.update(documents, load_encoder, "m", "state")
    assert changes.rejected == (documents[0].patterns[0],)
    with store.open() as snapshot:
        scanner = snapshot.scanner()
        found = [scanner.patterns[n] for n, _end in scanner.scan(b"x NCCL WARN lookbehind")]
    assert found == [Pattern("NCCL WARN")]


# Lint and diff


@pytest.fixture
def cache(built_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["check", "finish"])
def test_a_rule_of_the_linter_that_fails(
    team: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    rule = next(rule for rule in ALL_RULES if rule.code == "IDS401")
    library = IncidentDirectories(first=team)
    _count, before = lint([], library)
    mark = "bad-one" if method == "check" else ""
    monkeypatch.setattr(type(rule), method, failing(getattr(type(rule), method), mark))
    _count, problems = lint([], library)
    new = [problem for problem in problems if problem not in before]
    path = "team/bad-one.md" if method == "check" else "(all files)"
    assert [(problem.path, problem.code) for problem in new] == [(path, "IDS401")]
    assert new[0].message == f"this rule cannot be checked: {FAILURE}"
    assert set(before) < set(problems)


@pytest.mark.slow
def test_evidence_that_cannot_be_searched_with(
    team: Path, cache: Path, fail: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (team / "bad-one.md").read_text()
    before = shutil.copytree(team, team.with_name("before"))
    (team / "bad-one.md").write_text(text.replace("NCCL WARN", "bad NCCL WARN"))
    library = IncidentDirectories(first=team)
    _count, known = lint([], library)

    def odd(log: Log, *others: Any) -> Any:
        if any(b"bad NCCL" in block.data for block in log.blocks()):
            raise OddError("broken on purpose")
        return diagnose(log, *others)

    monkeypatch.setattr(kb.contribute.lint.context, "diagnose", odd)
    _count, problems = lint([], library)
    new = {(problem.path, problem.code) for problem in problems if problem not in known}
    assert new == {("team/bad-one.md", "SHP117")}
    comparison = compare(IncidentDirectories(first=before), library)
    assert comparison.wrong == ("team/bad-one.md",)
    assert comparison.changed == ("bad-one",)
    assert "shm-too-small" not in {move.incident for move in comparison.moves if not move.after}


@pytest.mark.slow
def test_fixing_goes_on_with_the_next_file(
    team: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kb.contribute.lint.fix

    for path in team.glob("*.md"):
        path.write_text(path.read_text().replace("systems:", "systems:   "))
    broken = failing(kb.contribute.lint.fix.fix_file, "bad-one")
    monkeypatch.setattr(kb.contribute.lint.fix, "fix_file", broken)
    run = CliRunner().invoke(cli, ["lint", "--fix", str(team)])
    assert run.exit_code == 1
    assert f"{team / 'bad-one.md'} is not changed: {FAILURE}" in run.stderr
    assert f"{team / 'shm-too-small.md'}: rewritten in the canonical form" in run.stderr


# History and doctor


def test_a_damaged_search_of_the_history_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    monkeypatch.setenv("KB_STATE", str(tmp_path))
    history = History(Settings(), told.append)
    for text in ("first", "second", "third"):
        history.add(search(text))
    path = tmp_path / "history.json"
    damaged = path.read_bytes().replace(b'"second"', b'"sec\xffnd"')
    path.write_bytes(damaged)
    assert [item.text for item in history.load()] == ["third", "first"]
    assert len(told) == 1
    assert "search 2 is left out" in told[0]
    assert (tmp_path / "history.damaged.json").read_bytes() == damaged
    assert [item.text for item in history.load()] == ["third", "first"]
    assert len(told) == 1


def search(text: str) -> Search:
    from datetime import UTC, datetime

    return Search(datetime.now(UTC), text, (), text, Verdict.UNKNOWN, None, None)


@pytest.mark.slow
def test_doctor_goes_on_with_the_next_check(
    built_cache: Path, monkeypatch: pytest.MonkeyPatch, fail: Callable[..., None]
) -> None:
    import kb.service.doctor

    monkeypatch.setenv("KB_CACHE", str(built_cache))
    names = [check.name for check in run_checks(Settings())]
    fail(kb.service.doctor, "load_encoder", "")
    checks = {check.name: check for check in run_checks(Settings())}
    assert list(checks) == names
    assert checks["encoder"].detail == f"this check failed: {FAILURE}"
    assert checks["index"].good
