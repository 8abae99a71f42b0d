"""`kb watch` beside logs that grow: what it says, sends and returns, and how it ends."""

from __future__ import annotations

import json
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import environment
from tests.e2e.conftest import ANSWER, PATIENCE_S, QUESTION, Small

STEPS = b"".join(b"2026-11-21 03:00:00 INFO step %d loss 2.31\n" % step for step in range(300))
PUMP = b"RuntimeError: the flux capacitor of pump 7 is out of plutonium\n"
SECRET = b"hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
Process = subprocess.Popen[bytes]
Start = Callable[..., Process]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    log = tmp_path / "train.log"
    log.write_bytes(STEPS)
    return log


def append(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


@pytest.fixture
def start(small: Small) -> Iterator[Start]:
    """Start `kb watch`; what is left of it is ended."""
    started: list[Process] = []

    def start(*arguments: str | Path) -> Process:
        started.append(
            subprocess.Popen(
                [sys.executable, "-P", "-m", "kb", "watch", *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(small.cache, PYTHONPATH=str(small.home)),
                preexec_fn=_hear_ctrl_c,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _hear_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_more_files_than_may_be_open_are_followed(small: Small, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for rank in range(300):
        (logs / f"rank{rank:03d}.log").write_bytes(STEPS)
    append(logs / "rank299.log", QUESTION)
    run = subprocess.run(
        [sys.executable, "-P", "-m", "kb", "watch", "--once", logs],
        capture_output=True,
        check=False,
        env=environment(small.cache, PYTHONPATH=str(small.home)),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)),
    )
    assert (run.returncode, ANSWER.encode() in run.stdout) == (0, True), run.stderr


def next_line(process: Process) -> str:
    """The next result, waited for."""
    assert process.stdout
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
    return lines.get(timeout=PATIENCE_S).decode()


def ended(process: Process) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out.decode(), err.decode()


class Receiver(ThreadingHTTPServer):
    """A webhook that keeps what it gets; it refuses the first ones as often as it is told to."""

    def __init__(self, refusals: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refusals = refusals
        self.got: queue.Queue[dict[str, object]] = queue.Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook/very-secret-path"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.refusals:
            self.server.refusals -= 1
            self.send_error(503)
        else:
            self.server.got.put(json.loads(body))
            self.send_response(200)
            self.end_headers()

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def receiver(request: pytest.FixtureRequest) -> Iterator[Receiver]:
    with Receiver(getattr(request, "param", 0)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_once_says_what_is_there_and_returns_what_it_is(small: Small, log: Path) -> None:
    calm = small.kb("watch", "--once", log)
    assert (calm.returncode, calm.stdout) == (1, b"")
    append(log, PUMP)
    unknown = small.kb("watch", "--once", log)
    assert (unknown.returncode, unknown.stdout.count(b"\n")) == (1, 1)
    assert b"nothing known matches" in unknown.stdout
    append(log, STEPS + QUESTION)
    known = small.kb("watch", "--once", log)
    assert (known.returncode, known.stdout.count(b"\n")) == (0, 2)
    assert f"{log}:602  {QUESTION.decode()}" in known.stdout.decode()
    assert f"failures: {ANSWER}, 1 that nothing known fits" in known.stderr.decode()


def test_wrong_use_is_said_in_one_sentence(small: Small, log: Path) -> None:
    for arguments, sentence in (
        (["--once", "nowhere"], b"cannot read nowhere: no such file"),
        (["--notify", "hook", log], b"hook is no URL; write https://HOST/PATH"),
        (["--notify", "https://", log], b"names no host"),
        (["--notify", "http://[::1/secret", log], b"names no host or no port"),
        (["--notify", "http://127.0.0.1:99999/secret", log], b"names no host or no port"),
        (["--notify", "https://127.0.0.1/secret code", log], b"holds a space"),
        (["--notify", "https://me:pw@127.0.0.1/secret", log], b"holds a user name"),
    ):
        done = small.kb("watch", *arguments)
        assert done.returncode == 2
        assert sentence in done.stderr
        assert b"Traceback" not in done.stderr


def test_a_name_with_a_line_break_stays_on_one_line(small: Small, log: Path) -> None:
    named = log.with_name("a\n\x1b[31m2026 match 99% faked.log")
    named.write_bytes(QUESTION)
    done = small.kb("watch", "--once", named)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)
    assert b"\x1b" not in done.stdout


def test_json_lines_are_for_programs(small: Small, log: Path) -> None:
    append(log, b"[rank3]: " + QUESTION)
    done = small.kb("watch", "--once", "--format", "jsonl", log)
    row = json.loads(done.stdout)
    assert " ".join(row) == ("time path verdict incident title confidence rank host file line text")
    assert (row["path"], row["incident"], row["rank"]) == (str(log), ANSWER, 3)
    assert (row["file"], row["line"]) == ("train.log", 301)


def test_a_growing_log_is_followed_until_the_first(start: Start, log: Path) -> None:
    waiting = start("--until-first", log.with_name("later.log"))
    assert waiting.stderr
    assert b"kb waits for it" in waiting.stderr.readline()
    log.rename(log.with_name("later.log"))
    append(log.with_name("later.log"), QUESTION)
    code, out, _ = ended(waiting)
    assert code == 0
    assert ANSWER in out
    assert out.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow), (signal.SIGTERM, 143)],
)
def test_a_signal_ends_it_with_the_last_words_and_a_summary(
    start: Start, log: Path, number: int, code: int
) -> None:
    append(log, QUESTION)
    process = start(log)
    assert ANSWER in next_line(process)
    append(log, STEPS + PUMP.strip())  # a process that dies ends no line
    process.send_signal(number)
    returned, out, err = ended(process)
    assert returned == code
    assert "pump 7" in out
    assert err.strip().endswith(f"failures: {ANSWER}, 1 that nothing known fits")


@pytest.mark.parametrize("zeros", [3_000, 100_000, 3 << 20])
def test_zeros_in_front_of_a_log_hide_nothing(small: Small, log: Path, zeros: int) -> None:
    log.write_bytes(b"\0" * zeros + STEPS + QUESTION)
    done = small.kb("watch", "--once", log)
    assert (done.returncode, f"{log}:301  ".encode() in done.stdout) == (0, True), done.stderr


def test_a_writer_that_goes_on_at_its_old_place_after_a_truncation_is_read(
    start: Start, log: Path
) -> None:
    with log.open("wb", buffering=0) as writer:  # as `command > train.log`
        writer.write(STEPS + QUESTION)
        process = start(log)
        assert ANSWER in next_line(process)
        shutil.copy(log, log.with_name("train.log.1"))
        os.truncate(log, 0)
        writer.write(STEPS + PUMP + STEPS)
    process.send_signal(signal.SIGTERM)
    _, out, err = ended(process)
    assert f"{log}:301  " in out, err
    assert "pump 7" in out


def test_it_ends_when_nobody_reads_it_any_more(start: Start, log: Path) -> None:
    append(log, QUESTION)
    watch = start(log)
    assert watch.stdout
    assert ANSWER.encode() in watch.stdout.readline()
    watch.stdout.close()
    assert watch.wait(PATIENCE_S) == 141
    assert watch.stderr
    assert b"Traceback" not in watch.stderr.read()


@pytest.mark.parametrize("receiver", [1], indirect=True)
def test_a_webhook_gets_each_failure_even_if_it_refuses_once(
    small: Small, log: Path, receiver: Receiver
) -> None:
    append(log, PUMP.strip() + b" token=" + SECRET + b"\n")
    done = small.kb("watch", "--once", log, "--notify", receiver.url)
    got = receiver.got.get(timeout=PATIENCE_S)
    assert isinstance(got["text"], str)
    assert "pump 7" in got["text"]
    assert isinstance(got["event"], dict)
    assert (got["event"]["line"], got["event"]["verdict"]) == (301, "unknown")
    assert SECRET.decode() not in json.dumps(got)
    assert done.stderr.count(b"cannot send to http://127.0.0.1") == 1
    assert b"very-secret-path" not in done.stderr
    assert b"not sent" not in done.stderr


def test_a_receiver_that_is_gone_stops_nothing(small: Small, log: Path) -> None:
    append(log, PUMP + STEPS + QUESTION)
    done = small.kb("watch", "--once", log, "--notify", "http://127.0.0.1:9/x")
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 2
    assert done.stderr.count(b"cannot send to http://127.0.0.1") == 1
    assert b"2 messages were not sent to http://127.0.0.1" in done.stderr


def test_what_only_apprise_knows_needs_apprise(small: Small, log: Path) -> None:
    missing = Path(small.home) / "apprise.py"
    missing.write_text("raise ImportError\n")
    done = small.kb("watch", "--once", log, "--notify", "slack://a/b/c")
    missing.unlink()
    assert done.returncode == 2
    assert b"pip install 'incident-kb[notify]'" in done.stderr
    assert b"a/b/c" not in done.stderr


def test_a_hostile_log_writes_nothing_on_the_terminal_but_text(small: Small, log: Path) -> None:
    append(
        log, b"RuntimeError: \x1b]0;title\x07 [red]x[/] \xff\xfe \x00" + b"y" * 3_000_000 + b"\n"
    )
    done = small.kb("watch", "--once", log)
    assert done.stdout.count(b"\n") == 1
    assert not set(done.stdout) & set(b"\x1b\x07\x00")
    assert b"[red]x[/]" in done.stdout
    assert len(done.stdout) < 1_000
