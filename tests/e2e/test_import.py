"""`kb import`: a backlog becomes leads, below the records and without any effect on them."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Run
from tests.e2e.conftest import QUESTION, Small

SCHEMA = json.loads(Path("docs/ask.schema.json").read_text(encoding="utf-8"))
ERROR = "EntityTooLarge: your proposed upload exceeds the maximum allowed object size"
ASKED = f"botocore.errorfactory.ClientError: {ERROR}"


def issue(number: int, title: str, body: str, *comments: str, **other: Any) -> dict[str, Any]:
    """As `gh issue list --json` prints it."""
    return {
        "number": number,
        "title": title,
        "body": body,
        "url": f"https://github.com/team/train/issues/{number}",
        "state": "CLOSED" if comments else "OPEN",
        "createdAt": "2025-03-01T10:00:00Z",
        "author": {"login": "reporter"},
        "comments": [
            {
                "author": {"login": "keeper"},
                "authorAssociation": "MEMBER",
                "body": text,
                "createdAt": "2025-03-02T10:00:00Z",
            }
            for text in comments
        ],
        **other,
    }


SECRET = "hf_" + "a1B2c3" * 6
"""Made here: it is none."""
BUCKET = issue(
    7,
    "Checkpoint upload to the object store fails for large shards",
    f"Since we doubled the model, saving ends with an error.\n\n```\n{ASKED}\n```\n",
    "Fixed by using multipart uploads: set `multipart_threshold` to 64 MB. That solved it.",
)
OTHERS = [
    issue(number, f"Loss curve {number} is drawn in white on white", "I cannot see the curves.")
    for number in range(8, 30)
]


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "issues.json"
    path.write_text(json.dumps([BUCKET, *OTHERS]))
    return path


@pytest.fixture
def mine(small: Small) -> Small:
    """An installation whose user has no imports yet."""
    return small


def leads(small: Small, text: str = ASKED) -> list[dict[str, Any]]:
    answer = json.loads(small.kb("ask", "--json", stdin=text.encode()).stdout)
    jsonschema.validate(answer, SCHEMA)
    return list(answer["leads"])


def imported(small: Small, *arguments: str | Path) -> str:
    run = small.kb("import", *arguments, stdin=b"")
    assert run.returncode == 0, run.stderr
    return run.stdout.decode()


def test_an_export_of_issues_becomes_leads(mine: Small, export: Path) -> None:
    assert "23 added" in imported(mine, export, "--into", "team")
    lead = leads(mine)[0]
    assert lead["url"] == BUCKET["url"]
    assert lead["source"].startswith("issues.json#")
    assert lead["resolved"]
    assert "multipart_threshold" in lead["fix"]
    shown = mine.kb("ask", stdin=ASKED.encode()).stdout.decode()
    assert "not reviewed" in shown
    assert BUCKET["url"] in shown
    assert "team: 23 reports" in mine.kb("doctor", stdin=b"").stdout.decode()


@pytest.mark.slow
def test_a_second_run_takes_in_only_what_changed(mine: Small, export: Path) -> None:
    imported(mine, export, "--into", "team")
    assert "not read again" in imported(mine, export, "--into", "team")
    solved = issue(8, OTHERS[0]["title"], OTHERS[0]["body"], "Fixed in 2.1, thanks!")
    newer = export.with_name("newer.json")
    newer.write_text(
        json.dumps([BUCKET, solved, issue(99, "Needs a new logo for the team", "Ours is old.")])
    )
    said = imported(mine, newer, "--into", "team")
    assert "team: 24 reports; 1 added, 1 changed, 0 removed, 1 unchanged" in said


@pytest.mark.slow
def test_a_conversation_opens_a_lead(mine: Small, export: Path) -> None:
    imported(mine, export, "--into", "team")
    said = mine.kb("chat", ASKED, stdin=b"show lead 1\nshow lead 9\n").stdout.decode()
    assert "not reviewed by" in said
    assert "multipart_threshold" in said
    assert str(BUCKET["url"]) in said


@pytest.mark.slow
def test_a_lead_becomes_a_draft(mine: Small, export: Path, tmp_path: Path) -> None:
    imported(mine, export, "--into", "team")
    identifier = leads(mine)[0]["id"]
    draft = tmp_path / "draft.md"
    run = mine.kb("new", "--from-report", identifier, "-o", draft, stdin=b"")
    assert run.returncode == 0, run.stderr
    text = draft.read_text()
    assert "multipart_threshold" in text
    assert str(BUCKET["url"]) in text
    assert "EntityTooLarge" in text
    nobody = mine.kb("new", "--from-report", "nobody", stdin=b"")
    assert nobody.returncode == 2
    assert b"`nobody`" in nobody.stderr


@pytest.mark.slow
def test_gaps_are_what_was_reported_most_often(mine: Small, tmp_path: Path) -> None:
    same = [
        {**BUCKET, "number": n, "url": f"https://github.com/team/train/issues/{n}"}
        for n in (7, 8, 9)
    ]
    path = tmp_path / "issues.json"
    path.write_text(json.dumps([*same, OTHERS[5]]))
    imported(mine, path, "--into", "team")
    (row,) = imported(mine, "--gaps", "--into", "team").splitlines()
    assert row.split()[:4] == ["3", "times", "1", "days"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    [
        f"https://tracker.example/t/7?token={SECRET}",
        f"https://keeper:{SECRET}@tracker.example/t/7",
        f"https://{SECRET}@tracker.example/t/7",
    ],
)
def test_no_secret_of_an_address_is_kept(mine: Small, tmp_path: Path, address: str) -> None:
    path = tmp_path / "issues.json"
    path.write_text(json.dumps([{**BUCKET, "url": address}, *OTHERS]))
    imported(mine, path, "--into", "team")
    (lead,) = leads(mine)[:1]
    assert "tracker.example/t/7" in lead["url"]
    asked = mine.kb("ask", stdin=ASKED.encode()).stdout
    drafted = mine.kb("new", "--from-report", lead["id"], stdin=b"").stdout
    assert drafted
    stored = (mine.cache / "data" / "backlog" / "team.backlog").read_bytes()
    assert not [text for text in (asked, drafted, stored) if SECRET.encode() in text]


@pytest.mark.slow
def test_a_bundle_carries_an_import_to_another_machine(
    mine: Small, export: Path, tmp_path: Path
) -> None:
    imported(mine, export, "--into", "team")
    bundle = tmp_path / "team.kbz"
    imported(mine, "--bundle", bundle, "--into", "team")
    assert bundle.stat().st_mode & 0o077 == 0
    before = leads(mine)
    imported(mine, "--forget", "team")
    assert leads(mine) == []
    imported(mine, bundle, "--into", "team")
    assert leads(mine) == before
    taken = mine.kb("import", "--bundle", bundle, "--into", "team", stdin=b"")
    assert taken.returncode == 2, "no file is overwritten"
    whole = bundle.read_bytes()
    third = len(whole) // 3
    flipped = whole[:third] + bytes([whole[third] ^ 1]) + whole[third + 1 :]
    for damaged in (whole[:-40], flipped, b"I" + whole[1:], whole[:10], b""):
        bundle.write_bytes(damaged)
        refused = mine.kb("import", bundle, "--into", "other", stdin=b"")
        assert refused.returncode == 2
        assert b"Traceback" not in refused.stderr
        assert b"cannot read the bundle" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nowhere.json", "--into", "team"),
        ("nowhere.json",),
        ("--gaps",),
        ("--gaps", "--into", "nobody"),
        ("--forget", "nobody"),
        ("nowhere.json", "--into", "../up"),
        ("nowhere.json", "--into", "team", "--map", "title"),
        ("nowhere.json", "--into", "team", "--map", "titel=Kurz"),
        ("nowhere.json", "--into", "team", "--map", "title=Kurz", "--map", "title=Lang"),
    ],
)
def test_wrong_use_is_one_sentence(kb: Run, arguments: tuple[str, ...]) -> None:
    run = kb("import", *arguments)
    assert run.returncode == 2
    assert b"Traceback" not in run.stderr
    assert run.stderr.strip()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("broken.xml", b"<bug><summary>It hangs</bug>", "broken.xml: cannot be read (broken XML"),
        ("packed.json", b"\x1f\x8b\x08", "packed.json: not text (it is packed; unpack it first)"),
        ("logo.png", b"\x89PNG\r\n\x1a\n\0\0\0", "left out: 1 not text"),
        ("lines.jsonl", b'{"a": 1}\n{"title": \n', "lines.jsonl#2: cannot be read (no JSON)"),
        ("bundle.kbz", b"\x28\xb5\x2f\xfd", "cannot read the bundle"),
    ],
)
def test_an_import_of_which_nothing_can_be_read_is_none(
    mine: Small, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    for _ in range(2):  # it is named each time
        run = mine.kb("import", source, "--into", "team", stdin=b"")
        assert (run.returncode, run.stdout) == (2, b"")
        assert said in run.stderr.decode()
        assert run.stderr.count(b"Error: ") == 1
    assert b"there is none" in mine.kb("import", "--forget", "team", stdin=b"").stderr


def test_what_cannot_be_read_any_more_takes_nothing_away(mine: Small, tmp_path: Path) -> None:
    table = tmp_path / "tickets.csv"
    table.write_text(f"Summary,Description\nUpload fails,{ERROR}\n")
    assert "1 added" in imported(mine, table, "--into", "team")
    wrong = mine.kb("import", table, "--into", "team", "--map", "title=Nope", stdin=b"")
    assert wrong.returncode == 2
    assert b"it has no column Nope" in wrong.stderr
    assert "team: 1 reports; 0 added" in imported(mine, table, "--into", "team")


def test_a_good_source_is_imported_beside_a_bad_one(
    mine: Small, export: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "broken.xml"
    bad.write_text("<bug><summary>It hangs</bug>")
    for _ in range(2):
        run = mine.kb("import", bad, export, "--into", "team", stdin=b"")
        assert run.returncode == 0
        assert b"broken.xml: cannot be read" in run.stderr
    assert b"not read again, as nothing changed: 1 sources" in run.stdout


JIRA = f"""<rss version="0.92"><channel><title>Jira</title><item><title>[GPU-3] Upload fails</title>
<link>https://jira.example.org/browse/GPU-3</link><key>GPU-3</key><summary>Upload fails</summary>
<description>{ERROR}</description></item></channel></rss>
"""
REMARK = (
    "<!--\nRSS generated by JIRA (8.20.10) on a <day> in March; see 'field=key&field=summary'\n-->"
)
STYLE = '<?xml-stylesheet href="https://jira.example.org/jiraxml2html.xsl" type="text/xsl"?>'


@pytest.mark.parametrize(
    "before",
    [
        REMARK,
        f"\n{REMARK}\n<!-- To style it, uncomment this:\n{STYLE}\n-->\n",
        f"{STYLE}\n{REMARK}\n",
        f"<?xml version='1.0'?>{REMARK * 3}",
        '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://x.org/rss.dtd">\n',
    ],
)
def test_what_stands_in_front_of_a_feed_hides_no_report(
    mine: Small, tmp_path: Path, before: str
) -> None:
    feed = tmp_path / "jira.xml"
    feed.write_text(before + JIRA)
    assert "team: 1 reports; 1 added" in imported(mine, feed, "--into", "team")


@pytest.mark.parametrize(
    "before",
    [
        "<!DOCTYPE rss [<!ELEMENT rss ANY>]>",
        f"{REMARK}<!DOCTYPE rss [<!ELEMENT rss ANY>]>",
        '<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    ],
)
def test_declarations_of_a_doctype_are_told_as_what_they_are(
    mine: Small, tmp_path: Path, before: str
) -> None:
    feed = tmp_path / "jira.xml"
    feed.write_text(before + JIRA)
    run = mine.kb("import", feed, "--into", "team", stdin=b"")
    assert run.returncode == 2
    assert b"its DOCTYPE declares elements or entities" in run.stderr


def mail(number: int, body: str, *headers: str) -> str:
    head = (f"Subject: Job {number} fails", f"Message-ID: <{number}@x>", *headers)
    return "\n".join(("From a@x Mon Jan  1 10:00:00 2024", *head, "", body, ""))


def parts(depth: int) -> str:
    """Parts of a mail that lie in each other."""
    levels = range(1, depth + 1)
    return "".join(f'--{n - 1}\nContent-Type: multipart/mixed; boundary="{n}"\n\n' for n in levels)


def test_a_mail_that_is_nested_without_end_takes_no_other_away(mine: Small, tmp_path: Path) -> None:
    box = tmp_path / "team.mbox"
    multipart = 'Content-Type: multipart/mixed; boundary="0"'
    mails = (
        mail(1, ERROR, "From: a@x"),
        mail(2, parts(1_500), "From: a@x", multipart),
        mail(3, "Content-Type: message/rfc822\n\n" * 1_500, "Content-Type: message/rfc822"),
        mail(4, ERROR, f"Content-Type: {'(' * 1_500}"),
        mail(5, ERROR, f"From: {'(' * 1_500}"),
        mail(6, f"{parts(20)}--20\n\n{ERROR}", "From: a@x", multipart),
    )
    box.write_text("".join(mails))
    run = mine.kb("import", box, "--into", "team", stdin=b"")
    assert (run.returncode, b"team: 3 reports" in run.stdout) == (0, True), run
    for number in (2, 3, 4):
        assert f"team.mbox, mail {number}: cannot be read (its parts" in run.stderr.decode()
    assert b"Recursion" not in run.stderr


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("--gaps",), b"kb import --gaps --into NAME"),
        (("--bundle", "team.kbz"), b"kb import --bundle FILE --into NAME"),
    ],
)
def test_what_asks_for_a_name_says_so(kb: Run, arguments: tuple[str, ...], advice: bytes) -> None:
    run = kb("import", *arguments)
    assert (run.returncode, advice in run.stderr) == (2, True), run.stderr


def test_doctor_reads_the_whole_of_each_import(mine: Small, export: Path) -> None:
    imported(mine, export, "--into", "team")
    assert mine.kb("doctor", stdin=b"").returncode == 0
    file = mine.cache / "data" / "backlog" / "team.backlog"
    whole = file.read_bytes()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE reports SET body = x'00' WHERE number = 9")
    connection.close()
    one_report = file.read_bytes()
    for damaged in (one_report, whole[:-8192] + bytes(8192)):
        file.write_bytes(damaged)
        run = mine.kb("doctor", stdin=b"")
        assert run.returncode == 1
        assert b"the import `team` is damaged" in run.stdout
        assert b"kb import --forget team" in run.stdout
        assert b"*" not in run.stdout  # the heading that SQLite sets over its findings


def timeless(small: Small, text: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(small.kb("ask", "--json", stdin=text).stdout)
    return {**answer, "elapsed_ms": 0, "leads": []}


@pytest.mark.slow
def test_the_records_answer_the_same_beside_an_import(mine: Small, export: Path) -> None:
    texts = (QUESTION, ASKED.encode(), b"it hangs in the first all_reduce", "显存不足".encode())
    alone = [timeless(mine, text) for text in texts]
    imported(mine, export, "--into", "team")
    assert [timeless(mine, text) for text in texts] == alone
    data = mine.cache / "data" / "backlog" / "team.backlog"
    data.write_bytes(b"garbage" * 10_000)
    assert [timeless(mine, text) for text in texts] == alone


def test_a_match_shows_no_lead_and_opens_no_import(mine: Small, tmp_path: Path) -> None:
    path = tmp_path / "issues.json"
    path.write_text(
        json.dumps([issue(1, "Shared memory", QUESTION.decode(), "Fixed with a larger /dev/shm.")])
    )
    imported(mine, path, "--into", "team")
    (mine.cache / "data" / "backlog" / "team.backlog").write_bytes(b"garbage")
    run = mine.kb("ask", "--json", stdin=QUESTION)
    answer = json.loads(run.stdout)
    assert (answer["verdict"], answer["leads"], run.stderr) == ("match", [], b"")


@pytest.mark.slow
def test_two_imports_into_one_name_at_once_are_refused(mine: Small, export: Path) -> None:
    from filelock import FileLock

    imported(mine, export, "--into", "team")
    with FileLock(mine.cache / "data" / "backlog" / "team.lock"):
        run = mine.kb("import", export, "--into", "team", stdin=b"")
    assert run.returncode == 2
    assert b"another kb import writes to `team`" in run.stderr


@pytest.mark.slow
def test_what_was_done_survives_a_kill_at_any_moment(mine: Small, tmp_path: Path) -> None:
    path = tmp_path / "issues.json"
    path.write_text(
        json.dumps(
            [issue(n, f"Step {n} of run {n} is slow", f"It takes {n} s.") for n in range(1, 900)]
        )
    )
    command = [sys.executable, "-P", "-m", "kb", "import", str(path), "--into", "team"]
    database = mine.cache / "data" / "backlog" / "team.backlog"
    kept = 0
    for patience in (0.8, 1.2, 1.6, 2.2, 3.0):
        process = subprocess.Popen(
            command, env=mine.environment(), cwd=mine.home, stderr=subprocess.PIPE
        )
        time.sleep(patience)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
        now = _count(database)
        assert now >= kept, "what was there is still there"
        kept = now
    assert "team: 899 reports" in imported(mine, path, "--into", "team")


def _count(database: Path) -> int:
    import sqlite3

    if not database.exists():
        return 0
    with sqlite3.connect(database) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            return 0
        count = connection.execute("SELECT count(*) FROM reports").fetchone()[0]
    connection.close()
    return int(count)


def test_imports_that_cannot_be_read_are_named_and_disturb_no_answer(small: Small) -> None:
    own = {"KB_DATA": "/" + "x" * 300}
    run = small.kb("ask", "--json", stdin=b"RuntimeError: nobody knows this one\n", env=own)
    assert json.loads(run.stdout)["verdict"] == "unknown"
    assert run.stderr.count(b"no leads are shown") == 1
