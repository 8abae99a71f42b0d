"""Whatever breaks below it, `kb` gives the right answer or one clear sentence.

docs/reliability.md is the table of what is promised; every row names its test.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.conftest import ANSWER, QUESTION, RECORDS, Small

pytestmark = pytest.mark.slow


Run = subprocess.CompletedProcess[bytes]
NOBODY = 65534
_REACHING = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
"""For a stranger who has to read a temporary directory of root."""
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full, /proc")


def right(run: Run) -> bool:
    """The question of these tests is answered."""
    assert run.returncode == 0, run.stderr
    return bool(json.loads(run.stdout)["matches"][0]["id"] == ANSWER)


def one_sentence(run: Run) -> str:
    """What is said where there is no answer."""
    said = run.stderr.decode()
    assert run.returncode == 2, said
    assert "Traceback" not in said
    assert said.startswith(("Error: ", "Usage: "))
    assert run.stdout == b""
    return said


def overwrite(path: Path, start: float, data: bytes) -> None:
    """Put bytes in the middle of a file; `start` is a share of its size."""
    with path.open("r+b") as file:
        file.seek(int(path.stat().st_size * start))
        file.write(data)


def test_a_disk_that_is_full_means_an_index_in_memory(small: Small, tmp_path: Path) -> None:
    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    run = small.kb("ask", "--json", env={"KB_CACHE": str(tmp_path / "new")}, before=full)
    assert right(run)
    assert run.stderr.count(b"\n") == 1
    assert b"in memory" in run.stderr
    assert not list(tmp_path.glob("new/*/*.partial"))


@on_linux
@pytest.mark.parametrize(
    "command",
    [
        "ask --json",
        "list",
        "show xid79-gpu-fallen-off-bus",
        "classify a.log --format csv",
    ],
)
def test_output_that_cannot_be_written_is_one_sentence(
    small: Small, tmp_path: Path, command: str
) -> None:
    inside = f"cd {tmp_path}; echo step 1 > a.log"
    program = ("bash", "-c", f"{inside}; exec {sys.executable} -m kb {command} > /dev/full")
    assert "No space left" in one_sentence(small.kb(program=program, env={"TMPDIR": str(tmp_path)}))


@on_linux
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_messages_that_cannot_be_written_change_no_exit_code(small: Small, unbuffered: str) -> None:
    for command, code in (("ask -f gone.log", 2), ("nonsense", 2), ("ask", 0)):
        program = ("bash", "-c", f"exec {sys.executable} -m kb {command} 2> /dev/full")
        run = small.kb(program=program, env={"PYTHONUNBUFFERED": unbuffered})
        assert run.returncode == code, command


@pytest.fixture
def plain_user() -> tuple[str, ...]:
    """Runs Python as somebody whom permissions bind: root without the right to pass them."""
    if os.geteuid():
        return (sys.executable,)
    bound = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if shutil.which("setpriv") is None or subprocess.run([*bound, "true"]).returncode:
        pytest.skip("this machine does not let root give up rights")
    return (*bound, sys.executable)


def test_a_read_only_cache_is_read(small: Small, plain_user: tuple[str, ...]) -> None:
    for path in [small.cache, *small.cache.glob("index-*")]:
        path.chmod(0o555)
    run = small.kb("ask", "--json", program=(*plain_user, "-m", "kb"))
    assert right(run)
    assert run.stderr == b""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("mode", "said"), [(0o755, b""), (0o700, b"in memory")])
def test_a_cache_that_another_user_made(
    small: Small, plain_user: tuple[str, ...], mode: int, said: bytes
) -> None:
    for path in [*small.cache.rglob("*"), small.cache]:
        os.chown(path, NOBODY, NOBODY)
        path.chmod(mode if path.is_dir() else mode & 0o644)
    elsewhere = {"KB_CONFIG": str(small.home / "none"), "KB_STATE": str(small.home / "state")}
    run = small.kb("ask", "--json", program=(*plain_user, "-m", "kb"), env=elsewhere)
    assert right(run)
    assert said in run.stderr
    indexes = 2  # of incidents, and of checks and playbooks
    assert run.stderr.count(b"\n") == indexes * bool(said)


@pytest.mark.slow
def test_a_damaged_cache_that_is_read_only_is_answered_from_memory(
    small: Small, plain_user: tuple[str, ...]
) -> None:
    overwrite(small.vectors, 0.5, b"\xff" * 99)
    for path in [small.cache, *small.cache.glob("index-*")]:
        path.chmod(0o555)
    run = small.kb("ask", "--json", program=(*plain_user, "-m", "kb"))
    assert right(run)
    assert b"in memory" in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("what", ["log", "directory", "record"])
def test_what_may_not_be_read_is_named(
    small: Small, tmp_path: Path, plain_user: tuple[str, ...], what: str
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "secret.md").write_text("x")
    (closed / "secret.md").chmod(0)
    program = (*plain_user, "-m", "kb")
    if what == "record":
        run = small.kb("ask", "--json", "--incidents", closed, program=program)
        assert right(run)
        assert b"closed/secret.md" in run.stderr
    elif what == "log":
        said = one_sentence(small.kb("ask", "-f", closed / "secret.md", program=program))
        assert "secret.md" in said
    else:
        closed.chmod(0)
        assert "closed" in one_sentence(small.kb("ask", "-f", closed, program=program))
        closed.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0, 0o444])
def test_a_folder_of_records_that_is_closed_is_named(
    small: Small, tmp_path: Path, plain_user: tuple[str, ...], mode: int
) -> None:
    closed = tmp_path / "team" / "closed"
    closed.mkdir(parents=True)
    (closed / "secret.md").write_text("x")
    closed.chmod(mode)
    program = (*plain_user, "-m", "kb")
    team = tmp_path / "team"
    try:
        run = small.kb("ask", "--json", "--incidents", team, program=program)
        assert right(run)
        assert b"team/closed" in run.stderr
        run = small.kb("lint", team, program=program)
        assert run.returncode == 1
        assert b"Permission denied" in run.stdout
    finally:
        closed.chmod(0o755)


@pytest.mark.slow
def test_a_folder_of_logs_that_is_closed_is_named(
    small: Small, tmp_path: Path, plain_user: tuple[str, ...]
) -> None:
    (tmp_path / "logs" / "closed").mkdir(parents=True)
    (tmp_path / "logs" / "a.log").write_bytes(QUESTION)
    closed = tmp_path / "logs" / "closed"
    closed.chmod(0)
    program = (*plain_user, "-m", "kb")
    try:
        run = small.kb("ask", "--json", "-f", tmp_path / "logs", program=program)
        assert right(run)
        assert run.stderr == b"cannot read closed: Permission denied\n"
        run = small.kb("classify", tmp_path / "logs", "--format", "csv", program=program)
        assert run.returncode == 0
        assert f"cannot read {closed}".encode() in run.stderr
    finally:
        closed.chmod(0o755)


def test_a_user_without_a_home_is_told_what_to_set(small: Small) -> None:
    stranger = ("setpriv", "--reuid=54321", "--clear-groups", *_REACHING, sys.executable)
    try:
        subprocess.run([*stranger, "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine does not let one be a user without an entry")
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(small.home)}
    run = subprocess.run(
        [*stranger, "-m", "kb", "ask"],
        input=QUESTION, capture_output=True, cwd=small.home, env=env,
    )  # fmt: skip
    assert "set HOME" in one_sentence(run)


@pytest.mark.slow
@pytest.mark.parametrize("home", ["/nonexistent/home", "/dev/null"])
def test_a_home_that_cannot_be_written_is_no_obstacle(small: Small, home: str) -> None:
    kept = {k: v for k, v in small.environment().items() if not k.startswith(("KB_", "XDG_"))}
    run = subprocess.run(
        [sys.executable, "-m", "kb", "ask", "--json"],
        input=QUESTION, capture_output=True, cwd=small.home, env={**kept, "HOME": home},
    )  # fmt: skip
    assert right(run)
    assert b"Traceback" not in run.stderr


def test_a_cache_of_another_version_is_built_again(small: Small) -> None:
    with closing(sqlite3.connect(small.database)) as connection, connection:
        connection.execute("UPDATE meta SET value = 1 WHERE key = 'schema'")
    first, second = small.kb("ask", "--json"), small.kb("ask", "--json")
    assert right(first)
    assert b"another version" in first.stderr
    assert right(second)
    assert second.stderr == b""


@pytest.mark.slow
@pytest.mark.parametrize("start", [0.0, 0.3, 0.6])
def test_a_damaged_database_is_built_again(small: Small, start: float) -> None:
    overwrite(small.database, start, b"\xa5" * 40_000)
    first, second = small.kb("ask", "--json"), small.kb("ask", "--json")
    assert right(first)
    assert b"Traceback" not in first.stderr
    assert right(second)


@pytest.mark.parametrize("left", [b"", b"x" * 10_000])
def test_a_database_that_is_none_is_built_again(small: Small, left: bytes) -> None:
    small.database.write_bytes(left)
    assert right(small.kb("ask", "--json"))


def test_vectors_that_are_gone_are_made_again(small: Small) -> None:
    small.vectors.unlink()
    assert right(small.kb("ask", "--json"))


@pytest.mark.slow
@pytest.mark.parametrize("table", ["documents", "lexical", "occurrences"])
def test_rows_that_are_lost_are_noticed_while_searching(small: Small, table: str) -> None:
    with closing(sqlite3.connect(small.database)) as connection, connection:
        connection.execute(f"DELETE FROM {table}")
    first, second = small.kb("ask", "--json"), small.kb("ask", "--json")
    assert right(first)
    assert b"damaged" in first.stderr
    assert right(second)
    assert second.stderr == b""


def test_a_record_that_changed_in_the_database_is_not_shown(small: Small) -> None:
    with closing(sqlite3.connect(small.database)) as connection, connection:
        connection.execute(
            "UPDATE documents SET payload = CAST(replace(CAST(payload AS TEXT), 'df -h', 'rm -r')"
            " AS BLOB)"
        )
    run = small.kb("ask", "--json")
    assert right(run)
    assert b"rm -r" not in run.stdout
    assert b"rebuilding it" in run.stderr


@pytest.mark.parametrize(("start", "damage"), [(0.0, bytes(99)), (0.5, b"\xff")])
def test_damaged_vectors_are_built_again(small: Small, start: float, damage: bytes) -> None:
    overwrite(small.vectors, start, damage)
    first, second = small.kb("ask", "--json"), small.kb("ask", "--json")
    assert right(first)
    assert b"is damaged; rebuilding it" in first.stderr
    assert right(second)
    assert second.stderr == b""


def test_vectors_that_rotted_in_the_database_are_not_built_upon(small: Small) -> None:
    with closing(sqlite3.connect(small.database)) as connection, connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(length(vector))")
    small.vectors.unlink()
    assert right(small.kb("ask", "--json"))


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["database", "vectors"])
def test_a_directory_in_the_place_of_a_file_is_no_obstacle(small: Small, victim: str) -> None:
    path: Path = getattr(small, victim)
    path.unlink()
    path.mkdir()
    run = small.kb("ask", "--json")
    assert right(run)
    assert b"Traceback" not in run.stderr


def test_doctor_reads_the_whole_index(small: Small) -> None:
    assert small.kb("doctor").returncode == 0
    with closing(sqlite3.connect(small.database)) as connection, connection:
        connection.execute("UPDATE documents SET payload = zeroblob(9)")
    run = small.kb("doctor")
    assert run.returncode == 1
    assert b"run: kb index --rebuild" in run.stdout


@pytest.fixture
def own(small: Small, tmp_path: Path) -> Small:
    """An installation whose program can be damaged as well."""
    home = Path(shutil.copytree(small.home, tmp_path / "home"))
    made = Small(home, tmp_path / "own-cache")
    assert made.kb("index").returncode == 0
    return made


@pytest.mark.slow
def test_markers_that_changed_are_compiled_for_the_index_once(own: Small) -> None:
    markers = own.home / "kb" / "rules" / "markers.toml"
    known = markers.read_text("utf-8")
    markers.write_text(known.replace(r"Traceback \(most", r"[Tt]raceback \(most"), "utf-8")
    before = own.database.read_bytes()
    answers, indexes = [], []
    for _ in range(2):
        answers.append(own.kb("ask", "--json", program=(sys.executable, "-m", "kb")))
        indexes.append(own.database.read_bytes())
    assert all(map(right, answers))
    assert before != indexes[0] == indexes[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "provenance.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut"])
def test_a_broken_model_is_one_sentence(own: Small, name: str, damage: str) -> None:
    path = own.home / "index" / "model" / name
    whole = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(b"" if damage == "empty" else whole[: len(whole) // 2])
    assert "reinstall incident-kb" in one_sentence(own.kb("ask", "--json"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.onnx", "weights.npz", "acts.json"])
def test_a_broken_classifier_of_acts_is_one_sentence_in_a_conversation_only(
    own: Small, name: str
) -> None:
    path = own.home / "kb" / "conversation" / "act_model" / name
    path.write_bytes(path.read_bytes()[:500])
    talk = own.kb("chat", "NCCL hangs", stdin=b"thanks a lot to you all\n")
    assert talk.returncode == 2
    assert talk.stderr.startswith(b"Error: ")
    assert b"reinstall incident-kb" in talk.stderr
    assert b"Traceback" not in talk.stderr
    assert right(own.kb("ask", "--json"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_model_that_rotted_gives_no_vectors(own: Small, name: str) -> None:
    overwrite(own.home / "index" / "model" / name, 0.5, b"~")
    assert "reinstall incident-kb" in one_sentence(own.kb("ask", "--json"))


@pytest.mark.slow
def test_another_model_means_another_index(own: Small) -> None:
    path = own.home / "index" / "model" / "provenance.json"
    provenance = json.loads(path.read_bytes())
    provenance["model"] = "another"
    path.write_text(json.dumps(provenance))
    assert right(own.kb("ask", "--json"))
    assert len(list(own.cache.glob("index-*"))) == 2


@pytest.mark.slow
def test_ten_processes_at_once_on_a_damaged_index(small: Small) -> None:
    overwrite(small.vectors, 0.5, bytes(5000))
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "kb", "ask", "--json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=small.home,
            env=small.environment(),
        )
        for _ in range(10)
    ]
    for process in running:
        output, said = process.communicate(QUESTION, timeout=200)
        assert process.returncode == 0, said
        assert json.loads(output)["matches"][0]["id"] == ANSWER


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "share"),
    [
        (signal.SIGKILL, 0.5),
        (signal.SIGKILL, 0.8),
        (signal.SIGKILL, 0.95),
        (signal.SIGTERM, 0.7),
        (signal.SIGINT, 0.7),
    ],
)
def test_killed_while_building_the_next_one_answers(
    small: Small, number: signal.Signals, share: float
) -> None:
    started = time.monotonic()
    assert small.kb("index", "--rebuild").returncode == 0
    whole = time.monotonic() - started
    process = subprocess.Popen(
        [sys.executable, "-m", "kb", "index", "--rebuild"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=small.home,
        env=small.environment(),
        # Tests that run in the background of a shell would hand on that this signal is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(whole * share)
    process.send_signal(number)
    _output, said = process.communicate(timeout=100)
    assert b"Traceback" not in said
    run = small.kb("ask", "--json")
    assert right(run)
    assert run.stderr == b""


@pytest.mark.slow
@pytest.mark.parametrize("when", [0, 4_000_000_000])
def test_a_clock_that_jumps_changes_nothing(own: Small, when: int) -> None:
    for path in [*own.cache.rglob("*"), *own.home.glob("incidents/*/*.md")]:
        os.utime(path, (when, when))
    assert right(own.kb("ask", "--json"))
    assert f"{len(RECORDS)} unchanged" in own.kb("index").stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["ask x", "ask", "chat x", "classify -"])
def test_a_closed_stream_is_no_traceback(small: Small, command: str, stream: str) -> None:
    program = ("bash", "-c", f"exec {sys.executable} -m kb {command} {stream}")
    run = small.kb(program=program)
    assert run.returncode in (0, 1, 2)
    assert b"Traceback" not in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"TERM": ""},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"COLUMNS": "1", "LINES": "0"},
        {"COLUMNS": "-7", "TERM": "\x1b"},
        {"COLUMNS": "²", "LINES": "9" * 5000},
        {"TMPDIR": "/nonexistent"},
    ],
    ids=["no TERM", "LANG=C", "ascii", "narrow", "nonsense", "no number", "no TMPDIR"],
)
def test_odd_surroundings_change_nothing(small: Small, settings: dict[str, str]) -> None:
    run = small.kb("ask", env=settings)
    assert run.returncode == 0, run.stderr
    assert ANSWER in run.stdout.decode()
    assert run.stderr == b""


def test_a_directory_that_was_deleted_is_no_traceback(small: Small) -> None:
    line = f"mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} -m kb ask --json"
    assert right(small.kb(program=("bash", "-c", line)))


def test_workers_start_in_a_directory_that_was_deleted(small: Small, tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(QUESTION)
    program = f"exec {sys.executable} -m kb classify --jobs 2 --format jsonl {tmp_path}/*.log"
    line = f"mkdir lost; cd lost; rmdir ../lost; {program}"
    run = small.kb(program=("bash", "-c", line))
    assert run.returncode == 0, run.stderr
    assert run.stdout.count(ANSWER.encode()) == 2


def test_few_files_may_be_open(small: Small) -> None:
    assert right(small.kb("ask", "--json", before=lambda: _allow_files(20)))


def test_too_few_open_files_are_one_sentence_and_no_damage(small: Small, tmp_path: Path) -> None:
    """What could not be opened says nothing: neither that nothing is known, nor that the index is
    damaged."""
    log = tmp_path / "job.log"
    log.write_bytes(QUESTION)
    assert small.kb("ask", "-f", log).returncode == 0
    built = [*small.cache.rglob("*.sqlite"), *small.cache.rglob("*.faiss")]
    before = [path.stat().st_ino for path in built]
    for limit in range(6, 12):
        run = small.kb("ask", "-f", log, before=lambda limit=limit: _allow_files(limit))  # type: ignore[misc]
        if run.returncode == 0:
            assert ANSWER in run.stdout.decode()
            continue
        assert (run.returncode, run.stdout) == (2, b"")
        assert b"Traceback" not in run.stderr
    assert [path.stat().st_ino for path in built] == before


def _allow_files(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


ENCODINGS = (
    "ascii",
    "big5",
    "gbk",
    "latin-1",
    "shift_jis",
)
FOREIGN = "/dev/shm/nccl-\u00e9\u663e\U0001f525 is full …\n".encode() + QUESTION
"""Some sign of it is lacking in each of the encodings."""


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_sign_that_the_encoding_lacks_becomes_a_plain_one(small: Small, encoding: str) -> None:
    env = {"PYTHONIOENCODING": encoding}
    run = small.kb("ask", stdin=FOREIGN, env=env)
    assert (run.returncode, run.stderr) == (0, b"")
    text = run.stdout.decode(encoding)
    assert ANSWER in text
    assert "\\u" not in text
    bar = re.search(r"% (\S+)  nccl", text)
    assert bar
    assert re.fullmatch("[█#]+[░-]*", bar[1])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_loses_nothing_in_any_encoding(small: Small, tmp_path: Path, encoding: str) -> None:
    log = tmp_path / "\u663e.log"
    log.write_bytes(FOREIGN)
    for command in (["ask", "--json", "-f", log], ["classify", "--format", "jsonl", log]):
        whole, read = (
            json.loads(small.kb(*command, env={"PYTHONIOENCODING": each}).stdout.decode(each))
            for each in ("utf-8", encoding)
        )
        for answer in (whole, read):
            answer.pop("elapsed_ms", None)
        assert read == whole


@pytest.mark.parametrize("form", ["table", "csv", "html"])
def test_results_of_a_batch_are_printed_in_any_encoding(
    small: Small, tmp_path: Path, form: str
) -> None:
    log = tmp_path / "\u663e.log"
    log.write_bytes(FOREIGN)
    run = small.kb("classify", "--format", form, log, env={"PYTHONIOENCODING": "latin-1"})
    assert (run.returncode, run.stderr) == (0, b"")
    assert ANSWER in run.stdout.decode("ascii")
    assert form != "html" or "&#26174;.log" in run.stdout.decode()


def test_a_completion_for_an_unknown_shell_is_one_sentence(small: Small) -> None:
    assert "_KB_COMPLETE" in one_sentence(small.kb(env={"_KB_COMPLETE": "tcsh_source"}))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"COMP_WORDS": "kb"},
        {"COMP_WORDS": "kb", "COMP_CWORD": "x"},
        {"COMP_WORDS": "kb", "COMP_CWORD": "9" * 5000},
        {"_KB_COMPLETE": "fish_complete", "COMP_WORDS": "kb", "COMP_CWORD": " "},
    ],
    ids=["unset", "no place", "no number", "digits", "nothing"],
)
def test_an_odd_completion_is_one_sentence(small: Small, settings: dict[str, str]) -> None:
    said = one_sentence(small.kb(env={"_KB_COMPLETE": "bash_complete", **settings}))
    assert "COMP_WORDS" in said


@pytest.mark.parametrize("part", ["views/text.py", "log/reader.py"])
def test_a_part_that_cannot_be_loaded_is_one_sentence(own: Small, part: str) -> None:
    (own.home / "kb" / part).unlink()
    said = one_sentence(own.kb("ask", program=(sys.executable, "-m", "kb")))
    assert "reinstall incident-kb" in said
    assert "ulimit -v" in said
