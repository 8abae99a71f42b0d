"""From any text to the few lines that matter, and the facts in them."""

from __future__ import annotations

import pytest

from index.documents import Pattern
from index.signatures import Scanner
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.diagnosis.retrieval import no_failure_is_seen
from kb.evidence import Evidence, collect, fact_words, find_facts
from kb.evidence.endings import ends_well
from kb.evidence.markers import Grade
from kb.log import Log, Source
from tests.scanners import markers


def evidence_of(text: str, *patterns: str) -> Evidence:
    signatures = Scanner([Pattern(pattern) for pattern in patterns])
    return collect(Log.from_text(text).blocks(), signatures, markers())


STACK = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d.py", line 3703, in barrier
    work = default_pg.barrier(opts=opts)
  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/x.py", line 12, in wait
    raise Boom("network gone")
mylib.Boom: network gone
"""


def test_exception_comes_first_with_its_frames() -> None:
    first = evidence_of("starting\n" + STACK).lines[0]
    assert first.text == "mylib.Boom: network gone"
    assert first.grade is Grade.FATAL
    assert first.stack == (
        "torch/distributed/x.py in wait",
        "torch/distributed/c10d.py in barrier",
    )


def test_stacks_of_interleaved_ranks_are_kept_apart() -> None:
    ours = [f"[rank1]: {line}" for line in STACK.splitlines()]
    theirs = [f"[rank2]: {line.replace('Boom', 'Bang')}" for line in STACK.splitlines()]
    mixed = "\n".join(line for pair in zip(ours, theirs, strict=True) for line in pair)
    fatal = [line for line in evidence_of(mixed).lines if line.stack]
    assert {line.masked for line in fatal} == {
        "mylib.Boom: network gone",
        "mylib.Bang: network gone",
    }
    assert all(len(line.stack) == 2 for line in fatal)


@pytest.mark.parametrize(
    "prefix",
    [
        "ERROR 11-03 16:30:44 [core.py:597] ",
        "ERROR 11-03 16:30:44 engine.py:366] ",
        "(EngineCore_DP0 pid=512) ERROR 11-03 16:30:44 [core.py:597] ",
        "(VllmWorker rank=3 pid=7720) ERROR 11-03 16:30:44 [multiproc_executor.py:522] ",
    ],
)
def test_a_stack_behind_a_level_and_a_time_is_read(prefix: str) -> None:
    first = evidence_of("".join(f"{prefix}{line}\n" for line in STACK.splitlines())).lines[0]
    assert first.masked == "mylib.Boom: network gone"
    assert len(first.stack) == 2


def test_a_stack_whose_end_is_missing_takes_nothing_of_the_next() -> None:
    cut = "".join(f"{line}\n" for line in STACK.splitlines()[:-1]).replace("c10d", "other")
    (fatal,) = [line for line in evidence_of(cut + STACK).lines if line.grade is Grade.FATAL]
    assert fatal.text == "mylib.Boom: network gone"
    assert not any("other" in frame for frame in fatal.stack)


def test_same_line_of_many_ranks_is_folded_with_a_count() -> None:
    text = "\n".join(
        f"[rank{rank}]: RuntimeError: NCCL error at 0x{rank:x}f0, seq {rank}" for rank in range(64)
    )
    lines = evidence_of(text).lines
    assert [line.count for line in lines] == [64]


def test_line_numbers_are_those_of_the_input() -> None:
    text = "".join(f"step {n} loss 2.5\n" for n in range(1, 5001)) + "RuntimeError: boom\nend\n"
    first = evidence_of(text).lines[0]
    assert (first.number, first.text) == (5001, "RuntimeError: boom")


def test_needle_in_a_hundred_thousand_lines_is_first() -> None:
    calm = [f"2026-11-21 03:00:00 INFO step {n} loss 2.5 lr 0.1" for n in range(100_000)]
    calm[70_123] = "CUDA error: an illegal memory access was encountered"
    evidence = evidence_of("\n".join(calm))
    assert evidence.lines[0].number == 70_124
    assert len(evidence.lines) < 100
    assert evidence.total_lines == 100_000
    assert evidence.is_log


NOISE = "2026-11-21 03:12:44 WARNING step {n} lr 1e-4 is deprecated\n"


def test_needle_between_thousands_of_warnings_is_first() -> None:
    noise = "".join(NOISE.format(n=n) for n in range(60_000))
    half = noise.index("\n", len(noise) // 2) + 1
    evidence = evidence_of(f"{noise[:half]}FrobnicateError: tray 7 is jammed\n{noise[half:]}")
    assert evidence.lines[0].text == "FrobnicateError: tray 7 is jammed"


def test_lines_that_differ_in_a_counter_are_counted_as_one() -> None:
    calm = "2026-11-21 03:12:44 INFO step done\n" * 400
    (warning,) = [
        line
        for line in evidence_of(calm + "".join(NOISE.format(n=n) for n in range(250))).lines
        if "deprecated" in line.text
    ]
    assert warning.count == 250


def test_an_address_of_the_same_host_is_not_counted_with_others() -> None:
    calm = "2026-11-21 03:12:44 INFO step done\n" * 400
    lines = evidence_of(f"{calm}WARNING slow 10.0.0.1\n{calm}WARNING slow 127.0.0.1\n").lines
    assert {"WARNING slow 10.0.0.1", "WARNING slow 127.0.0.1"} <= {line.text for line in lines}


def test_words_of_a_short_question_are_all_kept() -> None:
    evidence = evidence_of("why does my job hang?")
    assert [line.text for line in evidence.lines] == ["why does my job hang?"]
    assert evidence.human_written
    assert not no_failure_is_seen([], evidence)


@pytest.mark.parametrize("text", ["", "\n\n", "   \n"])
def test_nothing_is_nothing(text: str) -> None:
    evidence = evidence_of(text)
    assert evidence.lines == ()
    assert not no_failure_is_seen([], evidence)


HEALTHY = (
    "[2026-11-21 03:00:01] INFO step {n} loss 2.{n} retries=0 errors: 0\n"
    "INFO:     127.0.0.1:1{n} - GET /health HTTP/1.1 200 OK\n"
    "epoch {n}: 0 failed, no errors, request_timeout=600 on_error=continue\n"
)


def test_healthy_log_is_healthy() -> None:
    assert no_failure_is_seen([], evidence_of("".join(HEALTHY.format(n=n) for n in range(50))))


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: boom",
        "[rank3]:[E1121 03:00:00.1 ProcessGroupNCCL.cpp:607] Watchdog caught collective",
        "slurmstepd: error: Detected 1 oom_kill event",
        "NVRM: Xid (PCI:0000:02:00): 79, pid='<unknown>', GPU has fallen off the bus.",
        "Segmentation fault (core dumped)",
        "Killed",
        "gpu-3:1:2 [0] NCCL WARN Call to connect returned Connection refused",
        "{'loss': 0.0, 'grad_norm': nan}",
        "the job hangs after this",
        "程序在这里卡住了",
    ],
)
def test_sign_of_failure_is_seen_in_a_healthy_log(line: str) -> None:
    calm = [HEALTHY.format(n=n) for n in range(200)]
    assert not no_failure_is_seen([], evidence_of("".join([*calm[:100], line + "\n", *calm[100:]])))


@pytest.mark.parametrize(
    "line",
    [
        "Finished: FAILURE",
        "Finished: UNSTABLE",
        "build finished: not built",
        "Hangup",
        "INFO couldn\u2019t save the optimizer state",
        "INFO The optimizer state wasn\u2019t saved",
        "INFO node17 became unreachable",
        "INFO rank3 went offline",
        "INFO save_failed=1",
        "INFO upload_lost: true",
        "INFO SaveFailed for step 30",
        "INFO 412 of 412 batches skipped because of their size",
        "INFO no room left on /scratch, kept nothing",
        "INFO running on the host since no GPU could be opened",
        "INFO epoch 2 abandoned",
        "INFO packet loss 100%",
        "64 packets sent, 12.5% packet loss",
        'job_success{job="train"} 0',
        "Job raysubmit_x stopped",
        "INFO F A I L E D to save",
        "INFO f\u0430iled to save",  # a Cyrillic letter
        "INFO \U0001d41f\U0001d41a\U0001d422\U0001d425\U0001d41e\U0001d41d to save",
    ],
)
def test_a_failure_in_other_words_is_seen_in_a_healthy_log(line: str) -> None:
    calm = [HEALTHY.format(n=n) for n in range(200)]
    assert evidence_of("".join([*calm[:100], line + "\n", *calm[100:]])).in_doubt


@pytest.mark.parametrize(
    "line",
    [
        "INFO save_failed=0",
        "INFO upload_lost: false",
        "on_failed=continue, after_failed=retry",
        "64 packets sent, 0% packet loss",
        "packet loss 0.0%",
        'job_success{job="train"} 1',
        "0 of 412 batches skipped",
        "node17 joined",
        "INFO it\u2019s step 3",
        "PLAY RECAP: node17 ok=3 unreachable=0 failed=0",
    ],
)
def test_the_same_words_that_tell_of_none_leave_a_log_healthy(line: str) -> None:
    calm = [HEALTHY.format(n=n) for n in range(200)]
    assert not evidence_of("".join([*calm[:100], line + "\n", *calm[100:]])).in_doubt


@pytest.mark.parametrize(
    "line",
    [
        "thread 'main' panicked at src/main.rs:12:5:",
        "Fehler: kein Platz mehr auf dem Datentr\u00e4ger",
        "Erreur : disque plein",
        "\u30a8\u30e9\u30fc: \u5bb9\u91cf\u4e0d\u8db3",
    ],
)
def test_trouble_before_a_happy_end_is_no_happy_end(line: str) -> None:
    lines = ["epoch 1 done", "epoch 2 done", "Training finished successfully"]
    assert ends_well(lines)
    assert not ends_well([lines[0], line, *lines[1:]])


def test_last_ordinary_lines_before_the_failure_are_kept() -> None:
    calm = "".join(f"step {n} ok\n" for n in range(1000))
    text = f"{calm}Saving model checkpoint to /mnt/x\nRuntimeError: boom\n{calm}"
    assert any("Saving model checkpoint" in line.text for line in evidence_of(text).lines)


def test_signature_hit_names_its_line() -> None:
    evidence = evidence_of("one\ntwo needle\nthree\n", "needle", "absent")
    assert [(hit.pattern.text, hit.line.number) for hit in evidence.hits] == [("needle", 2)]


def test_markup_and_escapes_are_shown_not_interpreted() -> None:
    evidence = evidence_of("\x1b[31m[bold red]RuntimeError: \x1b]8;;http://x\x07boom[/]\x1b[0m\n")
    assert evidence.lines[0].text == "[bold red]RuntimeError: boom[/]"


def test_sources_keep_their_names() -> None:
    sources = [
        Source("a.log", lambda: __import__("io").BytesIO(b"fine\n")),
        Source("b.log", lambda: __import__("io").BytesIO(b"RuntimeError: boom\n")),
    ]
    first = collect(Log(sources).blocks(), Scanner([]), markers()).lines[0]
    assert (first.file, first.number) == ("b.log", 1)


WATCHDOG = (
    "[rank7]:[E ProcessGroupNCCL.cpp:563] [Rank 7] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=57599, OpType=_ALLGATHER_BASE, NumelIn=116391936, NumelOut=931135488,"
    " Timeout(ms)=43200000) ran for 43200096 milliseconds before timing out."
)


def test_facts_of_a_watchdog_line() -> None:
    facts = find_facts([WATCHDOG])
    assert facts.collective == "ALLGATHER"
    assert facts.sequence == 57599
    assert facts.elements == (116391936, 931135488)
    assert facts.timeout_ms == 43200000
    assert facts.ranks == (7,)
    assert {"nccl", "pytorch"} <= set(facts.systems)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("exits with return code = -9", "exit_codes", (-9,)),
        ("exits with return code = -9", "signals", ("SIGKILL",)),
        ("exitcode  : 137 (pid: 4711)", "signals", ("SIGKILL",)),
        ("Signal 11 (SIGSEGV) received", "signals", ("SIGSEGV",)),
        ("NVRM: Xid (PCI:0000:02:00): 79, pid=1", "xid", (79,)),
        ("Error 802: system not yet initialized", "cuda_errors", (802,)),
        ("CUDA error 803 in line 1", "cuda_errors", (803,)),
        ("OSError: [Errno 116] Stale file handle", "errno", (116,)),
        ("ncclSystemError: System call failed", "nccl_errors", ("ncclSystemError",)),
        ("NCCL version 2.21.5+cuda12.4", "versions", {"nccl": "2.21.5"}),
        ("export NCCL_SOCKET_IFNAME=eth0", "environment", {"NCCL_SOCKET_IFNAME": "eth0"}),
        ("world_size=16 rank=3", "world_size", 16),
    ],
)
def test_exact_codes_are_facts(line: str, field: str, value: object) -> None:
    assert getattr(find_facts([line]), field) == value


def test_codes_one_digit_apart_are_different_words() -> None:
    words = {code: fact_words(find_facts([f"Error {code}: x"])) for code in (802, 803, 804)}
    assert len(set(words.values())) == 3


def test_thousands_of_different_errors_are_no_problem() -> None:
    words = ("alpha", "beta", "gamma", "delta", "kappa", "sigma", "omega", "theta")
    names = [f"{a}{b}{c}{d}" for a in words for b in words for c in words for d in words]
    text = (
        "".join(f"ERROR: {name} failed{' pad' * 500}\n" for name in names) + "the very last line\n"
    )
    evidence = evidence_of(text)
    assert evidence.total_lines == len(names) + 1
    assert 0 < len(evidence.lines) < 1000


@pytest.mark.parametrize(
    ("text", "systems"),
    [
        ("it hangs, no error, slurm, 8 nodes", ("slurm",)),
        ("no docker, slurm or kubernetes", ()),
        ("we don't use docker, it runs under slurm", ("slurm",)),
    ],
)
def test_a_denial_ends_at_a_comma_unless_it_is_a_list(text: str, systems: tuple[str, ...]) -> None:
    assert find_facts([text]).systems == systems


@pytest.mark.parametrize("head", ["field " * 120, "field " * 300, "字段" * 300])
def test_a_message_behind_a_long_head_is_not_cut_off(knowledge: KnowledgeBase, head: str) -> None:
    """As in JSON, where the fields stand before the message, and more behind it."""
    message = "NCCL WARN Error: failed to extend /dev/shm/nccl-c7XQ2w to 9637892 bytes"
    found = diagnose(Log.from_text(f"{head} {message} {'more ' * 60}"), knowledge)
    assert found.matches[0].incident.id == "nccl-shm-too-small-container"
    assert any(message in why.line.text for why in found.matches[0].why)
