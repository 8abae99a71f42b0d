"""Exports that were made to hurt: the memory stays bounded, and what is wrong is said."""

from __future__ import annotations

import json
import os
import resource
import signal
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from kb.backlog.bundle import write_bundle
from kb.backlog.importing import Importer
from kb.backlog.model import Thread
from kb.backlog.report import to_report
from kb.backlog.sources import Skipped, Why, read_threads
from kb.backlog.store import BacklogStore
from kb.errors import LogError, OutputError

ISSUE = {"number": 1, "title": "It hangs", "body": "all_reduce hangs", "state": "open"}
MEGABYTE = 1 << 20


def skipped(path: Path) -> list[Skipped]:
    return [one for one in read_threads(path) if isinstance(one, Skipped)]


def titles(path: Path) -> list[str]:
    return [one.title for one in read_threads(path) if isinstance(one, Thread)]


def test_entities_that_grow_are_refused(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    begin = f'<?xml version="1.0"?><!DOCTYPE b [<!ENTITY l0 "ha">{laughs}]>'
    bomb = f"{begin}<bug><summary>&l9;</summary></bug>"
    (tmp_path / "bomb.xml").write_text(bomb)
    (tmp_path / "file.xml").write_text(
        '<!DOCTYPE b [<!ENTITY x SYSTEM "file:///etc/passwd">]><bug><summary>&x;</summary></bug>'
    )
    (tmp_path / "plain.xml").write_text("<bug><summary>&unknown;</summary></bug>")
    assert titles(tmp_path) == []
    assert [one.why for one in skipped(tmp_path)] == [Why.BROKEN] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep.json", '{"title": ' * 200_000),
        ("deeper.json", '[{"title": "a", "body": ' + "[" * 200_000 + "]" * 200_000 + "}]"),
        ("deep.xml", "<bug>" + "<a>" * 200_000),
        ("deep.md", "\n".join(f"{'#' * (n % 6 + 1)} error {n}" for n in range(3_000))),
        ("deep.html", "<html>" + "<div>" * 100_000 + "error"),
        ("quotes.md", ">" * 100_000 + " error"),
        ("fences.md", "# error\n" + "```\n" * 50_001),
        ("stars.md", "**" * 50_000 + "error" + "__" * 50_000),
        ("comments.md", "<!--" * 50_000 + "error"),
    ],
    ids=lambda value: value[:12],
)
def test_deep_and_endless_markup_is_read_or_named(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    reports = [to_report(one, "x") for one in read_threads(tmp_path) if isinstance(one, Thread)]
    assert all(report is None or len(report.symptom) <= 4_000 for report in reports)


@pytest.mark.slow
def test_one_line_without_an_end_takes_bounded_memory(tmp_path: Path) -> None:
    sizes = {
        "a.json": b'{"title": "',
        "b.jsonl": b'{"title": "a"}\n{"title": "',
        "c.csv": b'title,body\n"a","',
    }
    for name, start in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.write(start)
            for _ in range(80):
                file.write(b"x" * MEGABYTE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert {one.source: one.why for one in skipped(tmp_path)} == {
        "a.json": Why.TOO_LARGE,
        "b.jsonl": Why.TOO_LARGE,
        "c.csv": Why.TOO_LARGE,
    }
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 700_000  # kilobytes: far less than the 240 MB of text take as objects


def test_a_header_without_an_end_takes_bounded_memory(tmp_path: Path) -> None:
    words = "=?utf-8?q?x?= " * 20_000
    mail = f"From a Mon Jan 01 00:00:00 2024\nSubject: {words}\n\nRuntimeError: NCCL is gone\n"
    (tmp_path / "a.mbox").write_text(mail)
    tracemalloc.start()
    try:
        assert len(titles(tmp_path)) == 1
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_text_in_other_encodings(tmp_path: Path) -> None:
    issue = {**ISSUE, "body": "训练卡住了，显存不足"}
    text = json.dumps([issue], ensure_ascii=False)
    (tmp_path / "gbk.json").write_bytes(text.encode("gb18030"))
    (tmp_path / "utf16.json").write_bytes(text.encode("utf-16"))
    (tmp_path / "broken.json").write_bytes(text.encode() + b"\xff\xfe")
    (tmp_path / "nul.md").write_bytes(
        b"# It fails\n\nThe job\0 fails with an error at once, again.\n"
    )
    found = {one.source: one for one in read_threads(tmp_path) if isinstance(one, Thread)}
    assert found["gbk.json#1"].posts[0].text == issue["body"]
    assert found["utf16.json#1"].posts[0].text == issue["body"]
    assert "broken.json#1" in found
    assert "\0" not in found["nul.md"].posts[0].text


@pytest.mark.parametrize("name", ["issues.json", "issues.jsonl"])
def test_half_a_letter_takes_no_other_issue_away(tmp_path: Path, name: str) -> None:
    odd = {
        **ISSUE,
        "number": 2,
        "title": "odd \ud800 title",
        "body": "whole \U0001f525, half \udc00",
    }
    issues = [json.dumps(one) for one in (odd, ISSUE)]
    text = "\n".join(issues) if name.endswith("l") else f"[{','.join(issues)}]"
    (tmp_path / name).write_text(text)
    threads = [one for one in read_threads(tmp_path) if isinstance(one, Thread)]
    assert [one.title for one in threads] == ["odd \ufffd title", "It hangs"]
    assert threads[0].posts[0].text == "whole \U0001f525, half \ufffd"
    assert all(to_report(one, "team") for one in threads)


def test_packed_files_are_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros.json", b"0" * MEGABYTE)
    (tmp_path / "issues.json.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"0" * 100)
    assert {str(one) for one in skipped(tmp_path)} == {
        "bomb.zip: not text (it is packed; unpack it first)",
        "issues.json.gz: not text (it is packed; unpack it first)",
    }


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps([ISSUE]))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.json").symlink_to(outside)
    (folder / "loop.json").symlink_to("loop.json")
    os.mkfifo(folder / "pipe.json")
    assert titles(folder) == []
    assert {one.source: one.why for one in skipped(folder)} == {
        "link.json": Why.OUTSIDE,
        "loop.json": Why.OUTSIDE,
    }
    with pytest.raises(LogError, match="neither a file nor a folder"):
        list(read_threads(folder / "pipe.json"))


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([ISSUE]))
    (tmp_path / "b.json").write_text(json.dumps([ISSUE]) + "[{")
    assert titles(tmp_path) == ["It hangs", "It hangs"]
    assert [str(one) for one in skipped(tmp_path)] == [
        "b.json: cannot be read (it ends early, or is no JSON; 1 before it were read)"
    ]


def test_nothing_that_a_terminal_obeys_is_left(tmp_path: Path) -> None:
    issue = {
        **ISSUE,
        "title": "\x1b]0;owned\x07It \u202ehangs\x1b[31m",
        "body": "a\x1b[2Jb \x07error",
    }
    (tmp_path / "issues.json").write_text(json.dumps([issue]))
    (thread,) = (one for one in read_threads(tmp_path) if isinstance(one, Thread))
    report = to_report(thread, "x")
    assert report is not None
    shown = report.title + report.symptom
    assert not any(sign in shown for sign in "\x1b\x07\u202e")


@pytest.mark.slow
def test_long_lines_take_linear_time(tmp_path: Path) -> None:
    text = "please " * 20_000 + "fixed by " * 20_000 + "a" * 100_000 + "@" * 20_000
    posts = {**ISSUE, "body": text, "comments": [{"body": text}, {"body": "it works " * 20_000}]}
    (tmp_path / "issues.json").write_text(json.dumps([posts]))
    (thread,) = (one for one in read_threads(tmp_path) if isinstance(one, Thread))
    assert to_report(thread, "x") is not None


def test_names_that_are_no_utf8_are_imported_and_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "issues"
    folder.mkdir()
    for name in (b"a\xff.json", b"a\xfe.json"):
        issue = {**ISSUE, "title": f"It hangs {name[1]}"}
        (folder / os.fsdecode(name)).write_text(json.dumps([issue]))
    with BacklogStore.create(tmp_path / "team.backlog") as store:
        importer = Importer(store, notify=lambda _: None, progress=lambda *_: None)
        importer.take([folder])
        assert store.size() == importer.summary.added == 2


def test_a_full_disk_leaves_no_half_of_a_bundle(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with BacklogStore.create(tmp_path / "team.backlog") as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
        try:
            with pytest.raises(OutputError):
                write_bundle(store, tmp_path / "team.kbz")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)
    assert not (tmp_path / "team.kbz").exists()
