"""`kb chat` and `kb eval --chat` with the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.e2e.conftest import Small

SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"


def test_a_piped_conversation_has_a_turn_a_line(shipped_kb: Run) -> None:
    spoken = "why\nnot in docker\nundo\nquit\nnever read\n"
    run = shipped_kb("chat", SHM, stdin=spoken.encode())
    assert run.returncode == 0, run.stderr
    text = run.stdout.decode()
    opening, why, absent, undone = text.split("\n> ")[:4]
    assert "[nccl-shm-too-small-container]" in opening
    assert "\n  1. " in opening
    assert "\n? " in opening
    assert "1) " in opening
    assert "line 1" in why
    assert "less likely" in absent
    assert "Undone" in undone
    assert "never read" not in text
    assert "\x1b" not in text


def test_the_question_is_the_one_that_ask_shows(shipped_kb: Run) -> None:
    question = json.loads(shipped_kb("ask", "--json", SHM).stdout)["question"]
    text = shipped_kb("chat", SHM).stdout.decode()
    assert " ".join(question["text"].split()) in " ".join(text.split())
    for number, answer in enumerate(question["answers"], 1):
        assert f"{number}) {answer}" in text


def test_ask_shows_the_answers_of_a_question(shipped_kb: Run) -> None:
    question = json.loads(shipped_kb("ask", "--json", SHM).stdout)["question"]
    text = " ".join(shipped_kb("ask", SHM).stdout.decode().split())
    assert ", ".join(question["answers"]) in text


def test_a_log_file_and_chinese_words(shipped_kb: Run) -> None:
    run = shipped_kb(
        "chat", "-f", "benchmarks/samples/nccl-shm.log", stdin="为什么\n下一步\n".encode()
    )
    text = run.stdout.decode()
    assert run.returncode == 0
    assert "nccl-shm.log line 17" in " ".join(text.split())
    assert "nccl-shm-too-small-container] 的第 1 步" in text


def test_a_command_is_never_broken(shipped_kb: Run) -> None:
    text = shipped_kb("chat", SHM, stdin=b"show the fix\n").stdout.decode()
    assert any(len(line) > 80 and line.startswith("    ") for line in text.splitlines()) or (
        "    df -h /dev/shm" in text
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], b"no error given"),
        (["-f", "-"], b"stdin holds the messages"),
        (["-f", "no-such.log"], b"no-such.log"),
    ],
)
def test_wrong_use_is_one_sentence(shipped_kb: Run, arguments: list[str], message: bytes) -> None:
    run = shipped_kb("chat", *arguments)
    assert (run.returncode, run.stdout) == (2, b"")
    assert message in run.stderr
    assert b"Traceback" not in run.stderr


def test_nothing_known_at_the_end_is_exit_code_1(shipped_kb: Run) -> None:
    run = shipped_kb("chat", "how do I bake bread", stdin=b"with rye\n")
    assert run.returncode == 1
    assert b"did not understand" in run.stdout


def test_hostile_words_do_not_reach_the_terminal(shipped_kb: Run) -> None:
    run = shipped_kb(
        "chat", f"\x1b]0;t\x07[red]{SHM}", stdin=b"\x1b[2J \xff\xfe why not [bold]x\n\x00\n"
    )
    assert run.returncode == 0
    assert b"\x1b" not in run.stdout
    assert b"\x07" not in run.stdout


@pytest.mark.parametrize("zone", ["UTC+24", "UTC-99", "nowhere"])
def test_a_time_zone_that_is_none_is_no_error(small_installation: Small, zone: str) -> None:
    run = small_installation.kb("chat", SHM, stdin=b"quit\n", env={"TZ": zone})
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.slow
def test_eval_talks_about_the_records_in_use(small: Small, tmp_path: Path) -> None:
    record = next(small.home.glob("incidents/*/nccl-shm-too-small-container.md"))
    twin = tmp_path / "nccl-shm-too-small-elsewhere.md"
    twin.write_text(record.read_text().replace(record.stem, twin.stem), encoding="utf-8")
    run = small.kb("eval", "--chat", "--json", "--incidents", tmp_path)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    talks = [talk for one in report["outcomes"] for talk in one["chosen"]]
    assert {talk["record"] for talk in talks} == {record.stem, twin.stem}
    assert len(talks) == report["conversations"]


def test_eval_measures_one_thing_at_a_time(shipped_kb: Run) -> None:
    assert shipped_kb("eval", "--chat", "--jobs", "benchmarks/jobs").returncode == 2
