"""`kb chat --resume`: a conversation goes on where it stopped, whatever happened meanwhile."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from kb.sessions import MAX_MESSAGES_KEPT
from tests.e2e.conftest import ANSWER, Small

pytestmark = pytest.mark.slow

SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"
TOKEN = "hf_" + "a1B2c3" * 6
"""Made here: it is none."""


def chat(small: Small, *arguments: str | Path, said: str = "") -> CompletedProcess[bytes]:
    return small.kb("chat", *arguments, stdin=said.encode())


def kept(small: Small) -> Path:
    return small.cache / "state" / "sessions.json"


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
    assert not kept(small).exists()
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
    assert b"can be read only once; the conversation goes on without it" in gone.stderr
    assert ANSWER.encode() in gone.stdout


def test_nothing_to_go_on_with_is_one_sentence(small: Small, tmp_path: Path) -> None:
    none = chat(small, "--resume")
    assert (none.returncode, none.stdout) == (2, b"")
    assert none.stderr.decode() == (
        "Error: there is no conversation to go on with; start one: kb chat TEXT\n"
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
    assert not kept(small).exists()


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"\xff\x00", b'[{"id": "x"}]'])
def test_a_damaged_file_is_set_aside_and_a_new_conversation_begins(
    small: Small, damage: bytes
) -> None:
    chat(small, SHM)
    kept(small).write_bytes(damage)
    done = chat(small, "--resume", "--jsonl", said=f"{SHM}\n")
    assert done.returncode == 0
    assert done.stderr.count(b"\n") == 1
    assert b"damaged" in done.stderr
    greeting, opening = map(json.loads, done.stdout.decode().splitlines())
    assert greeting["act"] == "greet"
    assert opening["matches"][0]["id"] == ANSWER
    assert kept(small).with_stem("sessions.damaged").read_bytes() == damage


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
    last = {session["messages"][-1] for session in json.loads(kept(small).read_bytes())}
    assert {message.strip() for message in messages} <= last


def test_it_is_for_the_user_alone_and_holds_no_secret(small: Small) -> None:
    chat(small, f"{SHM} {TOKEN}", said=f"we have HF_TOKEN={TOKEN}\n")
    assert stat.S_IMODE(kept(small).stat().st_mode) == 0o600
    assert TOKEN.encode() not in kept(small).read_bytes()


def test_a_long_conversation_is_kept_up_to_its_bound_and_says_so(small: Small) -> None:
    done = chat(small, "--jsonl", SHM, said="undo\n" * (MAX_MESSAGES_KEPT + 3))
    assert done.stderr.count(b"too long to be kept") == 1
    (session,) = json.loads(kept(small).read_bytes())
    assert len(session["messages"]) == MAX_MESSAGES_KEPT


def test_a_directory_that_cannot_be_written_is_told_once(small: Small) -> None:
    state = small.cache / "state"
    state.write_bytes(b"")
    done = chat(small, SHM, said="why\nwhy\n")
    assert done.returncode == 0
    assert done.stderr.count(b"cannot save the conversation") == 1
