"""Many logs with the real command: files in, rows out."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kb.classify import ResultRow
from kb.classify.cut import CUT_ABOVE_BYTES
from tests.conftest import PATIENCE_S, Run
from tests.e2e.conftest import Small

XID = b"NVRM: Xid (PCI:0000:02:00): 79, pid=1, GPU has fallen off the bus.\n"
CALM = b"".join(b"2026-11-21 03:00:00 INFO step %d loss 2.5 lr 0.1\n" % n for n in range(350))
DONE = b"2026-11-21 03:00:00 INFO training finished\n"
JAMMED = b"[rank%d]: FrobnicateError: widget %d of tray 7 is jammed in the %s sprocket\n"
ALONE = ("--jobs", "1")
"""Without processes of its own, which take longer to start than these logs to read."""
COLUMNS = ["path", "verdict", "incident", "confidence", "file", "line", "text", "cluster"]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Files of all verdicts, plain and compressed, and one that is broken."""
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.log").write_bytes(CALM + XID)
    (folder / "b.log.gz").write_bytes(gzip.compress(CALM + XID))
    (folder / "c.log.zst").write_bytes(zstandard.compress(CALM + DONE))
    (folder / "deep" / "d.log").write_bytes(CALM + JAMMED % (1, 5, b"left"))
    (folder / "deep" / "e.log").write_bytes(CALM + JAMMED % (2, 64, b"right"))
    (folder / "deep" / "f.log").write_bytes(CALM + b"QuuxError: the flange is not grommeted\n")
    return folder


def rows(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def names(output: bytes) -> list[str]:
    return [Path(row["path"]).name for row in rows(output)]


def test_a_file_is_one_row_however_its_path_is_spelt(kb: Run, logs: Path) -> None:
    (logs.parent / "current").symlink_to("logs/deep")
    spelt = (logs / "deep/../a.log", logs / "a.log", logs.parent / "current/../a.log")
    others = (logs / "deep/d.log", logs / "deep/../deep/d.log", logs.parent / "current/d.log")
    run = kb("classify", *ALONE, *spelt, *others, "--format", "jsonl")
    found = {row["path"] for row in rows(run.stdout)}
    assert found == {f"{logs}/a.log", f"{logs.parent}/current/d.log"}
    assert run.stdout.count(b"\n") == len(found)


def test_a_folder_is_one_job_however_its_path_is_spelt(kb: Run, logs: Path) -> None:
    run = kb(
        "classify",
        *ALONE,
        "--unit",
        "job",
        logs / "deep",
        logs / "deep/../deep/.",
        "--format",
        "jsonl",
    )
    assert [row["path"] for row in rows(run.stdout)] == [f"{logs}/deep"]
    run = kb("classify", *ALONE, "--unit", "job", logs, logs / "deep/..", "--format", "jsonl")
    assert [row["path"] for row in rows(run.stdout)] == [str(logs)]


def test_a_row_says_what_and_where(kb: Run, logs: Path) -> None:
    run = kb("classify", *ALONE, logs, "--format", "jsonl")
    assert run.returncode == 0
    found = rows(run.stdout)
    assert all(list(row) == COLUMNS for row in found)
    assert [row["path"] for row in found] == sorted(row["path"] for row in found)
    first = found[0]
    assert first["path"] == str(logs / "a.log")
    assert (first["verdict"], first["incident"]) == ("match", "xid79-gpu-fallen-off-bus")
    assert (first["file"], first["line"], first["text"]) == ("a.log", 351, XID.decode().strip())
    assert [row["verdict"] for row in found[1:3]] == ["match", "healthy"]
    assert found[2] | {"path": ""} == dict.fromkeys(COLUMNS) | {"path": "", "verdict": "healthy"}


def test_unknown_units_that_say_the_same_are_a_cluster(kb: Run, logs: Path) -> None:
    found = {
        Path(row["path"]).name: row
        for row in rows(kb("classify", *ALONE, logs, "--format", "jsonl").stdout)
    }
    assert found["d.log"]["verdict"] == found["f.log"]["verdict"] == "unknown"
    assert found["d.log"]["cluster"] == found["e.log"]["cluster"] != found["f.log"]["cluster"]
    assert found["a.log"]["cluster"] is None


def test_output_is_the_same_whatever_the_processes_and_the_order(kb: Run, logs: Path) -> None:
    one = kb("classify", logs, "--format", "jsonl", "--jobs", "1")
    other = kb(
        "classify", logs / "deep", logs / "c.log.zst", logs, "--format", "jsonl", "--jobs", "3"
    )
    assert one.stdout == other.stdout


def test_csv_has_the_same_columns(kb: Run, logs: Path) -> None:
    table = list(
        csv.DictReader(io.StringIO(kb("classify", *ALONE, logs, "--format", "csv").stdout.decode()))
    )
    assert list(table[0]) == COLUMNS == list(ResultRow.__struct_fields__)
    assert [row["verdict"] for row in table].count("unknown") == 3


def test_table_counts(kb: Run, logs: Path) -> None:
    text = kb("classify", *ALONE, logs).stdout.decode()
    assert "6 classified: 2 match, 0 possible, 3 unknown, 1 healthy" in text
    assert "xid79-gpu-fallen-off-bus" in text
    assert text.index("FrobnicateError: widget") < text.index("QuuxError")


def test_page_is_written_once(kb: Run, logs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert kb("classify", *ALONE, logs, "--format", "html", "-o", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "5 of 6 units show a failure" in text
    assert "GPU has fallen off the bus" in text
    assert text == kb("classify", *ALONE, logs, "--format", "html").stdout.decode()


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [("ray", ("--engine", "ray"), b"[ray]"), ("fsspec", ("memory://logs",), b"[remote]")],
)
def test_what_is_not_installed_is_named_with_the_command(
    small_installation: Small,
    logs: Path,
    tmp_path: Path,
    module: str,
    arguments: tuple[str, ...],
    extra: bytes,
) -> None:
    (tmp_path / f"{module}.py").write_text("raise ImportError\n")
    output = ("--format", "jsonl", "-o", tmp_path / "out.jsonl")
    path = os.pathsep.join(map(str, (tmp_path, small_installation.home)))
    run = small_installation.kb("classify", logs, *arguments, *output, env={"PYTHONPATH": path})
    assert (run.returncode, run.stdout) == (2, b"")
    assert not (tmp_path / "out.jsonl").exists()
    assert b"pip install 'incident-kb" + extra in run.stderr
    assert b"Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "found"),
    [
        (["logs/*.log"], b"", ["a.log"]),
        (["logs/**/*.log"], b"", ["a.log", "d.log", "e.log", "f.log"]),
        (["-"], b"logs/a.log\nlogs/deep/f.log\n\n", ["a.log", "f.log"]),
        (["logs/a.log", "logs/a.log"], b"", ["a.log"]),
        (["file://{here}/logs/deep"], b"", ["d.log", "e.log", "f.log"]),
        (["file://{here}/logs/*.log"], b"", ["a.log"]),
    ],
    ids=["pattern", "deep-pattern", "stdin", "twice", "url", "url-pattern"],
)
def test_inputs_are_named_in_many_ways(
    small_installation: Small, logs: Path, arguments: list[str], stdin: bytes, found: list[str]
) -> None:
    here = str(logs.parent)
    named = [argument.format(here=here) for argument in arguments]
    run = subprocess.run(
        [sys.executable, "-m", "kb", "classify", "--format", "jsonl", "--jobs", "1", *named],
        input=stdin,
        capture_output=True,
        cwd=here,
        env=small_installation.environment(),
    )
    assert names(run.stdout) == found, run.stderr


TREES = {
    "one below, one above": {"latest": "run1", "run1/parent": ".."},
    "itself and above": {"here": ".", "run1/up": ".."},
    "six above": {f"r{number}/up": ".." for number in range(6)},
    "sideways": {f"r{one}/{other}": f"../r{other}" for one in range(4) for other in range(4)},
    "all of the system": {"run1/all": "/"},
}
"""Links in a directory with a log, and where they lead."""


@pytest.mark.parametrize("links", TREES.values(), ids=TREES)
@pytest.mark.parametrize("pattern", ["**/*.log", "**/**/*.log", "**"])
def test_a_pattern_goes_through_no_link_to_a_directory(
    small_installation: Small, tmp_path: Path, links: dict[str, str], pattern: str
) -> None:
    for link, target in links.items():
        (tmp_path / link).parent.mkdir(exist_ok=True)
        (tmp_path / link).symlink_to(target)
    (tmp_path / "run1").mkdir(exist_ok=True)
    (tmp_path / "a.log").write_bytes(CALM + XID)
    (tmp_path / "run1" / "b.log").write_bytes(CALM + DONE)
    run = subprocess.run(
        [sys.executable, "-m", "kb", "classify", "--format", "jsonl", *ALONE, tmp_path / pattern],
        capture_output=True,
        timeout=PATIENCE_S,
        env=small_installation.environment(),
    )
    assert names(run.stdout) == ["a.log", "b.log"]


def test_a_path_of_a_list_that_is_gone_costs_no_other(kb: Run, logs: Path) -> None:
    paths = [
        logs / "a.log",
        logs / "gone.log",
        logs / "gone*.log",
        logs / "deep" / "f.log",
        "~a\0b",
    ]
    listed = "".join(f"{path}\n" for path in paths).encode()
    run = kb("classify", "-", "--format", "jsonl", *ALONE, stdin=listed)
    assert (run.returncode, names(run.stdout)) == (0, ["a.log", "f.log"])
    assert f"cannot read {logs / 'gone.log'}: No such file or directory" in run.stderr.decode()
    assert b"skipped 3 unreadable inputs" in run.stderr
    assert kb("classify", logs / "a.log", logs / "gone.log").returncode == 2


def test_a_job_of_which_nothing_can_be_read_is_unreadable(kb: Run, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    for rank in range(2):
        (tmp_path / "job" / f"rank{rank}.log.gz").write_bytes(b"\x1f\x8b\x08junk")
    run = kb("ask", "-f", tmp_path / "job")
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.startswith(
        b"Error: none of the 2 files can be read; cannot read rank0.log.gz"
    )
    run = kb("classify", *ALONE, "--unit", "job", tmp_path / "job", "--format", "jsonl")
    assert run.stdout == b""
    assert b"skipped 1 unreadable input" in run.stderr


@pytest.mark.slow
def test_modules_in_the_working_directory_are_not_imported(
    small_installation: Small, logs: Path, tmp_path: Path
) -> None:
    script = tmp_path / "kb-as-installed"
    script.write_text("from kb.__main__ import main\nif __name__ == '__main__':\n    main()\n")
    for name in ("struct", "types", "multiprocessing", "msgspec"):
        (logs / f"{name}.py").write_text(f"open({str(logs / 'ran')!r}, 'w')\n")
    run = subprocess.run(
        [sys.executable, script, "classify", "--jobs", "2", "--format", "jsonl", "deep"],
        capture_output=True,
        cwd=logs,
        env=small_installation.environment(),
        timeout=100,
    )
    assert (run.returncode, names(run.stdout)) == (1, ["d.log", "e.log", "f.log"]), run.stderr
    assert not (logs / "ran").exists()


def test_each_directory_is_a_job(kb: Run, tmp_path: Path) -> None:
    for job, text in (("1", XID), ("2", b"")):
        for rank in "01":
            folder = tmp_path / "jobs" / job / rank
            folder.mkdir(parents=True)
            (folder / "stderr.log").write_bytes(CALM + (text if text and rank == "1" else DONE))
    run = kb("classify", *ALONE, tmp_path / "jobs" / "*", "--unit", "job", "--format", "jsonl")
    first, second = rows(run.stdout)
    assert (first["verdict"], second["verdict"]) == ("match", "healthy")
    assert (first["path"], first["file"]) == (str(tmp_path / "jobs" / "1"), "1/stderr.log")


def test_what_cannot_be_read_stops_nothing_and_is_named(kb: Run, logs: Path) -> None:
    gone = logs / "gone.log"
    gone.symlink_to(logs / "nowhere")
    (logs / "half.gz").write_bytes(gzip.compress(CALM + XID)[:60])
    run = kb("classify", *ALONE, logs, gone, "--format", "jsonl")
    assert run.returncode == 0
    assert "gone.log" not in names(run.stdout)
    assert b"skipped 2 unreadable inputs" in run.stderr
    assert b"half.gz: it is damaged" in run.stderr
    assert b"Traceback" not in run.stderr


def test_names_and_texts_are_hostile(kb: Run, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    odd = os.fsdecode(os.fsencode(tmp_path / "logs") + b"/\xff[bold]\n\x1b[2J.log")
    Path(odd).write_bytes(CALM + b"\x1b[2JRuntimeError: [red]boom[/red]\n")
    assert (
        rows(kb("classify", *ALONE, tmp_path / "logs", "--format", "jsonl").stdout)[0]["line"]
        == 351
    )
    run = kb("classify", *ALONE, tmp_path / "logs")
    assert b"\x1b" not in run.stdout + run.stderr
    assert b"[red]boom[/red]" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, b"PATH"),
        (("missing.log",), 2, b"missing.log"),
        (("--resume", "."), 2, b"--resume"),
        (("no-such-protocol://x/y",), 2, b"no-such-protocol"),
    ],
    ids=["nothing", "missing", "resume-without-file", "protocol"],
)
def test_wrong_use_is_one_sentence(
    kb: Run, arguments: tuple[str, ...], code: int, said: bytes
) -> None:
    run = kb("classify", *arguments)
    assert (run.returncode, run.stdout) == (code, b"")
    assert said in run.stderr
    assert b"Traceback" not in run.stderr


def test_exit_code_tells_what_was_found(kb: Run, logs: Path, tmp_path: Path) -> None:
    assert kb("classify", *ALONE, logs / "c.log.zst").returncode == 1
    assert kb("classify", *ALONE, logs / "deep" / "f.log").returncode == 1
    (tmp_path / "empty").mkdir()
    assert kb("classify", *ALONE, tmp_path / "empty").returncode == 2


def test_a_file_is_never_overwritten(kb: Run, logs: Path, tmp_path: Path) -> None:
    for form, goes_on in (("csv", False), ("jsonl", True)):
        output = tmp_path / f"out.{form}"
        output.write_text("mine")
        run = kb("classify", logs, "--format", form, "-o", output)
        assert (run.returncode, output.read_text()) == (2, "mine")
        assert (b"--resume" in run.stderr) is goes_on


def test_a_run_goes_on_where_it_was_torn(kb: Run, logs: Path, tmp_path: Path) -> None:
    whole = kb("classify", *ALONE, logs, "--format", "jsonl").stdout
    output = tmp_path / "out.jsonl"
    output.write_bytes(whole[: whole.index(b"\n") + 30])
    (logs / "a.log").unlink()  # what is done is not read again
    run = kb("classify", *ALONE, logs, "--format", "jsonl", "-o", output, "--resume")
    assert run.returncode == 0, run.stderr
    assert output.read_bytes() == whole


def test_a_foreign_file_is_not_continued(kb: Run, logs: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text('{"some": "thing"}\n')
    run = kb("classify", logs, "--format", "jsonl", "-o", output, "--resume")
    assert run.returncode == 2
    assert output.read_text() == '{"some": "thing"}\n'


@pytest.fixture
def endless(small_installation: Small, logs: Path, tmp_path: Path) -> Iterator[tuple[Any, Path]]:
    """A run that never ends by itself: one of its inputs is a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "pipe")
    output = tmp_path / "out.jsonl"
    command = [
        "classify",
        logs,
        tmp_path / "pipe",
        "--format",
        "jsonl",
        "--jobs",
        "2",
        "-o",
        output,
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "kb", *map(str, command)],
        stderr=subprocess.PIPE,
        cwd=small_installation.home,
        env=small_installation.environment(),
        start_new_session=True,
        # Tests that run in the background of a shell would hand on that this signal is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    yield process, output
    process.kill()


def wait_for_rows(process: subprocess.Popen[bytes], output: Path, count: int) -> None:
    while not output.exists() or output.read_bytes().count(b"\n") < count:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)


def test_ctrl_c_keeps_what_is_done(endless: tuple[Any, Path], kb: Run, logs: Path) -> None:
    process, output = endless
    wait_for_rows(process, output, 6)
    os.killpg(process.pid, signal.SIGINT)
    _output, said = process.communicate()
    assert process.returncode == 130
    assert said.decode().strip() == f"stopped; kept 6 results; continue with: --resume -o {output}"
    assert output.read_bytes() == kb("classify", logs, "--format", "jsonl").stdout


def test_workers_that_hear_nothing_end_with_the_run(endless: tuple[Any, Path]) -> None:
    """As one that hangs on a file system that is gone."""
    process, output = endless
    wait_for_rows(process, output, 6)
    workers = workers_of(process.pid)
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 143
    assert workers
    assert not [worker for worker in workers if is_worker(str(worker))]


def workers_of(pid: int) -> list[int]:
    children = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for child in " ".join(children).split() if is_worker(child)]


def is_worker(pid: str) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return False


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file that all workers scan."""
    path = tmp_path / "large.log"
    megabyte = CALM * (1_000_000 // len(CALM))
    with path.open("wb") as file:
        while file.tell() <= CUT_ABOVE_BYTES // 2:
            file.write(megabyte)
        file.write(JAMMED % (1, 5, b"left") + XID)
        while file.tell() <= CUT_ABOVE_BYTES:
            file.write(megabyte)
    return path


@pytest.mark.slow
def test_all_workers_scan_a_large_file(kb: Run, large: Path, logs: Path) -> None:
    run = kb("classify", large, logs, "--format", "jsonl", "--jobs", "2")
    assert run.stderr == b""
    assert run.stdout == kb("classify", *ALONE, large, logs, "--format", "jsonl").stdout
    assert "large.log" in names(run.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_a_worker_that_dies_costs_no_large_file(
    kb: Run, small_installation: Small, large: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kb", "classify", large, "--format", "jsonl", "--jobs", "2"],
        stdout=subprocess.PIPE,
        cwd=small_installation.home,
        env=small_installation.environment(),
    )
    while not (workers := workers_of(process.pid)):
        assert process.poll() is None
    os.kill(workers[0], signal.SIGKILL)
    output, _said = process.communicate(timeout=PATIENCE_S)
    assert output == kb("classify", *ALONE, large, "--format", "jsonl").stdout


DIES_FIRST = """
import os, signal, time
from concurrent.futures import process

start = process.ProcessPoolExecutor._spawn_process

def start_when_another_died(pool):
    for worker in list(pool._processes.values()):
        os.kill(worker.pid, signal.SIGKILL)
        while not pool._broken:
            time.sleep(0.01)
    start(pool)

process.ProcessPoolExecutor._spawn_process = start_when_another_died
"""
WAITS_FOR_IT = """
end = process._ExecutorManagerThread.join_executor_internals

def end_when_another_started(thread):
    process._ExecutorManagerThread.join_executor_internals = end
    while len(thread.processes) < 2:
        time.sleep(0.01)
    end(thread)

process._ExecutorManagerThread.join_executor_internals = end_when_another_started
"""


@pytest.mark.slow
@pytest.mark.parametrize("script", [DIES_FIRST, DIES_FIRST + WAITS_FOR_IT], ids=["late", "between"])
def test_a_worker_that_dies_while_another_starts_costs_nothing(
    small_installation: Small, logs: Path, tmp_path: Path, script: str
) -> None:
    """It is started when the pool has closed its pipes, or after the others were told to end."""
    (tmp_path / "sitecustomize.py").write_text(script)
    paths = os.pathsep.join([str(tmp_path), str(small_installation.home)])
    run = subprocess.run(
        [sys.executable, "-m", "kb", "classify", logs, "--format", "jsonl", "--jobs", "2"],
        capture_output=True,
        timeout=PATIENCE_S,
        cwd=small_installation.home,
        env={**small_installation.environment(), "PYTHONPATH": paths},
    )
    assert run.returncode == 0, run.stderr
    assert b"Traceback" not in run.stderr
    assert sorted(names(run.stdout)) == sorted(path.name for path in logs.rglob("*.*"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_a_unit_whose_reader_dies_is_unreadable(endless: tuple[Any, Path], tmp_path: Path) -> None:
    process, output = endless
    wait_for_rows(process, output, 6)
    while process.poll() is None:
        for worker in workers_of(process.pid):
            with suppress(ProcessLookupError):  # it ended by itself meanwhile
                os.kill(worker, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
    _output, said = process.communicate()
    assert process.returncode == 0
    assert f"cannot read {tmp_path / 'pipe'}: its worker process died" in said.decode()
    assert output.read_bytes().count(b"\n") == 6


ROW = json.dumps(
    {"path": "a.log", "verdict": "unknown", "incident": None, "confidence": None}
    | {"file": None, "line": 1, "text": "odd", "cluster": "abc"},
    separators=(",", ":"),
).encode()


@pytest.mark.parametrize(
    "damaged",
    [
        ROW.replace(b"odd", b"o\xffd"),
        ROW.replace(b'"odd"', b'"o\\ud800d"'),
        ROW.replace(b'"line":1', b'"line":' + b"9" * 5000),
        ROW.replace(b'"odd"', b"[" * 100_000),
        ROW[:-20],
        b"\0" * 100,
    ],
    ids=["byte", "surrogate", "digits", "deep", "cut", "zeros"],
)
def test_results_that_rotted_are_one_sentence(
    kb: Run, logs: Path, tmp_path: Path, damaged: bytes
) -> None:
    results = tmp_path / "out.jsonl"
    results.write_bytes(ROW + b"\n" + damaged + b"\n")
    form = ("--format", "jsonl", "-o", results, "--resume")
    for run in (
        kb("classify", logs, *form),
        kb("new", "--from-cluster", "abc", "--results", results),
    ):
        assert (run.returncode, run.stdout) == (2, b"")
        assert b"out.jsonl is not a result file of kb classify: line 2" in run.stderr
        assert b"Traceback" not in run.stderr
    assert results.read_bytes() == ROW + b"\n" + damaged + b"\n"


@pytest.mark.parametrize("path", ["a\\u0000b", "\\u001b]0;t\\u0007", "gone.log"])
def test_a_path_of_results_that_no_file_has_is_one_sentence(
    kb: Run, tmp_path: Path, path: str
) -> None:
    results = tmp_path / "out.jsonl"
    results.write_bytes(ROW.replace(b"a.log", path.encode()) + b"\n")
    run = kb("new", "--from-cluster", "abc", "--results", results)
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.startswith(b"Error: cannot read ")
    assert b"\x1b" not in run.stderr


@pytest.mark.parametrize("kind", ["device", "pipe", "sparse"])
def test_results_that_are_no_small_file_are_one_sentence(
    kb: Run, tmp_path: Path, kind: str
) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "rows.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    run = kb("new", "--from-cluster", "x", "--results", path)
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
    assert f"cannot read {path}: it " in run.stderr.decode()
    if kind == "sparse":
        more = ("--format", "jsonl", "-o", path, "--resume")
        run = kb("classify", "benchmarks/samples/nccl-shm.log", *more)
        assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)


def test_names_of_clusters_are_text(kb: Run, tmp_path: Path) -> None:
    results = tmp_path / "out.jsonl"
    odd = b"\\u001b]0;t\\u0007\\u202ex"
    results.write_bytes(ROW.replace(b'"abc"', b'"' + odd + b'"') + b"\n")
    run = kb("new", "--from-cluster", "no", "--results", results)
    assert run.returncode == 2
    assert run.stderr == f"Error: unknown cluster `no`; {results} has x\n".encode()
