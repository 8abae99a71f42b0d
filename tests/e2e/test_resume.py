"""`kb chat --resume`: a conversation goes on where it stopped, whatever happened meanwhile."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import zstandard

from kb.sessions import MAX_MESSAGES_KEPT, MAX_TEXT_CHARACTERS
from tests.e2e.conftest import ANSWER, Small, wait_until

pytestmark = pytest.mark.slow

SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"
TOKEN = "hf_" + "a1B2c3" * 6
"""Made here: it is none."""


def chat(small: Small, *arguments: str | Path, said: str = "") -> CompletedProcess[bytes]:
    return small.kb("chat", *arguments, stdin=said.encode())


def files(small: Small) -> list[Path]:
    return sorted((small.cache / "state" / "cases").glob("*.zst"))


def kept(small: Small) -> list[dict[str, Any]]:
    """What is kept of each case."""
    unpacked = (zstandard.ZstdDecompressor().decompress(path.read_bytes()) for path in files(small))
    return [json.loads(data) for data in unpacked]


def test_it_goes_on_with_the_case_and_with_what_was_said(small: Small) -> None:
    first = chat(small, SHM, said="we run torch 2.6.0\nwhy\n")
    assert first.returncode == 0, first.stderr
    again = chat(small, "--resume", said="what did I tell you?\n")
    assert again.returncode == 0, again.stderr
    text = again.stdout.decode()
    assert b"after 2 messages, the last one: why" in again.stderr
    assert text.startswith("NCCL fails to create its shared memory")
    assert "  1. " in text.split("\n> ")[0]
    assert "we run torch 2.6.0" in text.split("\n> ")[1]


def test_it_can_go_on_again_and_again(small: Small) -> None:
    chat(small, said="hello\n")
    assert not kept(small)
    chat(small, SHM, said="we run torch 2.6.0\n")
    chat(small, "--resume", said="we run NCCL 2.18\n")
    done = chat(small, "--resume", said="what did I tell you?\n")
    text = done.stdout.decode()
    assert "we run torch 2.6.0" in text
    assert "we run NCCL 2.18" in text


def test_for_programs_the_first_line_is_the_last_reply(small: Small) -> None:
    chat(small, "--jsonl", said=f"{SHM}\nwhy\n")
    done = chat(small, "--resume", "--jsonl", said="undo\n")
    last, undo = map(json.loads, done.stdout.decode().splitlines())
    assert last["act"] == "explain"
    assert last["matches"][0]["id"] == ANSWER
    assert undo["act"] == "decline"


def test_logs_are_read_again_and_one_that_is_gone_is_named(small: Small, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"step 1\n{SHM}\n")
    chat(small, "-f", log, said="why\n")
    assert b"train.log line 2" in b" ".join(chat(small, "--resume").stdout.split())
    log.unlink()
    gone = chat(small, "--resume", said=f"{SHM}\n")
    assert gone.returncode == 0
    assert b"train.log" in gone.stderr
    assert b"goes on without it" in gone.stderr
    assert ANSWER.encode() in gone.stdout


def test_a_log_that_became_a_pipe_is_not_waited_for(small: Small, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"step 1\n{SHM}\n")
    chat(small, "-f", log, said="why\n")
    log.unlink()
    os.mkfifo(log)
    gone = chat(small, "--resume", said=f"{SHM}\n")
    assert gone.returncode == 0
    assert b"can be read only once; the case goes on without it" in gone.stderr
    assert ANSWER.encode() in gone.stdout


def test_nothing_to_go_on_with_is_one_sentence(small: Small, tmp_path: Path) -> None:
    none = chat(small, "--resume")
    assert (none.returncode, none.stdout) == (2, b"")
    assert none.stderr.decode() == (
        "Error: there is no case to go on with; start one: kb chat TEXT\n"
    )
    nowhere = small.kb("chat", "--resume", "--jsonl", stdin=b"", env={"KB_STATE": "/dev/null"})
    assert (nowhere.returncode, nowhere.stdout, nowhere.stderr) == (2, b"", none.stderr)
    both = chat(small, "--resume", SHM)
    assert both.returncode == 2
    off = tmp_path / "config.toml"
    off.write_text("history = false\n")
    refused = small.kb("chat", "--resume", stdin=b"", env={"KB_CONFIG": str(off)})
    assert refused.returncode == 2
    assert b"history = false" in refused.stderr


def test_with_the_history_off_nothing_is_kept(small: Small, tmp_path: Path) -> None:
    off = tmp_path / "config.toml"
    off.write_text("history = false\n")
    small.kb("chat", SHM, stdin=b"why\n", env={"KB_CONFIG": str(off)})
    assert not kept(small)


@pytest.mark.parametrize("damage", [b"", b"{", zstandard.ZstdCompressor().compress(b'{"id": "x"}')])
def test_a_damaged_file_is_left_and_a_new_conversation_begins(small: Small, damage: bytes) -> None:
    chat(small, SHM)
    (file,) = files(small)
    file.write_bytes(damage)
    done = chat(small, "--resume", "--jsonl", said=f"{SHM}\n")
    assert done.returncode == 0
    assert done.stderr.count(b"\n") == 1
    assert b"damaged" in done.stderr
    greeting, opening = map(json.loads, done.stdout.decode().splitlines())
    assert greeting["act"] == "greet"
    assert opening["matches"][0]["id"] == ANSWER
    assert file.read_bytes() == damage


@pytest.mark.parametrize("damage", [b"", zstandard.ZstdCompressor().compress(b"{}")])
def test_a_pipe_with_nothing_but_a_damaged_case_is_told_so(small: Small, damage: bytes) -> None:
    chat(small, SHM)
    (file,) = files(small)
    file.write_bytes(damage)
    run = chat(small, "--resume", said="why\n")
    assert (run.returncode, run.stdout) == (2, b"")
    damaged, error = run.stderr.decode().splitlines()
    assert f"the case in {file} is damaged" in damaged
    assert error == (
        "Error: every case that is kept is damaged; start a new one: kb chat TEXT, or remove them:"
        " kb cases --forget all"
    )


def test_bytes_of_another_encoding_are_kept_as_far_as_they_can_be(
    small: Small, tmp_path: Path
) -> None:
    log = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.log"))
    log.write_text(SHM)
    first = small.kb("chat", b"caf\xe9 " + SHM.encode(), "-f", log, stdin=b"\xff why\n")
    assert first.returncode == 0, first.stderr
    again = chat(small, "--resume", "--jsonl", said='"\\ud800 why"\n')
    assert again.returncode == 0, again.stderr
    assert chat(small, "--resume").returncode == 0


def test_two_at_once_are_both_kept(small: Small) -> None:
    chat(small, SHM, said="we run torch 2.6.0\n")
    messages = [f"we run NCCL 2.{number}\n" for number in range(3)]
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda said: chat(small, "--resume", said=said), messages))
    assert [run.returncode for run in runs] == [0, 0, 0]
    said = {message for session in kept(small) for message in session["messages"]}
    assert {message.strip() for message in messages} <= said


def test_it_is_for_the_user_alone_and_holds_no_secret(small: Small) -> None:
    chat(small, f"{SHM} {TOKEN}", said=f"we have HF_TOKEN={TOKEN}\n")
    (file,) = files(small)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert TOKEN not in json.dumps(kept(small))


@pytest.mark.parametrize(
    "start", ["\x1b[32m", "\x1b[1;38;5;196m", "\x1b]8;;http://h\x07", "\x1b(B"]
)
def test_a_coloured_secret_in_a_message_is_neither_shown_nor_kept(small: Small, start: str) -> None:
    secret = "Hpxg7zUPiZFgytS8lK0c"
    said = f"we have HF_TOKEN={start}{secret}\x1b[0m\ngive me a note for the next shift\n"
    run = chat(small, SHM, said=said)
    note = "".join(run.stdout.decode().split("next shift", 1)[1].split())
    assert "HF_TOKEN" in note
    assert secret not in note
    assert secret not in json.dumps(kept(small))


def test_a_long_conversation_is_kept_up_to_its_bound_and_says_so(small: Small) -> None:
    done = chat(small, "--jsonl", SHM, said="undo\n" * (MAX_MESSAGES_KEPT + 3))
    assert done.stderr.count(b"too long to be kept") == 1
    (session,) = kept(small)
    assert len(session["messages"]) == MAX_MESSAGES_KEPT


def test_a_directory_that_cannot_be_written_is_told_once(small: Small) -> None:
    state = small.cache / "state"
    state.write_bytes(b"")
    done = chat(small, SHM, said="why\nwhy\n")
    assert done.returncode == 0
    assert done.stderr.count(b"cannot save the case") == 1


def test_of_a_long_message_the_beginning_and_the_end_are_kept(small: Small) -> None:
    lines = "".join(f"step {step} loss 2.31 " for step in range(20_000))
    chat(small, SHM, said=f"begin {lines} end\n")
    (session,) = kept(small)
    (message,) = session["messages"]
    assert message.startswith("begin")
    assert message.endswith("end")
    assert len(message) <= MAX_TEXT_CHARACTERS


def test_a_log_that_changed_is_named(small: Small, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"step 1\n{SHM}\n")
    chat(small, "-f", log, said="why\n")
    assert b"changed" not in chat(small, "--resume").stderr
    log.write_text(f"step 1\nstep 2\n{SHM}\n")
    changed = chat(small, "--resume")
    assert b"train.log changed since; it is read as it is now" in changed.stderr
    assert b"train.log line 3" in b" ".join(changed.stdout.split())


def job_of(directory: Path) -> Path:
    """The directory of a job with one log that tells what happened."""
    directory.mkdir()
    (directory / "rank0.log").write_text(f"step 1\n{SHM}\n")
    return directory


@pytest.mark.parametrize("change", ["a log is gone", "a log is written on", "a log is new"])
def test_a_job_whose_logs_changed_is_named(small: Small, tmp_path: Path, change: str) -> None:
    job = job_of(tmp_path / "job")
    (job / "rank1.log").write_text("step 1\n")
    chat(small, "-f", job, said="why\n")
    assert b"changed" not in chat(small, "--resume").stderr
    match change:
        case "a log is gone":
            (job / "rank1.log").unlink()
        case "a log is written on":
            (job / "rank1.log").write_text("step 1\nstep 2\n")
        case _:
            (job / "rank2.log").write_text("step 1\n")
    assert b"job changed since; it is read as it is now" in chat(small, "--resume").stderr


def test_a_case_goes_on_without_the_logs_of_a_job_that_was_emptied(
    small: Small, tmp_path: Path
) -> None:
    job = job_of(tmp_path / "job")
    chat(small, "-f", job, said="why\n")
    (job / "rank0.log").unlink()
    again = chat(small, "--resume", said=f"{SHM}\n")
    assert again.returncode == 0, again.stderr
    assert b"job holds no log that can be read; the case goes on without it" in again.stderr
    assert ANSWER.encode() in again.stdout


def test_cases_are_listed_gone_on_with_by_id_and_forgotten(small: Small) -> None:
    chat(small, SHM, said="we run torch 2.6.0\n")
    chat(small, "it hangs", said="since yesterday\n")
    listed = small.kb("cases", stdin=b"").stdout.decode()
    rows = [line.split("\t") for line in listed.splitlines()]
    assert [row[-1] for row in rows] == ["it hangs", SHM[:70] + "..."]
    assert rows[1][2:6] == ["1", "0", "match", ANSWER]
    first = rows[1][0]
    again = chat(small, "--resume", first, said="what did I tell you?\n")
    assert "we run torch 2.6.0" in again.stdout.decode()
    assert len(files(small)) == 2
    wrong = chat(small, "--resume", "nothing")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert b"there is no case nothing; kb cases lists them" in wrong.stderr
    assert small.kb("cases", "--forget", first, stdin=b"").returncode == 0
    assert len(files(small)) == 1
    assert b"forgot 1 case" in small.kb("cases", "--forget", "all", stdin=b"").stderr
    assert not files(small)


def test_damaged_cases_are_forgotten_too_and_an_id_leads_to_no_other_place(small: Small) -> None:
    chat(small, SHM)
    (file,) = files(small)
    (session,) = kept(small)
    evil = json.dumps({**session, "id": "../../evil"}).encode()
    file.with_name("abcd0123.zst").write_bytes(zstandard.ZstdCompressor().compress(evil))
    file.with_name("damaged.zst").write_bytes(b"no case")
    ids = [line.split("\t")[0] for line in small.kb("cases").stdout.decode().splitlines()]
    assert sorted(ids) == sorted(["abcd0123", file.stem])
    chat(small, "--resume", "abcd0123", said="it hangs\n")
    assert not list(file.parent.parent.parent.rglob("evil*"))
    assert b"forgot 3 cases" in small.kb("cases", "--forget", "all").stderr
    assert not files(small)


def test_a_case_is_forgotten_after_its_time(small: Small, tmp_path: Path) -> None:
    config = {"KB_CONFIG": str(tmp_path / "config.toml")}
    (tmp_path / "config.toml").write_text("keep_days = 3\n")
    chat(small, SHM)
    (file,) = files(small)
    (session,) = kept(small)
    session["time"] = "2026-01-01T00:00:00Z"
    file.write_bytes(zstandard.ZstdCompressor().compress(json.dumps(session).encode()))
    os.utime(file, (0, 0))
    assert small.kb("cases", stdin=b"", env=config).stdout == b""
    small.kb("chat", SHM, stdin=b"", env=config)
    assert file not in files(small)
    assert len(files(small)) == 1


def test_the_doctor_says_where_cases_are(small: Small) -> None:
    chat(small, SHM)
    told = small.kb("doctor", stdin=b"").stdout.decode()
    assert f"1 in {small.cache / 'state' / 'cases'}, each for 30 days" in told


SAID = ["we run torch 2.6.0", "we run NCCL 2.18", "why", "only with 2 nodes"]


@pytest.mark.parametrize("moment", range(1, len(SAID) + 1))
def test_killed_at_any_moment_nothing_is_lost_that_was_answered(small: Small, moment: int) -> None:
    """SIGKILL comes as soon as the reply to a message is there, and the next one is on its way."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "kb", "chat", "--jsonl", SHM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=small.environment(),
    )
    assert process.stdin
    assert process.stdout
    process.stdout.readline()  # the opening
    for message in SAID[:moment]:
        process.stdin.write(f"{message}\n".encode())
        process.stdin.flush()
        assert process.stdout.readline()
    process.stdin.write(b"and another one\n")
    process.stdin.flush()
    process.kill()
    process.communicate()
    (session,) = kept(small)
    assert session["messages"][:moment] == SAID[:moment]
    again = chat(small, "--resume", said="what did I tell you?\n")
    assert again.returncode == 0
    assert SAID[0] in again.stdout.decode()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there is no terminal")
def test_a_screen_that_is_killed_comes_back_with_its_case(small: Small, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(f"step 1\n{SHM}\n")
    ours, theirs = os.openpty()
    environment = {**small.environment(), "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    screen = subprocess.Popen(
        [sys.executable, "-P", "-m", "kb", "tui", str(tmp_path / "train.log")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    drawn = bytearray()
    drawing = threading.Thread(target=_drain, args=(ours, drawn))
    drawing.start()
    try:
        wait_until(lambda: [one["incident"] for one in kept(small)] == [ANSWER], "the answer")
        wait_until(lambda: b"candidate" in drawn, "the keys of the answer")
        os.write(ours, b" ")
        wait_until(lambda: kept(small)[0]["done"], "the tick")
        os.write(ours, b"t")
        wait_until(lambda: b"send" in drawn, "the line to say something at")
        os.write(ours, b"we run torch 2.6.0\r")
        wait_until(lambda: kept(small)[0]["messages"], "the message")
    finally:
        screen.kill()
        screen.wait()
        drawing.join()
        os.close(ours)
    listed = small.kb("cases", stdin=b"").stdout.decode().split("\t")
    assert (listed[2:4], listed[5]) == (["1", "1"], ANSWER)
    again = chat(small, "--resume", said="what did I tell you?\n")
    assert "we run torch 2.6.0" in again.stdout.decode()
    assert f"done of {ANSWER}: 1" in again.stderr.decode()


def _drain(terminal: int, drawn: bytearray) -> None:
    """Take what is drawn, until the other side is gone."""
    with suppress(OSError):
        while part := os.read(terminal, 1 << 16):
            drawn += part
