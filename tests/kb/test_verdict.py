"""One place decides the verdict: a confidence never means two things."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kb.conversation import begin
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, diagnose
from kb.diagnosis.retrieval import ScoredCandidate, retrieve
from kb.evidence import Evidence
from kb.log import Log
from kb.service.handoff import HandOff
from kb.service.wire import to_answer
from kb.verdict import (
    ANSWER_AT,
    MAX_CONFIDENCE_AFTER_TALK,
    MAX_CONFIDENCE_SHOWN,
    MAX_GENERAL_CONFIDENCE,
    SHOW_ALSO_AT,
    SHOW_AT,
    SHOW_CALM_AT,
    Verdict,
    decide,
    percent,
)

NOW = datetime(2026, 11, 21, 3, 10, tzinfo=UTC)
AROUND_THE_BAR = [
    (0.75, Verdict.MATCH),
    (0.7499, Verdict.POSSIBLE),
    (0.98, Verdict.MATCH),
    (0.1, Verdict.POSSIBLE),
]


@pytest.mark.parametrize(("confidence", "verdict"), AROUND_THE_BAR)
def test_the_bar_belongs_to_the_match(confidence: float, verdict: Verdict) -> None:
    assert decide(confidence) is verdict


@pytest.mark.parametrize("healthy", [True, False])
@pytest.mark.parametrize("follow_on", [True, False])
def test_a_match_that_is_shown_decides_alone(*, follow_on: bool, healthy: bool) -> None:
    assert decide(0.9, follow_on=follow_on, healthy=healthy) is Verdict.MATCH
    assert decide(0.5, follow_on=follow_on, healthy=healthy) is Verdict.POSSIBLE


def test_without_a_match_a_known_follow_on_error_is_worth_reading() -> None:
    assert decide(None, follow_on=True) is Verdict.POSSIBLE
    assert decide(None, follow_on=True, healthy=True) is Verdict.POSSIBLE
    assert decide(None, healthy=True) is Verdict.HEALTHY
    assert decide(None) is Verdict.UNKNOWN


def test_only_what_can_be_read_is_found() -> None:
    assert [verdict for verdict in Verdict if verdict.is_found] == [Verdict.MATCH, Verdict.POSSIBLE]


def test_what_is_known_of_the_kind_alone_is_never_a_match() -> None:
    assert decide(MAX_GENERAL_CONFIDENCE) is Verdict.POSSIBLE


def test_thresholds_and_caps_are_in_order() -> None:
    rising = [SHOW_ALSO_AT, SHOW_AT, SHOW_CALM_AT, MAX_GENERAL_CONFIDENCE, ANSWER_AT]
    rising += [MAX_CONFIDENCE_AFTER_TALK, MAX_CONFIDENCE_SHOWN, 1.0]
    assert rising == sorted(set(rising))


@pytest.mark.parametrize(
    ("confidence", "shown"),
    [(0.0, "0%"), (0.0951, "10%"), (0.72, "72%"), (0.98, "98%"), (0.996, "99%"), (1.0, "99%")],
)
def test_nothing_is_shown_as_certain(confidence: float, shown: str) -> None:
    assert percent(confidence) == shown


@pytest.fixture(scope="module")
def diagnosis(knowledge: KnowledgeBase) -> Diagnosis:
    text = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Q1 (size 9637888)"
    return diagnose(Log.from_text(text), knowledge)


@pytest.mark.parametrize(("confidence", "verdict"), AROUND_THE_BAR)
def test_every_face_says_the_same_of_a_confidence(
    diagnosis: Diagnosis, confidence: float, verdict: Verdict
) -> None:
    matches = (replace(diagnosis.matches[0], confidence=confidence),)
    concluded = replace(diagnosis.with_matches(matches), candidates=matches)
    assert concluded.verdict is verdict
    assert begin(concluded).verdict is verdict
    assert HandOff.of(diagnosis, NOW, [], matches=matches).diagnosis.verdict is verdict
    assert to_answer(concluded).verdict == verdict.value


def test_a_conversation_that_rules_all_out_leaves_nothing_known(diagnosis: Diagnosis) -> None:
    assert diagnosis.verdict.is_found
    assert diagnosis.verdict_of(()) is Verdict.UNKNOWN
    assert HandOff.of(diagnosis, NOW, [], matches=[]).diagnosis.verdict is Verdict.UNKNOWN


CALM_END = [
    *(
        f"2026-11-20 02:{n:02}:30 INFO trainer: step {n} loss {2.5 - n / 100:.3f}"
        for n in range(60)
    ),
    "2026-11-20 03:00:00 INFO trainer: saved final model to /data/out/final",
    "2026-11-20 03:00:01 INFO trainer: Training completed successfully.",
]


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-20 02:30:31 INFO launcher: the worker of gpu-7 went away, going on without it",
        "2026-11-20 02:30:31 INFO saver: 2 of 8 shards could not be written",
        "2026-11-20 02:30:31 INFO hook: exit code of the upload: 3",
    ],
)
def test_trouble_that_is_told_calmly_is_no_all_clear(line: str, knowledge: KnowledgeBase) -> None:
    def verdict(lines: list[str]) -> Verdict:
        return diagnose(Log.from_text("\n".join(lines)), knowledge).verdict

    assert verdict(CALM_END) is Verdict.HEALTHY
    assert verdict([*CALM_END[:30], line, *CALM_END[30:]]) is not Verdict.HEALTHY


def test_a_log_is_searched_once(knowledge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is healthy: the all-clear asks for nothing that is not known already."""
    searches: list[Evidence] = []

    def counting(evidence: Evidence, *args: Any) -> list[ScoredCandidate]:
        searches.append(evidence)
        return retrieve(evidence, *args)

    monkeypatch.setattr(import_module("kb.diagnosis.diagnose"), "retrieve", counting)
    assert diagnose(Log.from_text("\n".join(CALM_END)), knowledge).verdict is Verdict.HEALTHY
    assert len(searches) == 1


@pytest.mark.parametrize(
    "form",
    [
        lambda text: "".join(f"{sign}\b{sign}" for sign in text),
        lambda text: text.translate({n: n + 0xFEE0 for n in range(0x30, 0x7B)}),
    ],
    ids=["overstruck", "full-width"],
)
def test_a_failure_in_any_form_of_letters_is_no_all_clear(
    form: Callable[[str], str], knowledge: KnowledgeBase
) -> None:
    lines = [*CALM_END[:30], form("RuntimeError: rank 3 exited with code 1"), *CALM_END[30:]]
    found = diagnose(Log.from_text("\n".join(lines)), knowledge)
    assert found.verdict is not Verdict.HEALTHY
    assert "RuntimeError" in found.evidence.lines[0].text


@pytest.mark.parametrize("word", ["ok", "OK", "PASS", "2026-11-20 02:00:00 INFO done"])
def test_one_word_is_no_all_clear(word: str, knowledge: KnowledgeBase) -> None:
    """Nothing says that a job ran."""

    def verdict(lines: list[str]) -> Verdict:
        return diagnose(Log.from_text("\n".join(lines)), knowledge).verdict

    assert verdict([word]) is not Verdict.HEALTHY
    assert verdict([word] * 100) is not Verdict.HEALTHY
    assert verdict(["INFO trainer: step 100 loss 2.5, 12 tests", word]) is Verdict.HEALTHY


def job_of(directory: Path, knowledge: KnowledgeBase, *, said: list[str]) -> Diagnosis:
    """Of four ranks that all end well; in the log of rank 1 stand some lines more."""
    for rank in range(4):
        lines = [*CALM_END[:30], *said, *CALM_END[30:]] if rank == 1 else CALM_END
        (directory / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")
    return diagnose(Log.from_paths([directory]), knowledge)


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "2026-11-20 02:29:31 ERROR trainer: CUDA error: device-side assert triggered",
        "NVRM: Xid (PCI:0000:17:00): 79, pid=4711, GPU has fallen off the bus.",
        "2026-11-20 02:29:31 INFO launcher: rank 1 exited with code 1",
        "slurmstepd: error: *** STEP 1.0 ON n3 CANCELLED AT 2026-11-20T02:29:31 ***",
        "srun: error: n3: task 1: Exited with exit code 1",
        "Killed",
        "2026-11-20 02:29:31 INFO rank 1 received SIGKILL",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ],
)
def test_what_no_rank_survives_is_no_all_clear_of_its_job(
    line: str, knowledge: KnowledgeBase, tmp_path: Path
) -> None:
    found = job_of(tmp_path, knowledge, said=[line])
    assert found.verdict is not Verdict.HEALTHY
    again = "2026-11-20 02:29:40 INFO launcher: restarting rank 1 (attempt 2)"
    found = job_of(tmp_path, knowledge, said=[line, again])
    assert found.verdict is Verdict.HEALTHY, "it was started again, and ran to its end"


def test_the_rank_that_could_not_go_on_is_named(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    line = "RuntimeError: CUDA error: an illegal memory access was encountered"
    found = job_of(tmp_path, knowledge, said=[line])
    assert found.job is not None
    assert [(one.rank, one.text) for one in found.job.culprits] == [(1, line)]


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: DataLoader worker (pid 5531) is killed by signal: Killed. Restarting it",
        "2026-11-20 02:29:31 ERROR reader: read failed (try 1/4): Connection reset by peer",
        "2026-11-20 02:29:31 WARNING trainer: env 12 crashed with signal 11",
        "2026-11-20 02:29:31 INFO trainer: git describe exited with code 128, no version is kept",
        "2026-11-20 02:29:31 FATAL telemetry: the endpoint refused the connection",
    ],
)
def test_what_a_rank_survived_does_not_count_in_its_job(
    line: str, knowledge: KnowledgeBase, tmp_path: Path
) -> None:
    assert job_of(tmp_path, knowledge, said=[line]).verdict is Verdict.HEALTHY


@pytest.mark.slow
def test_what_no_rank_survives_is_seen_in_a_long_loud_log(
    knowledge: KnowledgeBase, tmp_path: Path
) -> None:
    """Of which only some of the loud lines are kept."""
    loud = [
        f"2026-11-20 02:29:31 ERROR reader: read of {n} failed (try 1/4): Connection reset"
        for n in range(30_000)
    ]
    said = [*loud[:15_000], "Killed", *loud[15_000:]]
    assert job_of(tmp_path, knowledge, said=loud).verdict is Verdict.HEALTHY
    assert job_of(tmp_path, knowledge, said=said).verdict is not Verdict.HEALTHY


@pytest.mark.parametrize(
    "end", ["Training completed on 3 of 4 nodes", "Training completed 60%", "训练已完成 60%"]
)
def test_an_end_of_some_of_the_work_is_no_all_clear(end: str, knowledge: KnowledgeBase) -> None:
    text = "\n".join([*CALM_END[:-1], end])
    assert diagnose(Log.from_text(text), knowledge).verdict is not Verdict.HEALTHY
    whole = end.replace("3 of 4", "4 of 4").replace("60%", "100%")
    text = "\n".join([*CALM_END[:-1], whole])
    assert diagnose(Log.from_text(text), knowledge).verdict is Verdict.HEALTHY


@pytest.mark.parametrize("mark", ["{}: ", "[1,{}]<stdout>: ", "[pod/train-{}/main] "])
def test_a_rank_that_does_not_end_as_the_others_do_is_no_all_clear(
    mark: str, knowledge: KnowledgeBase
) -> None:
    steps = [f"{mark.format(n % 4)}step {n} loss 1.{n}" for n in range(160)]
    done = [f"{mark.format(rank)}Training completed successfully." for rank in range(4)]
    for ended, is_calm in ((done, True), (done[:1], True), (done[1:], False)):
        found = diagnose(Log.from_text("\n".join([*steps, *ended])), knowledge)
        assert (found.verdict is Verdict.HEALTHY) == is_calm, ended


def test_a_rank_whose_log_is_empty_is_no_all_clear(
    knowledge: KnowledgeBase, tmp_path: Path
) -> None:
    assert job_of(tmp_path, knowledge, said=[]).verdict is Verdict.HEALTHY
    (tmp_path / "rank_2.log").write_text("")
    assert diagnose(Log.from_paths([tmp_path]), knowledge).verdict is not Verdict.HEALTHY


ANSWERED = 'INFO:     10.2.1.{}:40000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
SERVED = [
    "INFO:     Application startup complete.",
    *(ANSWERED.format(n) for n in range(4)),
]
PODS = [
    "$ kubectl get pods -n ml",
    "NAME                       READY   STATUS      RESTARTS      AGE",
    "sft-worker-0               0/1     Completed   0             9h",
    "vllm-6c9f7d9c4-2k8xn       1/1     Running     0             12d",
    "vllm-6c9f7d9c4-pqv7m       1/1     Running     1 (11d ago)   12d",
]
DIAGNOSED = [
    "Successfully ran diagnostic for group.",
    "+---------------------------+------------------------------------------------+",
    "| Diagnostic                | Result                                         |",
    "+-----  Integration  -------+------------------------------------------------+",
    "| PCIe                      | Pass - All                                     |",
    "| GPU Memory                | Pass - All                                     |",
    "+---------------------------+------------------------------------------------+",
]
BANDWIDTH = [
    "#       size         count      type   redop    root     time   algbw   busbw #wrong",
    "  8589934592    2147483648     float     sum      -1  65276.0  131.59  230.29      0",
    "# Out of bounds values : 0 OK",
    "# Avg bus bandwidth    : 230.29 ",
]
COPIED = [
    "sending incremental file list",
    "  4,915,916,176 100%  801.01MB/s    0:00:05 (xfr#3, to-chk=0/9)",
    "sent 16,066,101,220 bytes  received 188 bytes  764,100,000.12 bytes/sec",
    "total size is 16,062,001,998  speedup is 1.00",
]
CHECKED = ["rank 0: sum ok (36.0 == 36.0)", "root@n2:~# echo $?", "0"]
ACCOUNTED = [
    "JobID             JobName      State ExitCode    Elapsed",
    "77050          pretrain  COMPLETED      0:0   11:20:31",
    "77050.0        torchrun  COMPLETED      0:0   11:20:14",
]
INSTALLED = [
    "Installing collected packages: torch",
    "Successfully installed torch-2.9.0",
    "WARNING: Running pip as the 'root' user can result in broken permissions",
]
WITHOUT_LIBAIO = [
    " [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
    " [WARNING]  async_io: please install the libaio-dev package with apt",
    *CALM_END,
]
NONE_IN_CHINESE = [
    *(f"[03:1{n}:00] 步数 {n}00/900 损失 1.3{n} 跳过步数 0 nan 步数 0" for n in range(1, 10)),
    "[03:21:00] 失败样本数: 0，超时样本数：0",
    "[03:21:01] 训练完成，总用时 21 分",
]
LAUNCHED = ["+ srun --kill-on-bad-exit=1 python -u train.py", *CALM_END, "exit code: 0"]
ENDED_WELL = {
    "counted in Chinese": NONE_IN_CHINESE,
    "options of the launcher": LAUNCHED,
    "bandwidth": BANDWIDTH,
    "copy": COPIED,
    "status": CHECKED,
    "accounting": ACCOUNTED,
    "installer": INSTALLED,
    "known notice": WITHOUT_LIBAIO,
    "every check of a table": DIAGNOSED,
}


@pytest.mark.parametrize("lines", ENDED_WELL.values(), ids=ENDED_WELL)
def test_what_ends_well_is_healthy(lines: list[str], knowledge: KnowledgeBase) -> None:
    """Whatever prints it, and with warnings that mean nothing."""
    assert diagnose(Log.from_text("\n".join(lines)), knowledge).verdict is Verdict.HEALTHY


@pytest.mark.parametrize(
    "lines",
    [
        SERVED,  # it may hang since its last answer
        PODS,
        [*SERVED, "$ date", "Tue May  6 05:48:40 UTC 2026"],
        [*SERVED, "(nothing more since forty minutes)"],
        [SERVED[0], ANSWERED.format(9).replace("200 OK", "502 Bad Gateway"), *SERVED[1:]],
        [line.replace("POST /v1/chat/completions", "GET /health") for line in SERVED],
        ["step 5210 loss 1.80", *PODS],
        [*PODS[:3], PODS[3].replace("1/1", "1/2"), PODS[4]],
        [*PODS[:4], PODS[4].replace("1 (11d ago)", "41 (3m ago)")],
        [*DIAGNOSED[:4], "| PCIe                      | Skip - All  |", *DIAGNOSED[5:]],
        [*BANDWIDTH, "(the same test gave 380 last month)"],
        [*COPIED, "rsync error: some files could not be transferred (code 23)"],
        [*CHECKED[:2], "139"],
        [*ACCOUNTED[:2], ACCOUNTED[2].replace("COMPLETED", "RUNNING  ")],
        [*INSTALLED, '$ python -c "import torch; print(torch.cuda.is_available())"', "False"],
        [*WITHOUT_LIBAIO[:-2], " [ERROR]  Unable to pre-compile async_io"],
        ["[ OK ] driver", "[ OK ] IB 7/8 ports Active", "preflight: PASSED"],
        ["uploading shard 0..511", "uploaded 402/512", "done"],
        ["Training completed, 12 of 30000 steps"],
        ["全部完成", "成功 488/512 分片"],
        ["训练完成", "模型文件大小 0 字节"],
        [line.replace("样本数: 0", "样本数: 3") for line in NONE_IN_CHINESE],
        [*CALM_END[:-1], "shards failed: 3, errors: 0", CALM_END[-1]],
        [*CALM_END, "17 of the prompts were dropped"],
        [*CALM_END[:-1], "gpu 0 failed", CALM_END[-1]],
        [*CALM_END[:-1], "node 0 error: link down", CALM_END[-1]],
        [*CALM_END, "missing target tensors: 12"],
        [*CALM_END, "$ ls -l out", "-rw-r--r-- 1 me ml 0 Apr 1 10:00 weights.safetensors"],
        ["stages: read, sort, pack", "[read] 96/96", "[read] stage finished successfully in 2h"],
        ["#9 DONE 0.4s", "#10 exporting to image", "#10 exporting layers 20.9s done"],
        ["各节点退出码: a=0 b=137 c=0", "训练完成"],
        ["loss=0.0000 grad_norm=0.000 step=1000/1000", "Training complete, model saved"],
        ["Successful requests:      0", "Failed requests:      0"],
    ],
    ids=lambda lines: lines[-1][:40],
)
def test_what_only_seems_to_end_well_is_no_all_clear(
    lines: list[str], knowledge: KnowledgeBase
) -> None:
    found = diagnose(Log.from_text("\n".join(lines)), knowledge)
    assert found.verdict is not Verdict.HEALTHY


def test_a_rank_that_was_seen_last_on_its_way_is_no_all_clear(knowledge: KnowledgeBase) -> None:
    ends = [f"[rank{rank}] final step 10000" for rank in range(7)]
    text = "\n".join(["training finished", *ends, "[rank7] last seen step 7312", "exit code 0"])
    assert diagnose(Log.from_text(text), knowledge).verdict is not Verdict.HEALTHY
