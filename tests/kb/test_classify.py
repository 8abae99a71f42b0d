"""What is made of many results: clusters, a timeline, a page."""

from __future__ import annotations

import random
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kb.classify import (
    Journal,
    MainLine,
    Result,
    Summary,
    Unreadable,
    encode,
    suggest_jobs,
    summarize,
)
from kb.classify.inputs import Unit, find_units
from kb.classify.timeline import find_timeline
from kb.corpus.directories import IncidentDirectories
from kb.errors import CorpusError, LogError, OutputError
from kb.log import Log
from kb.service.service import Service, result_of
from kb.settings import Settings
from kb.verdict import Verdict
from kb.views.page import to_html

HOSTILE = '</q><script>alert(1)</script>{{ 7 * 7 }}<img src=x onerror=alert(1)> it\'s "odd"'
XID = "xid79-gpu-fallen-off-bus"


def unknown(path: str, text: str | None, host: str | None = None) -> Result:
    place = MainLine(path, 7, text, 3, host) if text else None
    return Result(path, Verdict.UNKNOWN, None, None, place)


def match(path: str, text: str) -> Result:
    return Result(path, Verdict.MATCH, XID, 0.9, MainLine(path, 1, text, 2, "gpu-1"))


def jams(count: int) -> list[Result]:
    return [
        unknown(f"{n:03d}.log", f"[rank{n}]: JamError: widget {n} in the {side} tray", f"gpu-{n}")
        for n, side in zip(range(count), ("left", "right") * count, strict=False)
    ]


def page_of(summary: Summary) -> str:
    file, _problems = IncidentDirectories().find(XID)
    assert file is not None
    return to_html(summary, {XID: file.read()}).decode()


def test_clusters_do_not_depend_on_the_order() -> None:
    results = [*jams(40), unknown("q.log", "QuuxError: no grommet"), unknown("silent.log", None)]
    first = summarize(results, [])
    random.Random(1).shuffle(results)
    again = summarize(results, [])
    assert encode(first.results) == encode(again.results)
    assert [len(cluster.members) for cluster in first.clusters] == [40, 1, 1]
    assert {result.cluster for result in first.results} == {c.id for c in first.clusters}


def test_a_cluster_is_known_again_in_another_run() -> None:
    few, many = summarize(jams(10), []), summarize(jams(30), [])
    assert few.clusters[0].id == many.clusters[0].id
    assert few.clusters[0].hosts[:2] == ("gpu-0", "gpu-1")


def test_rows_survive_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    results = [*jams(3), match("m.log", "[rank2]: boom")]
    with Journal(path) as journal:
        for result in results:
            journal.add(result)
    with path.open("ab") as file:
        file.write(b'{"path":"torn')
    with Journal(path, resume=True) as journal:
        assert [result.row() for result in journal.results] == [one.row() for one in results]
        assert [result.main_line and result.main_line.rank for result in journal.results] == [
            0,
            1,
            2,
            2,
        ]
    assert path.read_bytes() == encode(results)


@pytest.mark.parametrize("line", [b"not json\n", b'{"path": 1}\n', b"\n\n", b"mine"])
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(line)
    with pytest.raises(OutputError, match=r"cannot resume|is not a result file"):
        Journal(path, resume=True)
    assert path.read_bytes() == line


def test_timeline_has_no_gaps_and_few_slots() -> None:
    results = [
        match("a", "2026-11-20 03:00:01 boom"),
        match("b", "[2026-11-20T03:10:59,123] boom"),
        unknown("c", "2026-11-21 12:00:00 boom"),
        unknown("no-such-file", "2026-99-99 12:00:00 boom"),
    ]
    found = find_timeline(results)
    assert found is not None
    assert found.step == timedelta(hours=1)
    assert [slot.counts.total() for slot in found.slots] == [2, *[0] * 32, 1]
    assert found.from_files == 0


def test_time_of_the_file_stands_where_the_line_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("boom\n")
    found = find_timeline([match(str(tmp_path / "a.log"), "boom")])
    assert found is not None
    assert (len(found.slots), found.from_files) == (1, 1)
    assert find_timeline([]) is None


def test_nothing_in_a_log_becomes_markup() -> None:
    results = [match(f"{HOSTILE}.log", HOSTILE), unknown("u.log", HOSTILE, HOSTILE)]
    page = page_of(summarize(results, [Unreadable("x", HOSTILE)]))
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "49" not in re.sub(
        r"[0-9a-f]{12}", "", page.partition("<main>")[2].partition('<h2 id="records')[0]
    )
    assert page.count("<script>") == 1


def test_page_loads_nothing_and_leads_to_the_record() -> None:
    page = page_of(summarize([match("m.log", "boom"), *jams(3)], []))
    assert not re.search(r"<(?:link|img|iframe|object)|\bsrc=|@import|url\(", page)
    assert f'href="#{XID}"' in page
    assert f'id="{XID}"' in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    for target in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{target}"' in page, target


def test_page_of_nothing_but_healthy_units() -> None:
    page = to_html(summarize([Result("a", Verdict.HEALTHY, None, None, None)], []), {}).decode()
    assert "0 of 1" in page
    assert "1 healthy units are not listed" in page


@pytest.mark.parametrize(
    "link", ["[d](//evil)", "[d](/\\\\evil)", "[d]\n\n[d]: //evil", "[d](vscode://x)", "[d](x.md)"]
)
def test_links_of_a_record_that_lead_off_the_web_are_text(link: str) -> None:
    file, _problems = IncidentDirectories().find(XID)
    assert file is not None
    source = file.source().replace(
        b"## Cause\n", f"## Cause\n\n{link} <https://ok.example>\n".encode()
    )
    summary = summarize([match("m.log", "boom")], [])
    page = to_html(summary, {XID: file.read(source)}).decode()
    targets = re.findall(r'href="([^"]*)"', page)
    assert "https://ok.example" in targets
    assert all(target.startswith(("#", "https://", "http://")) for target in targets)


def test_a_pattern_of_many_stars_finds_each_file_once(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdefghijklmnopqrstuvwxyz")
    deep.mkdir(parents=True)
    for folder in (deep, *deep.parents[:26]):
        (folder / "a.log").write_text("x")
    assert len(find_units([f"{tmp_path}/{'**/' * 12}*.log"], Unit.FILE)) == 27
    assert len(find_units([f"{tmp_path}/{'**/*/' * 12}*.log"], Unit.FILE)) == 15


def test_what_a_pattern_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs" / "one").mkdir(parents=True)
    (tmp_path / "jobs" / "one" / "a.log").write_text("x")
    (tmp_path / "b.log").write_text("x")
    monkeypatch.chdir(tmp_path)
    assert find_units(["**/*.log"], Unit.FILE) == ["b.log", "jobs/one/a.log"]
    assert find_units(["jobs/*", "./jobs/one", "jobs/one/"], Unit.JOB) == ["jobs/one"]
    assert find_units(["b.log", "./b.log", str(Path.cwd() / "b.log")], Unit.FILE) == ["b.log"]
    assert find_units(["jobs/*/"], Unit.JOB) == ["jobs/one"]
    assert find_units(["./j*/[o]ne/*"], Unit.FILE) == ["jobs/one/a.log"]
    (tmp_path / "latest").symlink_to("jobs/one")
    assert find_units(["late*/**/*.log"], Unit.FILE) == ["latest/a.log"]
    assert find_units(["**/latest/*.log"], Unit.FILE) == ["latest/a.log"]


def test_a_pattern_of_many_stars_ends_whatever_links_lead_in_circles(tmp_path: Path) -> None:
    for one in range(4):
        (tmp_path / f"r{one}").mkdir()
        (tmp_path / f"r{one}" / "up").symlink_to("..")
        for other in range(4):
            (tmp_path / f"r{one}" / f"to{other}").symlink_to(f"../r{other}")
    (tmp_path / "a.log").write_text("x")
    assert len(find_units([f"{tmp_path}/{'**/*/' * 6}*.log"], Unit.FILE)) < 100


def test_whatever_the_library_of_a_url_raises_is_one_sentence() -> None:
    with pytest.raises(LogError, match=r"^cannot read reference://x: .*TypeError"):
        find_units(["reference://x"], Unit.FILE)


def test_a_name_of_megabytes_is_shortened_in_messages(tmp_path: Path) -> None:
    name = "x" * 4_000_000
    with pytest.raises(LogError) as failed:
        find_units([name], Unit.FILE)
    assert len(str(failed.value)) < 1_000
    with pytest.raises(CorpusError, match=r"config\.toml$") as refused:
        IncidentDirectories([name])
    assert len(str(refused.value)) < 1_000


def test_what_lies_beside_logs_is_no_unit(tmp_path: Path) -> None:
    files = {
        "a.log": "boom",
        "README.md": "notes",
        "train.py": "x = 1",
        "truth.json": '{\n "a": 1\n}\n',
        "lines.json": '{"msg": "boom"}\n{"msg": "bang"}\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "job").mkdir()
    named = [str(tmp_path / "README.md")]
    assert find_units([str(tmp_path)], Unit.FILE) == [
        str(tmp_path / "a.log"),
        str(tmp_path / "lines.json"),
    ]
    assert find_units(named, Unit.FILE) == find_units(named, Unit.JOB) == named
    assert str(tmp_path / "job") in find_units([f"{tmp_path}/*"], Unit.JOB)
    assert named[0] not in find_units([f"{tmp_path}/*"], Unit.JOB)


@pytest.mark.parametrize(
    ("files", "suggested"),
    [
        (["one/logs/rank_0.log", "one/logs/rank_1.log", "two/a.log"], "{}/*"),
        (["rank_0.log", "rank_1.log"], "{}"),
        (["one/rank_0.log", "two/rank_0.log"], None),
        (["slurm-4711.out", "slurm-4712.out"], None),
    ],
)
def test_jobs_are_seen_by_the_ranks_in_the_names(
    tmp_path: Path, files: list[str], suggested: str | None
) -> None:
    paths = [str(tmp_path / file) for file in files]
    wanted = suggested and suggested.format(tmp_path)
    assert suggest_jobs([str(tmp_path)], paths) == wanted
    assert suggest_jobs([str(tmp_path), "more"], paths) is None


def test_a_failure_without_a_time_has_that_of_a_line_near_it(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "2026-03-04 05:06:07 INFO started\n2026-03-04 05:06:08 INFO a step\n"
        "Traceback (most recent call last):\nRuntimeError: CUDA error: out of memory\n"
        "at the end\nof it\n2026-03-04 05:09:00 INFO bye\n"
    )
    with Service(Settings()) as service:
        diagnosis = result_of(service.diagnose(lambda: Log.from_paths([log])))
    found = find_timeline([Result.of(str(log), diagnosis)])
    assert found is not None
    assert (found.slots[0].start, found.from_files) == (datetime(2026, 3, 4, 5, 6, 8), 0)


def test_what_matches_is_counted_before_what_is_only_possible() -> None:
    noise = [Result(f"n{n}", Verdict.POSSIBLE, "noise", 0.4, None) for n in range(9)]
    summary = summarize([*noise, match("m.log", "boom")], [])
    assert [name for name, _sure, _perhaps in summary.incidents] == [XID, "noise"]
