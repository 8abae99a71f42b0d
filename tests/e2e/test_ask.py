"""The main job with the real command: a text in, known incidents out."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import FOUNDING, Run
from tests.e2e.conftest import ANSWER, QUESTION, Small

SCHEMA = json.loads(Path("docs/ask.schema.json").read_text(encoding="utf-8"))
REPORTS = Path("benchmarks/reports")
SHM = b"NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)\n"


def answer(process: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """The JSON of an answer, checked against the schema and the exit code."""
    found: dict[str, Any] = json.loads(process.stdout)
    jsonschema.validate(found, SCHEMA)
    matched = found["verdict"] in ("match", "possible")
    assert process.returncode == (0 if matched else 1), process.stderr
    confidences = [match["confidence"] for match in found["matches"]]
    assert confidences == sorted(confidences, reverse=True)
    return found


def founding_reports() -> list[Any]:
    path = REPORTS / "reports.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        pytest.param(
            row["text"],
            row["relevant"],
            id=row["id"],
            marks=[] if row["id"].endswith("/log-1") else [pytest.mark.slow],
        )
        for row in rows
        if set(row["relevant"]) & set(FOUNDING)
    ]


@pytest.mark.parametrize(("text", "relevant"), founding_reports())
def test_founding_incident_is_first_and_above_the_bar(
    shipped_kb: Run, text: str, relevant: list[str]
) -> None:
    found = answer(shipped_kb("ask", "--json", stdin=text.encode()))
    assert found["verdict"] == "match"
    assert found["matches"][0]["id"] in relevant


def test_argument_stdin_and_file_give_the_same_answer(kb: Run, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(SHM)
    runs = [
        kb("ask", "--json", SHM.decode().strip()),
        kb("ask", "--json", stdin=SHM),
        kb("ask", "--json", "-f", "-", stdin=SHM),
        kb("ask", "--json", "-f", path),
    ]
    matches = [[(m["id"], m["confidence"]) for m in answer(run)["matches"]] for run in runs]
    assert matches[0][0][0] == "nccl-shm-too-small-container"
    assert all(one == matches[0] for one in matches)
    assert answer(runs[3])["matches"][0]["why"][0]["file"] == "job.log"


def test_unquoted_words_are_one_text(kb: Run) -> None:
    found = answer(kb("ask", "--json", "Xid", "79", "GPU", "has", "fallen", "off", "the", "bus"))
    assert found["matches"][0]["id"] == "xid79-gpu-fallen-off-bus"


def test_directory_is_one_job(kb: Run, tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / str(rank)).mkdir()
        (tmp_path / str(rank) / "stderr.log").write_bytes(SHM if rank == 1 else b"step 1 ok\n")
    found = answer(kb("ask", "--json", "-f", tmp_path))
    why = found["matches"][0]["why"][0]
    assert (why["file"], why["line"], why["by"]) == ("1/stderr.log", 1, "signature")


def test_compressed_log_is_read(kb: Run, tmp_path: Path) -> None:
    path = tmp_path / "job.log.gz"
    path.write_bytes(gzip.compress(b"step 1 loss 2.5\n" * 5000 + SHM))
    found = answer(kb("ask", "--json", "-f", path))
    assert found["matches"][0]["why"][0]["line"] == 5001


@pytest.mark.parametrize(
    "text",
    [
        "how do I bake bread",
        "今天天气很好，适合出门散步。",
        "the cat sat on the mat",
        "gpu",
        "hello",
    ],
)
def test_foreign_text_matches_nothing(shipped_kb: Run, text: str) -> None:
    found = answer(shipped_kb("ask", "--json", stdin=text.encode()))
    assert (found["verdict"], found["matches"]) == ("unknown", [])


def test_nothing_known_matches_is_said_in_words(kb: Run) -> None:
    run = kb("ask", stdin=b"FrobnicateError: widget 7 of tray 3 is jammed\n")
    assert run.returncode == 1
    assert b"Nothing known matches" in run.stdout


PROGRESS = "".join(
    f"2026-11-21 03:00:{n % 60:02d} INFO rank 0 step {n} loss {3 - n / 200:.3f} lr 1e-4"
    f" tokens/s 41000 errors=0\n"
    for n in range(300)
)
HEALTHY = PROGRESS + "2026-11-21 03:05:01 INFO training finished, 300 steps\n"


def test_a_log_is_healthy_that_says_at_its_end_that_the_work_is_done(shipped_kb: Run) -> None:
    found = answer(shipped_kb("ask", "--json", stdin=HEALTHY.encode()))
    assert (found["verdict"], found["matches"]) == ("healthy", [])


def test_a_log_that_stops_between_two_steps_is_not_healthy(shipped_kb: Run) -> None:
    """It may hang; a hang prints nothing."""
    run = shipped_kb("ask", stdin=PROGRESS.encode())
    assert run.returncode == 1
    assert b"No line shows a failure, and none shows that the work is done" in run.stdout


def test_known_noise_alone_is_a_note_and_healthy(kb: Run) -> None:
    noise = (
        "[rank0]:[W1121 03:00:00.764937624 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process"
        " group has NOT been destroyed before we destruct ProcessGroupNCCL. On normal program"
        " exit, the application should call destroy_process_group\n"
    )
    found = answer(kb("ask", "--json", stdin=(HEALTHY + noise).encode()))
    assert found["verdict"] == "healthy"
    assert [note["id"] for note in found["notes"]] == [
        "pytorch-process-group-not-destroyed-warning"
    ]


def test_follow_on_errors_alone_say_that_the_cause_is_elsewhere(kb: Run) -> None:
    text = (
        "[rank5]:[E1121 03:00:00.1 ProcessGroupNCCL.cpp:681] [Rank 5] Some NCCL operations have"
        " failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU"
        " operations might run on corrupted/incomplete data.\n"
        "[rank5]:[E1121 03:00:00.1 ProcessGroupNCCL.cpp:695] [Rank 5] To avoid data"
        " inconsistency, we are taking the entire process down.\n"
    )
    found = answer(kb("ask", "--json", stdin=text.encode()))
    assert "pytorch-watchdog-abort-after-peer-failure" in [note["id"] for note in found["notes"]]
    assert found["verdict"] == "possible"


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n\n",
        bytes(range(256)) * 1000,
        b"\0" * 100_000,
        os.urandom(200_000),
        "RuntimeError: boom\n".encode("utf-16"),
        b"\xff\xfe\xfd" * 100,
        b"a" * 3_000_000,
        b"[bold]x[/bold] \x1b]0;t\x07 \x1b[2J RuntimeError\n",
    ],
    ids=["empty", "blank", "bytes", "nul", "random", "utf16", "bad-utf8", "one-line", "escapes"],
)
def test_any_input_gives_an_answer_of_the_documented_form(shipped_kb: Run, data: bytes) -> None:
    found = answer(shipped_kb("ask", "--json", stdin=data))
    assert found["verdict"] in ("unknown", "healthy")


def test_fifty_megabytes_of_log_with_one_telling_line(shipped_kb: Run, tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    calm = "".join(f"2026-11-21 03:00:00 INFO step {n} loss 2.5 lr 0.1\n" for n in range(20_000))
    path.write_bytes(calm.encode() * 35 + SHM + calm.encode() * 25)
    assert path.stat().st_size > 50_000_000
    found = answer(shipped_kb("ask", "--json", "-f", path))
    assert found["matches"][0]["id"] == "nccl-shm-too-small-container"
    assert found["matches"][0]["why"][0]["line"] == 700_001


def test_top_limits_the_matches(shipped_kb: Run) -> None:
    text = b"NCCL watchdog timeout, all ranks hang in allreduce after tokenizing the dataset\n"
    assert len(answer(shipped_kb("ask", "--json", "--top", "1", stdin=text))["matches"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "no-such-file.log"], b"no-such-file.log"),
        (["--top", "0"], b"--top"),
        (["--no-such-option"], b"--no-such-option"),
        (["-f", "/dev/null"], b"/dev/null"),
        (["--incidents", "no-such-dir", "x"], b"no-such-dir"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    kb: Run, arguments: list[str], message: bytes
) -> None:
    run = kb("ask", *arguments)
    assert run.returncode == 2
    assert message in run.stderr
    assert b"Traceback" not in run.stderr
    assert run.stdout == b""


def test_text_view_in_a_pipe_is_plain_and_holds_what_is_needed(shipped_kb: Run) -> None:
    run = shipped_kb("ask", "-f", "benchmarks/samples/nccl-shm.log")
    text = run.stdout.decode()
    assert run.returncode == 0
    assert "\x1b" not in text
    assert text.startswith("First to fail\n  rank 3 on gpu-node-3  nccl-shm.log:17")
    assert "\nMATCH  " in text
    for part in (
        "Caution:",
        "\nWhy\n",
        "nccl-shm.log:7",
        "\nFix\n",
        "  1. ",
        "df -h /dev/shm",
        "\nVerify\n",
        "\nReferences\n  https://",
    ):
        assert part in text
    prose = [line for line in text.splitlines() if "http" not in line]
    assert max(map(len, prose)) <= 80


def test_hostile_log_cannot_reach_the_terminal(kb: Run) -> None:
    hostile = b"\x1b]0;owned\x07\x9b31m[red]" + SHM
    text = kb("ask", stdin=hostile).stdout
    assert b"\x1b" not in text
    assert b"\x07" not in text
    assert b"[red]" in text


def test_a_query_never_imports_torch(small_installation: Small) -> None:
    heavy = {"torch", "sentence_transformers", "transformers", "markdown_it", "yaml"}
    heavy |= {"kb.conversation.act_model"}
    program = (sys.executable, "-c", loaded_at_the_end("ask", "NCCL hangs"))
    run = small_installation.kb(program=program)
    assert heavy.isdisjoint(run.stderr.decode().split("loaded: ")[1].split())


def test_version_imports_nothing_heavy() -> None:
    heavy = {"numpy", "faiss", "onnxruntime", "hyperscan", "rich", "msgspec"}
    program = (sys.executable, "-c", loaded_at_the_end("--version"))
    run = subprocess.run(program, capture_output=True, text=True, check=True)
    assert heavy.isdisjoint(run.stderr.split("loaded: ")[1].split())


def loaded_at_the_end(*arguments: str) -> str:
    """A program that is `kb`, and says on stderr which modules it has loaded when it ends."""
    return (
        "import atexit, sys\n"
        f"sys.argv = {['kb', *arguments]!r}\n"
        "atexit.register(lambda: print('loaded:', *sys.modules, file=sys.stderr))\n"
        "from kb.__main__ import main\n"
        "main()\n"
    )


def test_works_without_a_network(small_installation: Small) -> None:
    """In a network namespace that has no interface, not even loopback."""
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        unshare = ["unshare", "--net"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode:
            pytest.skip("this machine does not allow network namespaces")
    program = (*unshare, sys.executable, "-m", "kb", "ask", "--json")
    run = small_installation.kb(program=program, stdin=SHM)
    assert answer(run)["matches"][0]["id"] == "nccl-shm-too-small-container"


def test_a_case_that_was_solved_here_is_told_what_helped(kb: Run, tmp_path: Path) -> None:
    own = {"KB_STATE": str(tmp_path / "state")}
    assert b"You had this on" not in kb("ask", stdin=QUESTION, env=own).stdout
    kb("chat", QUESTION.decode(), stdin=b"step 2 done\nthat fixed it, thanks\n", env=own)
    today = datetime.now(UTC).astimezone().strftime("%Y-%m-%d")
    text = kb("ask", stdin=QUESTION, env=own).stdout.decode()
    assert f"You had this on {today}; step 2 helped." in text
    answer = json.loads(kb("ask", "--json", stdin=QUESTION, env=own).stdout)
    jsonschema.validate(answer, SCHEMA)
    assert (answer["earlier"]["record"], answer["earlier"]["step"]) == (ANSWER, 2)
    off = tmp_path / "config.toml"
    off.write_text("history = false\n")
    silent = kb("ask", "--json", stdin=QUESTION, env={**own, "KB_CONFIG": str(off)})
    assert json.loads(silent.stdout)["earlier"] is None


def test_an_output_is_read_and_the_symptom_leads_on(shipped_kb: Run) -> None:
    """In the text as in the JSON: what the output shows, what to secure, and the next check."""
    text = (
        "my training hangs, no error\n$ df -h /dev/shm\n"
        "Filesystem Size Used Avail Use% Mounted on\nshm 64M 64M 0 100% /dev/shm\n"
    )
    answer = json.loads(shipped_kb("ask", "--json", text).stdout)
    shown = " ".join(shipped_kb("ask", text).stdout.decode().split())
    assert [seen["check"] for seen in answer["observations"]] == ["df-shm"] * 2
    assert all(" ".join(seen["text"].split()) in shown for seen in answer["observations"])
    assert f"Symptom: {answer['playbooks'][0]['title']}" in shown
    assert all(" ".join(what.split()) in shown for what in answer["playbooks"][0]["secure"])
    assert f"Check next: {answer['next']['title']}" in shown
    assert " ".join(answer["next"]["command"].split()) in shown


def test_a_value_that_one_rank_prints_otherwise_is_shown(shipped_kb: Run) -> None:
    found = answer(shipped_kb("ask", "--json", "-f", "benchmarks/jobs/ws-five/logs"))
    first = found["observations"][0]
    assert first["check"] == "ranks"
    assert first["text"] == "rank 2 prints `WORLD_SIZE=4`, all others `5`."
