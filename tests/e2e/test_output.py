"""What `-o` names: told at once when it cannot be written, never overwritten, never lost."""

from __future__ import annotations

import csv
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.e2e.conftest import PATIENCE_S, QUESTION, Small, wait_until_read

FORMATS = ("csv", "jsonl")
"""One that is written at the end, and one that grows."""
Process = subprocess.Popen[bytes]


class Batch:
    """A run that goes on until it may end: it reads a pipe."""

    def __init__(self, process: Process, pipe: Path) -> None:
        self._process = process
        self._held = wait_until_read(pipe)

    def end(self) -> tuple[int, str]:
        """Give it a line to read, and let it finish; return its exit code and what it says."""
        os.write(self._held, QUESTION)
        os.close(self._held)
        said = self._process.communicate(timeout=PATIENCE_S)[1].decode()
        return self._process.returncode, said


@pytest.fixture
def batch(small_installation: Small, tmp_path: Path) -> Iterator[Callable[..., Batch]]:
    """Start a run: `batch("--format", "csv", "-o", output)`."""
    (tmp_path / "tmp").mkdir()
    started: list[Process] = []

    def run(*arguments: str | Path) -> Batch:
        pipe = tmp_path / f"pipe-{len(started)}"
        os.mkfifo(pipe)
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "kb", "classify", pipe, *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=small_installation.home,
                env=small_installation.environment(TMPDIR=str(tmp_path / "tmp")),
            )
        )
        return Batch(started[-1], pipe)

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where results go."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def left(directory: Path) -> set[str]:
    return {file.name for file in directory.iterdir()}


def full_disk() -> None:
    """Every write fails; making a file does not."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere/x", "nowhere is not a directory"),
        ("file/x", "file is not a directory"),
        ("n" * 256, "File name too long"),
        ("file", "exists"),
        ("link", "is not a file"),
        ("dangling", "is not a file"),
        ("pipe", "is not a file"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_is_read(
    kb: Run, out: Path, pipe: Path, form: str, name: str, said: str
) -> None:
    (out / "file").write_text("mine")
    (out / "link").symlink_to("file")
    (out / "dangling").symlink_to("nothing")
    os.mkfifo(out / "pipe")
    before = left(out)
    run = kb("classify", pipe, "--format", form, "-o", out / name)  # nobody writes to the pipe
    assert run.returncode == 2
    assert said in run.stderr.decode()
    assert run.stderr.count(b"\n") == 1
    assert left(out) == before
    assert (out / "file").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_name_may_be_as_long_as_the_system_allows(kb: Run, out: Path, form: str) -> None:
    name = "n" * 255
    run = kb("classify", "benchmarks/samples/nccl-shm.log", "--format", form, "-o", out / name)
    assert run.returncode == 0, run.stderr
    assert left(out) == {name}
    assert (out / name).stat().st_size
    assert (out / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_appears_during_the_run_is_kept(
    batch: Callable[..., Batch], out: Path, form: str
) -> None:
    target = out / "o.txt"
    running = batch("--format", form, "-o", target)
    target.unlink(missing_ok=True)  # the rows so far, of JSONL
    target.write_text("precious")
    code, said = running.end()
    assert code == 2
    assert f"{target} appeared during the run; the results are in {out / 'o-2.txt'}" in said
    assert target.read_text() == "precious"
    assert (out / "o-2.txt").stat().st_size
    assert left(out) == {"o.txt", "o-2.txt"}


@pytest.mark.slow
def test_two_runs_with_one_output_lose_nothing(batch: Callable[..., Batch], out: Path) -> None:
    arguments = ("--format", "csv", "-o", out / "o.csv")
    first, second = batch(*arguments), batch(*arguments)
    assert [first.end()[0], second.end()[0]] == [0, 2]
    rows = [row for file in out.iterdir() for row in csv.DictReader(file.read_text().splitlines())]
    assert sorted(Path(row["path"]).name for row in rows) == ["pipe-0", "pipe-1"]


@pytest.mark.slow
@pytest.mark.parametrize("first", [(), ("--resume",)])
def test_rows_of_a_run_are_no_others(
    batch: Callable[..., Batch], kb: Run, out: Path, first: tuple[str, ...]
) -> None:
    arguments = ("--format", "jsonl", "-o", out / "o.jsonl")
    running = batch(*arguments, *first)
    for more, said in (((), b"exists"), (("--resume",), b"another run writes to")):
        run = kb("classify", "benchmarks/samples/nccl-shm.log", *arguments, *more)
        assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
        assert said in run.stderr
    assert running.end()[0] == 0
    assert (out / "o.jsonl").read_bytes().count(b"\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_a_full_disk_is_told_before_anything_is_read(
    small_installation: Small, pipe: Path, out: Path, form: str
) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "kb", "classify", pipe, "--format", form, "-o", out / "o"],
        capture_output=True,
        cwd=small_installation.home,
        env=small_installation.environment(),
        preexec_fn=full_disk,
        timeout=PATIENCE_S,
        check=False,
    )  # nobody writes to the pipe
    assert run.returncode == 2
    assert f"Error: cannot write {out / 'o'}: File too large" in run.stderr.decode()
    assert left(out) == set()


@pytest.mark.slow
def test_a_disk_that_fills_up_keeps_the_rows_so_far(
    small_installation: Small, tmp_path: Path, out: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(120):
        (logs / f"{number}.log").write_text(f"RuntimeError: {number} is odd, " + "again " * 300)

    def fills_up() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # SQLite needs 32 kB

    command = ("classify", logs, "--format", "jsonl", "-o", out / "o")
    assert small_installation.kb("index").returncode == 0
    no_half_modules = {"PYTHONDONTWRITEBYTECODE": "1"}
    run = small_installation.kb(*command, before=fills_up, env=no_half_modules)
    assert run.returncode == 2
    assert f"the results so far are in {out / 'o'}, continue with --resume" in run.stderr.decode()
    assert 0 < (out / "o").read_bytes().count(b"\n") < 120
    assert small_installation.kb(*command, "--resume").returncode in (0, 1)
    assert (out / "o").read_bytes().count(b"\n") == 120


@pytest.mark.slow
@pytest.mark.parametrize("output", [True, False])
def test_results_survive_what_cannot_be_shown(
    small_installation: Small, tmp_path: Path, out: Path, output: bool
) -> None:
    program = """
import sys, kb.views.page
def broken(*_):
    raise OverflowError("date value out of range")
kb.views.page.to_html = broken
from kb.__main__ import main
main()
"""
    target = ("-o", out / "o.html") if output else ()
    log = "benchmarks/samples/nccl-shm.log"
    run = small_installation.kb(
        "classify", Path(log).absolute(), "--format", "html", *target,
        program=(sys.executable, "-c", program),
        env={"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert run.returncode == 2
    (kept,) = (out if output else tmp_path).glob("*.jsonl")
    assert f"the results are kept in {kept}" in run.stderr.decode()
    assert b"Traceback" not in run.stderr
    assert log.encode() in kept.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["file", "dangling", "n" * 256])
def test_a_draft_is_refused_before_the_log_is_read(
    kb: Run, out: Path, pipe: Path, name: str
) -> None:
    (out / "file").write_text("mine")
    (out / "dangling").symlink_to("nothing")
    run = kb("new", "--from-log", pipe, "-o", out / name)
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
    assert left(out) == {"file", "dangling"}


@pytest.mark.parametrize(
    "command", [("classify", "pipe"), ("new", "--from-log", "pipe"), ("collect",)]
)
def test_a_name_that_ends_like_a_directory_is_refused(
    kb: Run, out: Path, command: tuple[str, ...]
) -> None:
    run = kb(*command, "-o", f"{out}/x/")
    assert run.returncode == 2
    assert b"names a directory" in run.stderr
    assert left(out) == set()


@pytest.mark.parametrize("name", ["n" * 300, f"{'n' * 300}/x", "/proc/x"])
@pytest.mark.parametrize("command", ["classify", "collect", "new"])
def test_a_name_that_cannot_be_is_told_with_the_name(
    kb: Run, pipe: Path, command: str, name: str
) -> None:
    more = {"classify": [pipe], "new": ["--kind", "check"]}
    run = kb(command, *more.get(command, []), "-o", name)
    assert run.returncode == 2
    assert run.stderr.decode().startswith(f"Error: cannot write {name[:100]}")
    assert run.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "arguments", [["collect"], ["classify", "benchmarks/samples/nccl-shm.log", "--format", "csv"]]
)
def test_a_dash_is_stdout(shipped_kb: Run, arguments: list[str]) -> None:
    plain, dash = shipped_kb(*arguments), shipped_kb(*arguments, "-o", "-")
    assert (dash.returncode, dash.stdout) == (0, plain.stdout)
    assert plain.stdout
    assert not Path("-").exists()


def test_a_dash_is_no_name_of_a_draft(kb: Run) -> None:
    run = kb("new", "--kind", "check", "-o", "-")
    assert run.returncode == 2
    assert b"`-` is not the name of a file; write ./- if you mean it" in run.stderr


def test_a_site_that_cannot_be_written_is_told_before_the_records_are_read(
    small_installation: Small, out: Path
) -> None:
    (out / "file").touch()
    for place, before in ((out / "file" / "site", None), (out / "site", full_disk)):
        run = small_installation.kb("site", place, "--incidents", "/no/records", before=before)
        assert run.returncode == 2
        assert run.stderr.decode().startswith(f"Error: cannot write {out}")
        assert run.stderr.count(b"\n") == 1
    assert left(out) == {"file"}


@pytest.mark.slow
def test_two_sites_at_once_in_one_directory_are_one_site(
    small_installation: Small, tmp_path: Path
) -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "kb", "site", tmp_path / "site"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=small_installation.environment(),
        )
        for _ in range(2)
    ]
    ended = [(*run.communicate(timeout=5 * PATIENCE_S), run.returncode) for run in runs]
    for _output, errors, code in ended:
        assert code == 0 or errors.startswith(f"Error: {tmp_path}".encode()), errors
        assert b"check the disk" not in errors
