"""Whatever is fed to `kb`, it ends with an answer or one sentence, and nothing in it reaches the
terminal. Further: tests/kb/test_log.py, tests/e2e/test_ask.py and tests/e2e/test_classify.py."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from tests.e2e.conftest import ANSWER, QUESTION, Small

pytestmark = pytest.mark.slow


Run = subprocess.CompletedProcess[bytes]
MB = 1 << 20
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def check(run: Run, *codes: int) -> Run:
    """It ended as one of the documented ways, and said nothing that a terminal obeys."""
    assert run.returncode in (codes or (0, 1, 2)), run.stderr
    assert b"Traceback" not in run.stderr
    for output in (run.stdout, run.stderr):
        text = output.decode("utf-8", "replace")
        assert not OBEYED.search(text)
    return run


def answered(run: Run) -> bool:
    """What stands in the log besides the trouble is found."""
    found = json.loads(check(run, 0).stdout)
    return bool(found["matches"][0]["id"] == ANSWER)


CALM = b"2026-11-21 03:00:00 INFO step 7 loss 2.5\n" * 400
GZIP = gzip.compress(QUESTION + CALM)
ZSTD = zstandard.compress(QUESTION + CALM)

INPUTS = {
    "utf-16": QUESTION.decode().encode("utf-16"),
    "utf-16 without mark": QUESTION.decode().encode("utf-16-be"),
    "utf-16 with half a character": QUESTION.decode().encode("utf-16") + b"\x00",
    "latin-1": b"caf\xe9 \xff\xfe\xfd\n" + QUESTION,
    "overlong utf-8": b"\xc0\xaf\xe0\x80\xaf\xf8\x88\x80\x80\x80 \xed\xa0\x80\n" + QUESTION,
    "nul": QUESTION.replace(b" ", b" \0"),
    "cr only": b"one\r" + QUESTION.replace(b"\n", b"\r") + b"three\r",
    "crlf": QUESTION.replace(b"\n", b"\r\n"),
    "form feeds": b"\x0c\x0b\x1c\x1d\x1e\x85\n" + QUESTION,
    "escapes": b"\x1b]0;t\x07\x1b[2J\x1b[31m\x9b31m\x1bP+q\x1b\\\x1b_x\x1b\\" + QUESTION,
    "escape without end": QUESTION + b"\x1b]0;" + b"x" * 3 * MB,
    "markup": b"[bold][/bold][link=file:///etc/passwd]x[/link] [/] [red]\n" + QUESTION,
    "html": b"<script>alert(1)</script>&lt;\n" + QUESTION,
    "bidi": "\u202e\u2066\u200b\ufeff\n".encode() + QUESTION,
    "combining": ("e" + "\u0301" * 50_000 + "\n").encode() + QUESTION,
    "long line before": b"a" * 5 * MB + b"\n" + QUESTION,
    "many short lines": b"\n" * 3 * MB + QUESTION,
    "many different errors": QUESTION + b"".join(b"RuntimeError: e%x\n" % n for n in range(20_000)),
    "many ranks": b"".join(b"[rank%d]: step 1\n" % n for n in range(20_000)) + QUESTION,
    "huge numbers": b"[rank" + b"9" * 500 + b"]: world_size=" + b"9" * 500 + b"\n" + QUESTION,
    "brackets": b"[" * MB + b"\n" + QUESTION,
    "binary before": bytes(range(256)) * 2000 + b"\n" + QUESTION,
    "gzip": GZIP,
    "gzip, truncated": GZIP[:-9],
    "gzip, two members": gzip.compress(CALM) + GZIP,
    "gzip, rubbish behind": GZIP + b"rubbish" * 99,
    "gzip in gzip": gzip.compress(GZIP),
    "zstd": ZSTD,
    "zstd, truncated": ZSTD[:-5],
    "bzip2, truncated": bz2.compress(QUESTION + CALM * 200)[:-40],
    "xz, truncated": lzma.compress(QUESTION + CALM)[:-40],
    "xz, rubbish behind": lzma.compress(QUESTION + CALM) + b"rubbish" * 99,
    "bzip2": bz2.compress(QUESTION + CALM),
    "xz": lzma.compress(QUESTION + CALM),
    "zstd, two frames": zstandard.compress(CALM) + ZSTD,
    "gzip, only the mark": b"\x1f\x8b",
    "zstd, only the mark": b"\x28\xb5\x2f\xfd",
    "zstd, window of terabytes": b"\x28\xb5\x2f\xfd\x00\xf8" + b"\x01" * 40,
    "zip": b"PK\x03\x04" + bytes(range(256)) * 20,
    "elf": Path(sys.executable).resolve().read_bytes()[: 2 * MB],
    "yaml bomb": b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n" * 50,
    "json": json.dumps({"log": QUESTION.decode(), "n": 10**400}).encode(),
}
WITHOUT_ANSWER = {
    "gzip in gzip",
    "gzip, only the mark",
    "zstd, truncated",
    "zstd, only the mark",
    "zstd, window of terabytes",
    "zip",
    "elf",
    "yaml bomb",
    "escape without end",
    "many different errors",
}
"""In which the question does not stand as text, or is one of thousands of errors."""


UNREADABLE = {
    "gzip, only the mark",
    "zstd, only the mark",
    "zstd, truncated",
    "zstd, window of terabytes",
}
"""Of which nothing can be read."""


QUICK = {"utf-16", "nul", "escapes", "markup", "bidi", "gzip, truncated", "zstd, two frames", "zip"}
"""One of each kind; the others are as many processes again."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in INPUTS]
)
def test_any_bytes_are_read(small_installation: Small, tmp_path: Path, name: str) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(INPUTS[name])
    run = small_installation.kb("ask", "--json", "-f", path)
    assert name in WITHOUT_ANSWER or answered(run)
    codes = (2,) if name in UNREADABLE else (0, 1)
    check(run, *codes)
    damaged = "truncated" in name or "rubbish" in name
    assert name in WITHOUT_ANSWER or damaged == (b"job.log is damaged" in run.stderr)
    assert (b"cannot read job.log: it " in run.stderr) == (name in UNREADABLE)
    check(small_installation.kb("ask", stdin=INPUTS[name]), *codes)


@pytest.mark.parametrize("kind", ["gz", "zst", "bz2", "xz"])
def test_a_bomb_is_read_up_to_a_bound_and_named(
    small_installation: Small, tmp_path: Path, kind: str
) -> None:
    pack = {"gz": gzip, "zst": zstandard, "bz2": bz2, "xz": lzma}[kind].compress
    path = tmp_path / f"bomb.{kind}"
    member = pack(b"a\n" * 32 * MB)
    path.write_bytes(member * 9)
    run = check(small_installation.kb("ask", "--json", "-f", path), 0, 1)
    assert f"bomb.{kind} expands to more than 200 times its size".encode() in run.stderr


def test_an_ordinary_archive_of_much_repetition_is_read_whole(
    small_installation: Small, tmp_path: Path
) -> None:
    path = tmp_path / "calm.gz"
    path.write_bytes(gzip.compress(CALM * 4000) + gzip.compress(QUESTION))
    run = small_installation.kb("ask", "--json", "-f", path)
    assert answered(run)
    assert run.stderr == b""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "\x1b]0;owned\x07.log",
        "line\nbreak.log",
        "gpj\u202egol.log",
        "\u009b31m.log",
        "=1+1[red].log",
    ],
)
def test_a_name_is_text(small_installation: Small, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(QUESTION)
    check(small_installation.kb("ask", "-f", path), 0)
    assert answered(small_installation.kb("ask", "--json", "-f", path))
    for form in ("table", "csv", "html", "jsonl"):
        check(small_installation.kb("classify", "--format", form, path), 0)
    row = json.loads(small_installation.kb("classify", "--format", "jsonl", path).stdout)
    assert row["path"] == str(path)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/zero and /proc")
@pytest.mark.parametrize(
    "path",
    [
        "/dev/zero",
        "/dev/null",
        "/dev/stdin",
        "/proc/self/mem",
        "/proc/self/pagemap",
        "/proc/self/task",
        "/proc/kmsg",
    ],
)
def test_devices_are_refused_or_read_as_what_they_are(small_installation: Small, path: str) -> None:
    check(small_installation.kb("ask", "--json", "-f", path))
    check(small_installation.kb("classify", path))


def test_a_pipe_is_read_as_it_is_written(small_installation: Small, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        ["bash", "-c", f"cat > {shlex.quote(str(pipe))}"], stdin=subprocess.PIPE
    )
    assert writer.stdin is not None
    writer.stdin.write(QUESTION)
    writer.stdin.close()
    assert answered(small_installation.kb("ask", "--json", "-f", pipe))
    writer.wait()


def test_a_directory_of_trouble_is_read_around_it(
    small_installation: Small, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    job.mkdir()
    (job / "good.log").write_bytes(QUESTION)
    (job / "loop").symlink_to(job)
    (job / "self").symlink_to("self")
    (job / "nowhere").symlink_to("nothing")
    (job / "empty").write_bytes(b"")
    (job / "trace_0").write_bytes(b"\x80\x02cos\nsystem\n(S'touch /tmp/owned'\ntR.")
    os.mkfifo(job / "pipe")
    Path(os.fsdecode(os.fsencode(job) + b"/\xff\x1b[31m\n[red]")).write_bytes(b"step 1\n")
    assert answered(small_installation.kb("ask", "--json", "-f", job))
    check(small_installation.kb("ask", "-f", job), 0)
    check(small_installation.kb("classify", job), 0)


@pytest.mark.slow
def test_a_file_that_changes_while_it_is_read(small_installation: Small, tmp_path: Path) -> None:
    path = tmp_path / "growing.log"
    path.write_bytes(QUESTION + CALM * 2000)
    change = (
        f"while :; do head -c 3000000 {path} > {path}.n; cat {path}.n > {path}; : > {path}.n; done"
    )
    writer = subprocess.Popen(["bash", "-c", change], stderr=subprocess.DEVNULL)
    try:
        for _ in range(3):
            check(small_installation.kb("ask", "--json", "-f", path), 0, 1)
    finally:
        writer.kill()
        writer.wait()


WORDS = (
    ["ask", ""],
    ["ask", "--", "--json"],
    ["ask", "--", "-f", "--top"],
    ["ask", "\x1b]0;t\x07 NCCL \x9b31m [red]"],
    ["ask", b"\xff\xfe NCCL"],
    ["ask", "--\x1b[31m"],
    ["ask", "--top", "\x1b[31m"],
    ["ask", "--top", "9" * 5000],
    ["ask", "-f", ""],
    ["ask", "-f", "/no/\x1b[31m\n\x07"],
    ["ask", "-f", "a" * 5000],
    ["ask", "--incidents", "\x1b[31m"],
    ["\x1b[31m"],
    ["list", "\x1b]0;t\x07\u202e\x9b31m"],
    ["list", "--\u202e\x07"],
    ["completion", "\u202e"],
    ["new", "--from-cluster", "\u202e\x07"],
    ["show", "\x1b[31m"],
    ["show", "../../../etc/passwd"],
    ["show", "a" * 5000],
    ["list", "--incidents", "/etc/passwd"],
    ["lint", "/no/\x1b[31m.md"],
    ["lint", "a" * 5000],
    ["lint", "/dev/zero"],
    ["classify", "\x1b[31m"],
    ["classify", "a" * 5000],
    ["classify", "[", "[!", "**/["],
    ["classify", "a://b", "://", "file://\x1b[31m"],
    ["classify", "incidents", "--format", "jsonl", "-o", "/no/such/directory"],
    ["classify", "incidents", "--format", "jsonl", "--resume", "-o", "/dev/full"],
    ["eval", "/no/\x1b[31m"],
    ["eval", "."],
    ["new", "--from-log", "/no/\x1b[31m"],
    ["chat", "\x1b[31m NCCL hangs"],
    ["chat", "-f", "/no"],
    ["index", "--incidents", "/no/\x1b[31m"],
    ["completion", "\x1b[31m"],
    ["tui", "/no/\x1b[31m"],
)


@pytest.mark.slow
@pytest.mark.parametrize("words", WORDS, ids=lambda words: repr(words)[:60])
def test_any_words_are_text_or_one_sentence(small_installation: Small, words: list[str]) -> None:
    run = check(small_installation.kb(*words, stdin=b"\x1b[31mwhy\n\xff\x00\nquit\n"))
    if run.returncode == 2:
        assert run.stdout in (b"", b"0 classified: 0 match, 0 possible, 0 unknown, 0 healthy\n")


def test_a_very_long_text_is_a_text(small_installation: Small) -> None:
    assert answered(
        small_installation.kb("ask", "--json", "x" * 100_000 + "\n" + QUESTION.decode())
    )


def test_cells_of_a_spreadsheet_are_no_formulas(small_installation: Small, tmp_path: Path) -> None:
    signs = ("=", "+", "-", "@", "＝", "＋", "－", "＠", " =", "\u3000=", "\t ＝")
    for number, sign in enumerate(signs):
        line = f"{sign}cmd|'/c calc'!A1 RuntimeError: boom {number}\n"
        (tmp_path / f"{sign}{number}.log").write_bytes(CALM + line.encode())
    program = (sys.executable, "-m", "kb")
    run = subprocess.run(
        [
            *program,
            "classify",
            "--format",
            "csv",
            "--jobs",
            "1",
            "--",
            *(p.name for p in tmp_path.iterdir()),
        ],
        capture_output=True,
        cwd=tmp_path,
        env=small_installation.environment(),
    )
    rows = list(csv.DictReader(io.StringIO(check(run, 1).stdout.decode())))
    assert len(rows) == len(signs)
    for row in rows:
        assert row["path"].startswith("'")
        assert not any(re.match(r"\s*[=+@＝＋－＠-]", cell) for cell in row.values())


RECORD = next(Path("incidents").glob("*/xid79-gpu-fallen-off-bus.md"))
RECORDS = {
    "of 5 MB": lambda text: text + "x" * 5 * MB,
    "alias": lambda text: text.replace("kind: incident", "kind: &a incident\ncaution: *a"),
    "tag": lambda text: text.replace("kind: incident", "kind: !!python/object/apply:os.getcwd []"),
    "bomb": lambda text: text.replace("aliases:", "b: &b [x, x]\nc: &c [*b, *b]\naliases:"),
    "deep": lambda text: text.replace("kind: incident", "kind: " + "[" * 9000),
    "deep text": lambda text: text.replace("## Cause\n", "## Cause\n\n" + "> " * 5000 + "x\n"),
    "path in the id": lambda text: text.replace("id: xid79", "id: ../xid79"),
    "open pattern": lambda text: text.replace("signatures:\n", "signatures:\n" + pattern("(abc")),
    "match everything": lambda text: text.replace("signatures:\n", "signatures:\n" + pattern(".*")),
    "huge repeat": lambda text: text.replace(
        "signatures:\n", "signatures:\n" + pattern("(a{999}){99}")
    ),
    "look-behind": lambda text: text.replace("signatures:\n", "signatures:\n" + pattern("(?<=a)b")),
    "link": lambda text: text.replace("https://", "javascript://", 1),
    "escape": lambda text: text.replace("## Cause\n", "## Cause\n\n\x1b]0;owned\x07\n"),
    "not text": lambda _text: "\0" * 1000,
    "empty": lambda _text: "",
    "number as title": lambda text: text.replace("title:", "title: 7 #"),
    "year 0": lambda text: text.replace("created: 2", "created: 0000-00-00 #"),
}  # fmt: skip


def pattern(text: str) -> str:
    return f"- pattern: '{text}'\n  strength: strong\n  regex: true\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDS)
def test_a_hostile_record_is_refused_and_the_others_answer(
    small_installation: Small, tmp_path: Path, name: str
) -> None:
    (tmp_path / f"{RECORD.stem}.md").write_text(RECORDS[name](RECORD.read_text()))
    run = check(small_installation.kb("lint", tmp_path), 1)
    assert b"error[" in run.stdout
    env = {"KB_CACHE": str(tmp_path / "cache")}
    run = small_installation.kb("ask", "--json", "--incidents", tmp_path, env=env)
    assert answered(run)
    assert name in ("match everything", "deep text") or f"{RECORD.stem}.md".encode() in run.stderr


STRANGE_VALUES = {
    "world size": lambda text: text.replace("GPU has fallen", f"world_size={'9' * 40} fallen"),
    "numbers": lambda text: text.replace("GPU has fallen", f"SeqNum={'9' * 5000} fallen"),
    "half of a pair": lambda text: text.replace("title: ", 'title: "x \\ud800 y" #', 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGE_VALUES)
def test_strange_values_in_a_record_stop_no_answer(
    small_installation: Small, tmp_path: Path, name: str
) -> None:
    team = tmp_path / "team"
    team.mkdir()
    text = STRANGE_VALUES[name](RECORD.read_text())
    assert text != RECORD.read_text()
    (team / RECORD.name).write_text(text)
    env = {"KB_CACHE": str(tmp_path / "cache")}
    run = small_installation.kb("ask", "--json", "--incidents", team, env=env)
    assert answered(run)
    left_out = RECORD.name.encode() in run.stderr
    lint = check(small_installation.kb("lint", team, env=env), 0, 1)
    assert (RECORD.name.encode() in lint.stdout) or not left_out


def test_records_that_are_no_files_are_left_alone(
    small_installation: Small, tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere.md").symlink_to("nothing")
    (tmp_path / "zero.md").symlink_to("/dev/zero")
    (tmp_path / "directory.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    env = {"KB_CACHE": str(tmp_path / "cache")}
    assert answered(small_installation.kb("ask", "--json", "--incidents", tmp_path, env=env))


@pytest.mark.slow
def test_records_that_lead_to_each_other_and_twice_the_same(
    small_installation: Small, tmp_path: Path
) -> None:
    text = RECORD.read_text().split("## Distinguish")[0].rstrip()
    evidence = "## Evidence" + RECORD.read_text().split("## Evidence")[1]
    for one, other in (("aa-one", "bb-two"), ("bb-two", "aa-one")):
        body = text.replace(f"id: {RECORD.stem}", f"id: {one}")
        (tmp_path / f"{one}.md").write_text(
            f"{body}\n\n## Distinguish\n\n- `{other}`: Is the lamp of {one} red?\n\n{evidence}"
        )
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "aa-one.md").write_text((tmp_path / "aa-one.md").read_text())
    assert b"IDS401" in check(small_installation.kb("lint", tmp_path), 1).stdout
    env = {"KB_CACHE": str(tmp_path / "cache")}
    xid = b"NVRM: Xid (PCI:0000:02:00): 79, pid=1, GPU has fallen off the bus.\n"
    check(small_installation.kb("ask", "--incidents", tmp_path, stdin=xid, env=env), 0)
    log = tmp_path / "xid.log"
    log.write_bytes(xid)
    said = b"yes\nno\nyes\nwhy\nquit\n"
    run = small_installation.kb("chat", "--incidents", tmp_path, "-f", log, stdin=said, env=env)
    check(run, 0)


ODD = "\x1b]0;owned\x07gpj\u202egol"


def team(directory: Path, *, title: str = "") -> Path:
    """A directory with a record, under a title."""
    directory.mkdir()
    text = RECORD.read_text().replace(f"id: {RECORD.stem}", "id: team-record")
    changed = re.sub("^title: .*", f"title: {title}", text, flags=re.M) if title else text
    (directory / "team-record.md").write_text(changed)
    return directory


def test_titles_of_records_are_text(small_installation: Small, tmp_path: Path) -> None:
    records = team(tmp_path / "team", title="The job hangs gpj\u202egol\u2066 of a lost GPU")
    env = {"KB_CACHE": str(tmp_path / "cache")}
    run = small_installation.kb("list", "--incidents", records, env=env)
    listed = {row.split("\t")[0]: row.split("\t") for row in run.stdout.decode().splitlines()}
    assert listed["team-record"][-1] == "The job hangs gpjgol of a lost GPU"
    shown = small_installation.kb("show", "team-record", "--incidents", records, env=env)
    assert b"gpjgol" in check(shown, 0).stdout


def test_names_of_records_are_text(small_installation: Small, tmp_path: Path) -> None:
    records = team(tmp_path / "team")
    Path(os.fsdecode(os.fsencode(records) + b"/\xff\x1b.md")).write_text("no record")
    (records / f"{ODD}.md").write_text("no record")
    for form in ("text", "json", "github"):
        run = check(small_installation.kb("lint", records, "--format", form), 1)
        assert b"team" in run.stdout
    problems = json.loads(small_installation.kb("lint", records, "--format", "json").stdout)
    assert {f"{records}/{ODD}.md", f"{records}/\ufffd\x1b.md"} <= {
        problem["path"] for problem in problems["problems"]
    }
    words = {"_KB_COMPLETE": "bash_complete", "COMP_WORDS": "kb show ", "COMP_CWORD": "2"}
    env = {**words, "KB_INCIDENTS": str(records)}
    completed = small_installation.kb(env=env).stdout
    assert b"team-record" in completed
    assert not OBEYED.search(completed.decode())


def test_the_name_of_a_draft_is_text(small_installation: Small, tmp_path: Path) -> None:
    draft = tmp_path / f"{ODD}.md"
    log = tmp_path / "job.log"
    log.write_bytes(CALM + b"RuntimeError: odd\n")
    run = check(small_installation.kb("new", "--from-log", log, "-o", draft), 0)
    assert b"gpjgol.md" in run.stdout
    assert draft.exists()


def test_a_list_of_paths_holds_any_names(small_installation: Small, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.log"
    Path(os.fsdecode(name)).write_bytes(QUESTION)
    check(small_installation.kb("classify", "-", stdin=name + b"\n"), 0)
    check(small_installation.kb("classify", "-", stdin=name + b"\0\n"), 2)
