"""`kb` without a command, names that do not exist, and completion in the shell."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.e2e.conftest import ANSWER, QUESTION, RECORDS, Small


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_bytes(QUESTION)
    return path


def test_a_log_is_answered_like_ask(kb: Run, log: Path) -> None:
    run, asked = kb(log), kb("ask", "-f", log)
    assert ANSWER.encode() in run.stdout
    assert (run.returncode, run.stdout, run.stderr) == (0, asked.stdout, asked.stderr)


def test_a_directory_is_one_job(kb: Run, log: Path) -> None:
    shutil.copy(log, log.with_name("other.log"))
    assert kb(log.parent).stdout == kb("ask", "-f", log.parent).stdout


def test_several_logs_are_one_question(kb: Run, log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text("epoch 1 loss 2.3\n")
    assert kb(log, other).stdout == kb("ask", "-f", log, "-f", other).stdout


def test_piped_input_is_answered_like_ask(kb: Run) -> None:
    run, asked = kb(stdin=QUESTION), kb("ask", stdin=QUESTION)
    assert (run.returncode, run.stdout) == (0, asked.stdout)


def test_a_redirected_file_is_answered(small: Small, log: Path) -> None:
    run = small.kb(program=("sh", "-c", f"{sys.executable} -m kb < {log}"))
    assert ANSWER.encode() in run.stdout


@pytest.mark.parametrize("text", [b"", b"epoch 1 loss 2.3\ntraining finished\n"])
def test_nothing_known_has_exit_code_1(kb: Run, text: bytes) -> None:
    run, asked = kb(stdin=text), kb("ask", stdin=text)
    assert (run.returncode, run.stdout) == (1, asked.stdout)


@pytest.mark.parametrize("closed", ["< /dev/null", "<&-"])
def test_without_pipe_and_terminal_the_help_is_printed(small: Small, closed: str) -> None:
    run = small.kb(program=("sh", "-c", f"{sys.executable} -m kb {closed}"))
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout == small.kb("--help").stdout


def test_a_path_takes_a_teams_incidents(kb: Run, log: Path, tmp_path: Path) -> None:
    run = kb(log, "--incidents", tmp_path / "gone")
    assert run.returncode == 2
    assert b"gone is not a directory" in run.stderr


@pytest.mark.parametrize("option", ["--incidents", "--file"])
def test_an_empty_name_is_not_the_working_directory(kb: Run, option: str) -> None:
    run = kb("ask", option, "", "training hangs")
    assert run.returncode == 2
    assert b"the name of a path is empty" in run.stderr


@pytest.mark.slow
def test_of_many_files_that_are_no_records_some_are_named(kb: Run, tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"note-{number}.md").write_text("# Notes\n")
    run = kb("ask", "--incidents", tmp_path, "training hangs")
    assert b"note-0.md" in run.stderr
    assert b" and 190 more" in run.stderr


def test_a_command_wins_over_a_file_of_its_name(small: Small, log: Path) -> None:
    shutil.copy(log, small.home / "list")
    try:
        run, path = small.kb("list"), small.kb("./list")
    finally:
        (small.home / "list").unlink()
    assert len(run.stdout.splitlines()) == len(RECORDS)
    assert ANSWER.encode() in path.stdout
    assert path.stdout != run.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["aks"], b"Error: unknown command `aks`; did you mean `ask`"),
        (["qqqqq"], b"Error: unknown command `qqqqq`; kb --help lists the commands\n"),
        (["nosuch.log"], b"Error: cannot read nosuch.log: no such file or directory\n"),
        (["NCCL WARN in /dev/shm"], b'Error: to ask about a text, use: kb ask "..."\n'),
        (["no/such"], b"Error: cannot read no/such: no such file or directory\n"),
        (["a" * 5000 + "/b"], b"no such file or directory\n"),
        (["aks\x1b[31m"], b"unknown command `aks"),
        (["show", "xid79-gpu-fallen-off"], b"did you mean `xid79-gpu-fallen-off-bus`?\n"),
        (["show", "qqqqq"], b"Error: unknown record `qqqqq`; run kb list to see all records\n"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_unknown_name_is_one_sentence(kb: Run, arguments: list[str], told: bytes) -> None:
    run = kb(*arguments)
    assert (run.returncode, run.stdout) == (2, b"")
    assert told in run.stderr
    assert run.stderr.count(b"\n") == 1
    assert b"\x1b" not in run.stderr


def test_a_close_cluster_is_suggested(kb: Run, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("Traceback (most recent call last):\nFrobError: no frobs\n")
    results = tmp_path / "results.jsonl"
    assert kb("classify", tmp_path / "a.log", "--format", "jsonl", "-o", results).returncode == 1
    cluster = results.read_text().partition('"cluster":"')[2].partition('"')[0]
    run = kb("new", "--from-cluster", cluster[:-1], "--results", results)
    assert run.returncode == 2
    assert run.stderr == (
        f"Error: unknown cluster `{cluster[:-1]}`; did you mean `{cluster}`?\n".encode()
    )


def complete(kb: Run, words: str, **env: str) -> list[str]:
    """What bash offers for the last word."""
    run = kb(
        env={
            "_KB_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            **env,
        }
    )
    assert run.stderr == b""
    return run.stdout.decode().split()


def test_ids_are_completed(kb: Run) -> None:
    assert complete(kb, "kb show nccl-sh") == ["plain,nccl-shm-too-small-container"]
    assert complete(kb, "kb show ") == [f"plain,{name}" for name in sorted(RECORDS)]
    assert complete(kb, "kb show qqq") == []


def test_ids_of_a_teams_directories_are_completed(kb: Run, tmp_path: Path) -> None:
    for name in ("option", "environment", "file"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"our-{name}.md").write_text("completion reads no Markdown\n")
    config = tmp_path / "config.toml"
    config.write_text(f'incidents = ["{tmp_path / "file"}"]\n')
    env = {"KB_CONFIG": str(config), "KB_INCIDENTS": str(tmp_path / "environment")}
    found = complete(kb, f"kb show --incidents {tmp_path / 'option'} our-", **env)
    assert found == ["plain,our-environment", "plain,our-file", "plain,our-option"]


@pytest.mark.parametrize("wrong", ["KB_INCIDENTS", "KB_CONFIG"])
def test_wrong_settings_complete_nothing(kb: Run, tmp_path: Path, wrong: str) -> None:
    (tmp_path / "bad").write_text("incidnets = 1\n")
    assert complete(kb, "kb show nccl", **{wrong: str(tmp_path / "bad")}) == []


@pytest.mark.parametrize("words", ["kb aks x", "kb job", "kb no/such.log x", "kb tests/e2e --inc"])
def test_a_completion_of_what_is_no_command_is_of_files_and_options(kb: Run, words: str) -> None:
    option = ["plain,--incidents"] if words.endswith("--inc") else [f"file,{words.split()[-1]}"]
    assert complete(kb, words) == option


def test_completion_reads_no_record_and_imports_nothing_heavy(small_installation: Small) -> None:
    code = (
        "import sys\n"
        "from kb.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'faiss', 'hyperscan', 'rich', 'markdown_it', 'yaml'}\n"
        "sys.exit(','.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    words = {"_KB_COMPLETE": "bash_complete", "COMP_WORDS": "kb show x", "COMP_CWORD": "2"}
    run = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        env={**small_installation.environment(), **words},
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout == b"plain,xid79-gpu-fallen-off-bus\n"
