"""`kb chat --jsonl`: a line a message, a line a reply."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kb.cli.talk import MAX_MESSAGE_BYTES
from tests.conftest import Run
from tests.e2e.conftest import PATIENCE_S, Small
from tests.e2e.test_ending import signals_as_of_a_terminal

SCHEMA = json.loads(Path("docs/chat.schema.json").read_text(encoding="utf-8"))
SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"
RECORD = "nccl-shm-too-small-container"
DF = """$ df -h /dev/shm
Filesystem      Size  Used Avail Use% Mounted on
shm              64M   64M     0 100% /dev/shm"""
TOKEN = "hf_" + "a1B2c3" * 6
KEY_LINES = [f"q1W2e3R4{letter}" * 7 for letter in "abcdef"]
KEY = ["-----BEGIN RSA " + "PRIVATE KEY-----", *KEY_LINES, "-----END RSA " + "PRIVATE KEY-----"]
"""Made here: none is real."""


def talk(run: Run, *arguments: str | Path, lines: tuple[str | bytes, ...]) -> list[Any]:
    """The replies to these lines; each must be as the schema says."""
    said = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
    done = run("chat", "--jsonl", *arguments, stdin=said)
    assert done.returncode == 0, done.stderr
    replies = [json.loads(line) for line in done.stdout.decode().splitlines()]
    for reply in replies:
        jsonschema.validate(reply, SCHEMA)
    assert len(replies) == len(lines) + 1
    return replies


def test_each_message_has_a_reply_on_one_line(shipped_kb: Run) -> None:
    opening, why, wrong = talk(shipped_kb, SHM, lines=("why", "asdf qwer zxcv"))
    assert opening["act"] == "diagnose"
    assert opening["matches"][0]["id"] == RECORD
    assert {"id": RECORD} in opening["citations"]
    assert {"file": None, "line": 1} in opening["citations"]
    assert opening["next"]["check"] == "df-shm"
    assert why["act"] == "explain"
    assert "line 1" in why["text"]
    assert wrong["act"] == "decline"
    assert wrong["matches"] == opening["matches"]


def test_the_opening_is_that_of_ask(shipped_kb: Run) -> None:
    asked = json.loads(shipped_kb("ask", "--json", SHM).stdout)
    (opening,) = talk(shipped_kb, SHM, lines=())
    for key in ("question", "observations", "next"):
        assert opening[key] == asked[key]


def test_a_string_of_json_holds_line_breaks(shipped_kb: Run) -> None:
    _, pasted = talk(shipped_kb, SHM, lines=(json.dumps(DF),))
    assert pasted["act"] == "update"
    assert [seen["check"] for seen in pasted["observations"]] == ["df-shm"] * 2
    assert all(seen["abnormal"] for seen in pasted["observations"])
    assert pasted["observations"][0]["line"] == 3
    assert pasted["matches"][0]["id"] == RECORD


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ['"why', '{"text": "why"}', "7", "null", '"\\ud800"', "\\", b"\xff"]
)
def test_what_is_no_string_of_json_is_text(shipped_kb: Run, line: str | bytes) -> None:
    _, after, why = talk(shipped_kb, SHM, lines=(line, "why"))
    assert after["text"]
    assert why["act"] == "explain"


def test_without_a_case_it_greets_and_the_first_message_opens_it(shipped_kb: Run) -> None:
    greeting, hello, opening, solved = talk(
        shipped_kb, lines=("hello", SHM, "that fixed it, thanks")
    )
    assert (greeting["act"], hello["act"]) == ("greet", "greet")
    assert greeting["matches"] == []
    assert opening["act"] == "diagnose"
    assert opening["matches"][0]["id"] == RECORD
    assert solved["act"] == "close"
    assert solved["next"] is None


def test_a_question_may_open_the_case(shipped_kb: Run) -> None:
    _, opening = talk(shipped_kb, lines=("why does my training hang without any error?",))
    assert opening["act"] == "diagnose"
    assert opening["next"]


def test_an_empty_line_has_a_reply(shipped_kb: Run) -> None:
    _, empty, blank, why = talk(shipped_kb, SHM, lines=("", '"  "', "why"))
    assert (empty["act"], blank["act"]) == ("decline", "decline")
    assert why["act"] == "explain"


def test_quit_is_a_word_like_others(shipped_kb: Run) -> None:
    assert talk(shipped_kb, SHM, lines=("quit", "why"))[-1]["act"] == "explain"


def test_a_line_that_is_too_long_is_named_and_the_next_one_is_read(shipped_kb: Run) -> None:
    long = b"x" * MAX_MESSAGE_BYTES
    _, too_long, why = talk(shipped_kb, SHM, lines=(long, "why"))
    assert too_long["act"] == "decline"
    assert "-f FILE" in too_long["text"]
    assert why["act"] == "explain"


@pytest.mark.slow
def test_a_long_paste_is_not_said_again(shipped_kb: Run) -> None:
    paste = json.dumps(f"{SHM}\n" * 1000)
    for request in ("undo", "what did I tell you?", "why", "summarise"):
        assert len(talk(shipped_kb, "it hangs", lines=(paste, request))[-1]["text"]) < 5000


def test_the_language_is_that_of_the_message(shipped_kb: Run) -> None:
    assert "最可能" in talk(shipped_kb, lines=("训练卡住了，报 " + SHM,))[-1]["text"]


def test_secrets_are_in_no_reply(shipped_kb: Run, tmp_path: Path) -> None:
    lines = [f"[rank0]: ERROR: {line}" for line in (f"login with {TOKEN}", *KEY, SHM)]
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines))
    message = json.dumps("\n".join(lines))
    said = (message, f"we have HF_TOKEN={TOKEN}", "undo", "what did I tell you?", "summarise")
    for arguments in (("-f", log), ()):
        text = json.dumps(talk(shipped_kb, *arguments, lines=said))
        assert [secret for secret in (TOKEN, *KEY_LINES) if secret in text] == []


def test_a_masked_token_is_no_evidence(shipped_kb: Run) -> None:
    plain, secret = (
        talk(shipped_kb, SHM, lines=(f"we run nccl 2.18 {words}",))[-1]["matches"]
        for words in ("", TOKEN)
    )
    assert secret == plain


def test_no_control_character_is_written(shipped_kb: Run) -> None:
    hostile = "\x1b]0;t\x07 \u202e why \x7f"
    done = shipped_kb("chat", "--jsonl", SHM + hostile, stdin=f"{hostile}\n".encode())
    assert done.returncode == 0
    assert not set(done.stdout) & {0x1B, 0x07, 0x7F}
    assert "\u202e" not in done.stdout.decode()


@pytest.mark.parametrize("arguments", [("-f", "-"), ("-f", "no-such.log")])
def test_wrong_use_is_one_sentence_and_no_reply(
    shipped_kb: Run, arguments: tuple[str, ...]
) -> None:
    done = shipped_kb("chat", "--jsonl", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr


class Client:
    """A program that talks to the command while it runs."""

    def __init__(self, small: Small, errors: Path) -> None:
        self._errors = errors
        ours, self._messages = os.pipe()
        self._replies, theirs = os.pipe()
        with errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kb", "chat", "--jsonl", SHM],
                stdin=ours,
                stdout=theirs,
                stderr=stderr,
                cwd=small.home,
                env=small.environment(),
                preexec_fn=signals_as_of_a_terminal,
            )
        os.close(ours)
        os.close(theirs)

    def say(self, message: bytes) -> None:
        """Send a line."""
        os.write(self._messages, message + b"\n")

    def hear(self) -> Any:
        """Wait for a reply."""
        line = b""
        while not line.endswith(b"\n"):
            part = os.read(self._replies, 1)
            assert part, "it ended"
            line += part
        return json.loads(line)

    def say_no_more(self) -> None:
        """The end of the messages."""
        os.close(self._messages)
        self._messages = -1

    def hear_no_more(self) -> None:
        """Nobody reads the replies."""
        os.close(self._replies)
        self._replies = -1

    def ended(self) -> tuple[int, bytes]:
        """The exit code, and what was said on stderr."""
        return self.process.wait(PATIENCE_S), self._errors.read_bytes().strip()

    def close(self) -> None:
        """End all."""
        self.process.kill()
        self.process.wait()
        for number in (self._messages, self._replies):
            if number >= 0:
                os.close(number)


@pytest.fixture
def client(small: Small, tmp_path: Path) -> Iterator[Client]:
    """A client of a running command."""
    started = Client(small, tmp_path / "errors")
    yield started
    started.close()


def test_each_reply_is_there_before_the_next_message(client: Client) -> None:
    assert client.hear()["act"] == "diagnose"
    for _ in range(3):
        client.say(b"why")
        assert client.hear()["act"] == "explain"
    client.say_no_more()
    assert client.ended() == (0, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_as_any_command(client: Client, number: signal.Signals, code: int) -> None:
    client.hear()
    client.process.send_signal(number)
    assert client.ended() == (code, b"")


def test_a_reader_that_goes_away_ends_it_quietly(client: Client) -> None:
    client.hear()
    client.hear_no_more()
    client.say(b"why")
    assert client.ended() == (141, b"")
