"""Who failed first: over all recorded jobs, and where a job of its own shows a rule best."""

from __future__ import annotations

import gzip
import json
import pickle
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from index.signatures import Scanner
from kb.diagnosis.scan import scan_log
from kb.evaluate.jobs import Truth, read_truths
from kb.job import FailureKind, Job, analyse
from kb.job.model import Explanation
from kb.log import Log
from kb.log.layout import origin_of
from kb.log.timestamps import Calendar, read_stamp
from tests.scanners import markers

RECORDED = Path("benchmarks/jobs")
BEYOND_THE_RULES = {
    "cfd-writer",
    "ffno-init",
    "qmc-wait",
    "ray-bandit",
    "ssd-dl",
    "wan-mtu",
}
"""Recorded jobs that are not solved; when one is, it leaves this list."""


def job_of(*paths: Path) -> Job:
    reading = scan_log(Log.from_paths(paths), Scanner([]), markers())
    analysis = analyse(reading.files, reading.dumps, reading.damaged_dumps)
    assert analysis is not None
    return analysis.job


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def recorded() -> list[Any]:
    return [
        pytest.param(
            logs,
            truth,
            id=truth.id,
            marks=[pytest.mark.xfail(strict=True)] if truth.id in BEYOND_THE_RULES else [],
        )
        for logs, truth in read_truths(RECORDED)
    ]


@pytest.mark.parametrize(("logs", "truth"), recorded())
def test_a_recorded_job_is_told_right(logs: Path, truth: Any) -> None:
    job = job_of(logs)
    assert job.failed is truth.failed
    if not (truth.culprit_ranks or truth.culprit_hosts):
        assert all(one.rank is None and one.host is None for one in job.culprits)
        if not truth.root_line:
            return
    first = job.culprits[0]
    if truth.culprit_ranks:
        assert first.rank in truth.culprit_ranks
    elif truth.culprit_hosts:
        assert first.host in truth.culprit_hosts
    if truth.root_line:
        assert re.search(truth.root_line, first.text or "")


def steps(count: int = 40, *, prefix: str = "") -> str:
    return "".join(
        f"{prefix}2026-11-21 03:00:{n:02d} INFO step {n} loss {2.5 - n / 99:.3f} gpu 0\n"
        for n in range(count)
    )


LOST = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:2345"
BROKEN = "ValueError: widget 7 of tray 3 is jammed"


def failing(prefix: Callable[[int], str], failed: int, ranks: int = 4) -> str:
    """The output of several ranks, interleaved; one fails by itself, the others lose it."""
    lines = [steps(prefix=prefix(rank)) for rank in range(ranks)]
    errors = [
        f"{prefix(rank)}Traceback (most recent call last):\n"
        f'{prefix(rank)}  File "/opt/train.py", line 3, in main\n'
        f"{prefix(rank)}{BROKEN if rank == failed else LOST}\n"
        for rank in (*range(failed + 1, ranks), *range(failed + 1))
    ]
    rounds = zip(*(text.splitlines(keepends=True) for text in lines), strict=True)
    return "".join(line for one in rounds for line in one) + "".join(errors)


@pytest.mark.parametrize(
    "prefix",
    [
        "{}: ",
        "[{}]: ",
        "[rank{}]: ",
        "[1,{}]<stdout>:",
        "[1,{}]<stderr>:",
        "[default{}]:",
        "worker-{} | ",
        "({}) ",
        "<{}> ",
        "[{}/4] ",
        "trainer.{} | ",
        "proc {}: ",
        "[pod/train-0/main] [rank{}]: ",
        "10:00:00|mesh-{}|box-x{}|INFO|",
        "#{:02d} ",
        "[10:00:00][{:>3}] ",
        "t=10:00:00 unit=mesh{} level=info ",
        "10:00:00 PART_{:03d} :: ",
        "(ring{}) ",
        "<14>1 10:00:00 box-{} app - - ",
    ],
)
def test_one_file_of_all_ranks(tmp_path: Path, prefix: str) -> None:
    write(tmp_path, {"all.log": failing(lambda rank: prefix.format(rank, rank), failed=2)})
    job = job_of(tmp_path / "all.log")
    assert (job.failed, job.kind, job.world_size) == (True, FailureKind.EXCEPTION, 4)
    assert [one.rank for one in job.culprits] == [2]
    assert BROKEN in (job.culprits[0].text or "")
    assert job.cascade is not None
    assert (job.cascade.count, job.cascade.text) == (3, LOST)
    assert job.others[0].ranks == (0, 1, 3)


@pytest.mark.parametrize(
    "name",
    [
        "run/attempt_0/{}/stderr.log",
        "rank_{}.log",
        "train_rank_0{}.txt",
        "slurm-4711_{}.out",
        "4711_{}.err",
        "1/rank.{}/stdout",
        "{}.log",
        "log_{}.txt",
        "out.p{}",
        "model.h{}.log",
        "part-{}-of-9.log",
        "rank{}/stderr",
        "mesh{}_0412_1733.txt",
        "box/000{}/out.txt",
    ],
)
def test_a_file_a_rank(tmp_path: Path, name: str) -> None:
    stack = "Traceback (most recent call last):\n"
    write(
        tmp_path,
        {name.format(r): steps() + stack + (BROKEN if r == 1 else LOST) + "\n" for r in range(3)},
    )
    job = job_of(tmp_path)
    assert [(one.rank, one.file, one.line) for one in job.culprits] == [(1, name.format(1), 42)]


@pytest.mark.parametrize("prefix", ["(ring{}) ", "10:00:00 unit=mesh{} "])
def test_files_whose_names_tell_nothing_are_told_apart_by_their_lines(
    tmp_path: Path, prefix: str
) -> None:
    ends = ["ValueError: no such tray", LOST, LOST]
    write(
        tmp_path,
        {
            f"{name}.txt": steps(prefix=prefix.format(rank)) + prefix.format(rank) + end + "\n"
            for rank, (name, end) in enumerate(zip(("c4f1", "09ab", "77e0"), ends, strict=True))
        },
    )
    job = job_of(tmp_path)
    assert [(one.rank, one.file) for one in job.culprits] == [(0, "c4f1.txt")]


@pytest.mark.parametrize("prefix", ["{}: ", "10:00:00|{}|INFO|", "t=10:00:00 box={} "])
def test_where_only_hosts_are_told_the_host_is_named(tmp_path: Path, prefix: str) -> None:
    names = ("kiwi", "plum", "fig", "lime")
    write(tmp_path, {"all.log": failing(lambda rank: prefix.format(names[rank]), failed=2)})
    job = job_of(tmp_path / "all.log")
    assert [(one.rank, one.host) for one in job.culprits] == [(None, "fig")]
    assert [(group.ranks, group.hosts) for group in job.others] == [((), ("kiwi", "lime", "plum"))]
    assert job.world_size is None


@pytest.mark.parametrize(
    "line",
    [
        "[{module}] {module} has done part {step}",
        "step {step} layer {other} loss 2.5",
        "10:00:0{other} epoch {step} batch {other}: loss 2.5",
        "pid={other} loss 2.5 step {step}",
        "loss of part{other} is 2.5 after step {step}, that of part3 is 1.{other}",
        "moved {step} files of tray{other}",
    ],
)
def test_numbers_and_words_that_come_and_go_are_not_all_speakers(tmp_path: Path, line: str) -> None:
    modules = ("data", "model", "cache", "queue")
    lines = [
        line.format(step=n // 4, other=n * 7 % 4, module=modules[n * 7 % 4]) for n in range(40)
    ]
    write(tmp_path, {"one.log": "\n".join([*lines, "Traceback (most recent call last):", BROKEN])})
    with pytest.raises(AssertionError):
        job_of(tmp_path / "one.log")


def test_names_of_hosts_and_attempts() -> None:
    assert origin_of("node-1/attempt_2/3/stdout.log.gz").host == "node-1"
    assert origin_of("node-1/attempt_2/3/stdout.log.gz").attempt == 2
    assert origin_of("dmesg-gpu07.txt").host == "gpu07"
    assert origin_of("ip-10-0-3-7.log").host == "ip-10-0-3-7"
    assert origin_of("finetune-0412.log").rank is None


def test_the_last_attempt_decides_and_earlier_ones_are_told(tmp_path: Path) -> None:
    files = {}
    for attempt, (failed, said) in enumerate([(0, "KeyError: 'lr'"), (1, BROKEN)]):
        for rank in range(2):
            end = said if rank == failed else LOST
            files[f"r/attempt_{attempt}/{rank}/stderr.log"] = (
                steps() + f"Traceback (most recent call last):\n{end}\n"
            )
    job = job_of(write(tmp_path, files))
    assert [(one.rank, one.text) for one in job.culprits] == [(1, BROKEN)]
    assert [(one.rank, one.text) for one in job.earlier] == [(0, "KeyError: 'lr'")]


def test_the_first_in_time_is_blamed_though_clocks_differ(tmp_path: Path) -> None:
    """The host whose clock is an hour ahead failed first."""

    def log(hour: int, rank: int, end: str, second: int) -> str:
        lines = [f"2026-11-21 {hour:02d}:00:{n:02d} INFO step {n} done" for n in range(second)]
        return "\n".join([*lines, f"2026-11-21 {hour:02d}:00:{second:02d} ERROR {end}", ""])

    files = {
        "node-1/rank_0.log": log(3, 0, "ValueError: too late", 40),
        "node-2/rank_1.log": log(4, 1, "KeyError: 'first'", 20),
    }
    assert job_of(write(tmp_path, files)).culprits[0].rank == 1


def test_an_exception_that_was_survived_is_no_failure(tmp_path: Path) -> None:
    caught = (
        "2026-11-21 03:00:10 ERROR cache miss\nTraceback (most recent call last):\nOSError: x\n"
    )
    text = steps(10) + caught + steps(30) + "2026-11-21 03:09:00 INFO finished\n"
    job = job_of(write(tmp_path, {"rank_0.log": text, "rank_1.log": text}))
    assert not job.failed
    assert job.culprits == ()


def test_the_silent_rank_of_a_hang_is_named_with_its_last_words(tmp_path: Path) -> None:
    waited = "RuntimeError: Timed out waiting 15000ms for recv operation to complete\n"
    files = {f"rank_{rank}.log": steps() + waited for rank in (0, 1, 3)}
    files["rank_2.log"] = steps() + "2026-11-21 03:00:50 DEBUG asking the store for block 64\n"
    job = job_of(write(tmp_path, files))
    assert job.kind is FailureKind.HANG
    assert [(one.rank, one.line) for one in job.culprits] == [(2, 41)]
    assert (job.culprits[0].text or "").endswith("asking the store for block 64")


def test_a_node_that_left_no_log_is_named(tmp_path: Path) -> None:
    said = "nodes: gpu01 gpu02 gpu03\nRendezvousTimeoutError\n"
    job = job_of(write(tmp_path, {"gpu01.log": said, "gpu03.log": said}))
    assert [(one.rank, one.host) for one in job.culprits] == [(None, "gpu02")]


def entry(number: int, name: str = "gloo:all_reduce", state: str = "completed") -> dict[str, Any]:
    return {
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "profiling_name": name,
        "input_sizes": [[4]],
        "state": state,
        "frames": [{"name": "step", "filename": "/opt/train.py", "line": 88}],
        "is_p2p": False,
    }


def dump(entries: list[dict[str, Any]], ranks: int = 3) -> dict[str, Any]:
    members = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}}
    return {"version": "2.10", "pg_config": members, "pg_status": {}, "entries": entries}


def test_recorded_collectives_name_the_missing_rank(tmp_path: Path) -> None:
    for rank in range(3):
        last = [] if rank == 1 else [entry(3, state="scheduled")]
        data = pickle.dumps(dump([entry(1), entry(2), *last]))
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(data)
    job = job_of(tmp_path)
    assert (job.failed, job.kind) == (True, FailureKind.HANG)
    assert [one.rank for one in job.culprits] == [1]
    assert "sequence number 2, completed at train.py:88 in step" in (job.culprits[0].text or "")


def test_recorded_collectives_name_the_rank_that_called_another(tmp_path: Path) -> None:
    for rank in range(3):
        called = entry(2, "gloo:broadcast" if rank == 2 else "gloo:all_reduce", "scheduled")
        (tmp_path / f"fr_trace_{rank}.json").write_text(json.dumps(dump([entry(1), called])))
    job = job_of(tmp_path)
    assert (job.kind, [one.rank for one in job.culprits]) == (FailureKind.DESYNC, [2])


class Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_a_dump_that_would_run_code_is_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "logs", {"rank_0.log": steps(), "rank_1.log": steps()})
    data = pickle.dumps(dump([entry(1)]) | {"pg_status": Hostile(tmp_path / "ran")})
    (folder / "nccl_trace_rank_0").write_bytes(data)
    assert not job_of(folder).failed
    assert not (tmp_path / "ran").exists()


def test_a_failure_in_the_middle_of_a_large_file_is_found(tmp_path: Path) -> None:
    calm = steps(60) * 2_000
    stack = f"Traceback (most recent call last):\n  File 'x', line 1\n{BROKEN}\n"
    (tmp_path / "rank_0.log.gz").write_bytes(gzip.compress((calm + LOST + "\n").encode()))
    (tmp_path / "rank_1.log").write_text(calm + stack)
    first = job_of(tmp_path).culprits[0]
    assert (first.rank, first.line, first.text) == (1, 120_003, BROKEN)


def test_names_that_no_layout_knows_are_files(tmp_path: Path) -> None:
    reading = scan_log(
        Log.from_paths([write(tmp_path, {"notes": "a\n", "übung": "b\n"})]), Scanner([]), markers()
    )
    assert analyse(reading.files) is None


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("2026-11-21 03:04:05,678 INFO x", 1795230245.678),
        ("[2026-11-21T05:04:05.5+02:00] x", 1795230245.5),
        ("20261121T030405Z x", 1795230245.0),
        ("2026325T030405Z | x", 1795230245.0),
        ("W1121 03:04:05.250000 23 run.py:8] x", 1795230245.25),
        ("Nov 21 03:04:05 gpu01 kernel: x", 1795230245.0),
        ("21.11.2026 03:04:05 x", 1795230245.0),
        ("11/21/2026 03:04:05 x", 1795230245.0),
        ("1795230245.125 rank 3 x", 1795230245.125),
        ("03:04:05 x", 1795230245.0),
    ],
)
def test_times_of_many_formats(line: str, seconds: float) -> None:
    """What a format leaves out comes from the other lines of the job."""
    dated = read_stamp("2026-11-21 00:00:00 start")
    stamp = read_stamp(line)
    assert dated is not None
    assert stamp is not None
    assert Calendar([dated, stamp]).seconds(stamp) == pytest.approx(seconds)


def test_the_number_in_the_name_of_a_lone_file_is_not_a_rank(tmp_path: Path) -> None:
    write(tmp_path, {"00042.log": failing("[rank{}]: ".format, failed=1)})
    assert [one.rank for one in job_of(tmp_path / "00042.log").culprits] == [1]


def test_a_calm_log_of_several_ranks_is_a_job_that_did_not_fail(tmp_path: Path) -> None:
    rounds = "".join(f"rank {n % 4} step {n // 4} loss 2.5\n" for n in range(80))
    job = job_of(write(tmp_path, {"train.log": rounds}) / "train.log")
    assert (job.failed, job.world_size, job.culprits) == (False, 4, ())


def test_who_ended_the_whole_job_is_told_though_nobody_says_a_rank(tmp_path: Path) -> None:
    said = f"Traceback (most recent call last):\n  File 'x', line 1\n{BROKEN}\n"
    told = "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n"
    job = job_of(write(tmp_path, {"md.out": "step 1\n" * 30 + said + told}) / "md.out")
    assert job.failed
    assert [(one.rank, one.text) for one in job.culprits] == [(0, BROKEN)]


def reported(tmp_path: Path, hosts: str, tasks: str) -> Job:
    told = f"srun: error: {hosts}: tasks {tasks}: Exited with exit code 1\n"
    return job_of(write(tmp_path, {"slurm-7.out": steps() + told}) / "slurm-7.out")


def test_tasks_of_several_hosts_fail_without_a_host_that_is_told(tmp_path: Path) -> None:
    job = reported(tmp_path, "cn[01-02]", "0-3")
    assert (job.failed, job.world_size) == (True, 4)
    assert [(one.rank, one.host) for one in job.culprits] == [(0, None)]


@pytest.mark.parametrize("hosts", ["cn02", "cn[02]", "cn-02.cluster"])
def test_tasks_of_one_host_fail_there(tmp_path: Path, hosts: str) -> None:
    job = reported(tmp_path, hosts, "2,3")
    assert [(one.rank, one.host) for one in job.culprits] == [
        (2, hosts.translate({91: "", 93: ""}))
    ]


def test_the_host_of_a_task_is_told_by_its_own_log(tmp_path: Path) -> None:
    ended = "srun: error: cn[01-02]: tasks 1-2: Exited with exit code 1\n"
    said = {f"cn0{1 + rank // 2}/rank_{rank}.log": steps() for rank in range(4)}
    job = job_of(write(tmp_path, {"launcher.log": ended, **said}))
    assert [(one.rank, one.host) for one in job.culprits] == [(1, "cn01")]


def test_a_list_of_billions_of_tasks_and_hosts_is_read_at_once(tmp_path: Path) -> None:
    job = reported(tmp_path, "cn[0-999999][0-999999]", "0-3999999999")
    assert job.failed
    assert job.world_size is not None
    assert job.world_size < 100_000
    assert [(one.rank, one.host) for one in job.culprits] == [(0, None)]


@pytest.mark.parametrize("tasks", ["1-", "3-1", ",", "1,,-", "0-1-2", "0-1-2-3-4"])
def test_a_list_that_cannot_be_read_names_nobody(tmp_path: Path, tasks: str) -> None:
    ended = f"srun: error: cn[02-01: tasks {tasks}: Exited with exit code 1\n"
    files = {"launcher.log": ended, "rank_0.log": steps(), "rank_1.log": steps()}
    assert job_of(write(tmp_path, files)).culprits == ()


def test_ranks_that_called_another_collective_explain_a_host_that_is_lost_after_it(
    tmp_path: Path,
) -> None:
    """mpirun loses the other host's daemon when the ranks there have ended."""

    def called(rank: int) -> str:
        operation = "BROADCAST" if rank == 2 else "ALLREDUCE"
        return (
            f"Rank {rank} is running collective: CollectiveFingerPrint(SequenceNumber=12,"
            f" OpType={operation}, TensorShape=[8], TensorDtypes=Float,"
            " TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu))"
        )

    files = {
        f"gpu0{1 + rank // 2}/rank_{rank}.log": steps()
        + "Traceback (most recent call last):\n"
        + '  File "/opt/train.py", line 3, in main\n'
        + "RuntimeError: Detected mismatch between collectives on ranks."
        + f" {called(rank)}, but {called(0 if rank == 2 else 2)}.\n"
        for rank in range(4)
    }
    files["mpirun.log"] = (
        "ORTE has lost communication with a remote daemon.\n\n"
        "  HNP daemon   : [[34581,0],0] on node gpu01\n"
        "  Remote daemon: [[34581,0],1] on node gpu02\n"
    )
    job = job_of(write(tmp_path, files))
    assert (job.kind, [one.rank for one in job.culprits]) == (FailureKind.DESYNC, [2])


@pytest.mark.parametrize(
    "said", ["it hangs, can somebody help", "nccl-tests stuck for an hour", "两张卡卡住了"]
)
@pytest.mark.parametrize("behind", [False, True])
def test_what_a_person_says_around_a_paste_is_the_failure_of_no_rank(
    said: str, behind: bool, tmp_path: Path
) -> None:
    ranks = "".join(f"box:41{n}:42{n} [{n}] NCCL INFO Connected all rings\n" for n in range(4))
    text = f"{ranks}{said}\n" if behind else f"{said}\n{ranks}"
    job = job_of(write(tmp_path, {"paste.txt": text}) / "paste.txt")
    assert (job.failed, job.culprits) == (False, ())


def statements(*ranks: int) -> dict[str, str]:
    """A file for each process, which states its rank and waits in vain."""
    return {
        f"p{place}.txt": f"start RANK={rank} WORLD_SIZE={len(ranks)}\n"
        "torch.distributed.DistStoreError: wait timeout after 9000ms, keys: /default_pg/0//1\n"
        for place, rank in enumerate(ranks)
    }


def test_a_rank_that_two_processes_claim_is_named(tmp_path: Path) -> None:
    for name, text in statements(0, 1, 1, 3).items():
        (tmp_path / name).write_text(text)
    job = job_of(tmp_path)
    assert job.finding == Explanation.SAME_RANK
    assert {one.rank for one in job.culprits} == {1}
    assert {one.file for one in job.culprits} == {"p1.txt", "p2.txt"}


def test_ranks_that_are_all_there_are_no_conflict(tmp_path: Path) -> None:
    for name, text in statements(0, 1, 2, 3).items():
        (tmp_path / name).write_text(text)
    assert job_of(tmp_path).finding != Explanation.SAME_RANK


def test_a_driver_that_fails_behind_its_ranks_blames_none(tmp_path: Path) -> None:
    steps = [f"worker {rank} | step {step} ok" for step in range(6) for rank in range(3)]
    ends = [f"worker {rank} | finished" for rank in range(3)]
    failure = ["Traceback (most recent call last):", '  File "d.py", line 1', "KeyError: 'peak'"]
    (tmp_path / "run.log").write_text("\n".join([*steps, *ends, *failure]))
    job = job_of(tmp_path)
    assert job.failed
    assert job.finding == Explanation.DRIVER
    assert [(one.rank, one.text) for one in job.culprits] == [(None, "KeyError: 'peak'")]


def differences_of(folder: Path) -> list[str]:
    reading = scan_log(Log.from_paths([folder]), Scanner([]), markers())
    analysis = analyse(reading.files)
    return [f"{one.text} {one.line.number}" for one in analysis.differences] if analysis else []


@pytest.mark.parametrize(
    ("line", "values", "told"),
    [
        (
            "start world_size={}",
            (8, 8, 7, 8),
            ["rank 2 prints `world_size=7`, all others `8`. 2"],
        ),
        (
            "model shape (4, {})",
            (16, 16, 8, 16),
            ["rank 2 prints `model shape (4, 8)`, all others `(4, 16)`. 2"],
        ),
        (
            "step 3 loss {}",
            (2.31, 2.28, "nan", 2.4),
            ["rank 2 prints `loss nan`, all others numbers. 2"],
        ),
        ("seed {}", (1, 2, 3, 4), []),
        ("seed {}", (1, 1, 2, 2), []),
        ("pid={} up", (7, 7, 9, 7), []),
        ("took 3{}", ("s", "s", "m", "s"), []),
        ("main={}", ("True", "False", "False", "False"), []),
        ("shard of {} rows", (100, 100, 100, 98), []),
    ],
)
def test_a_value_of_one_rank_that_differs_is_told(
    tmp_path: Path, line: str, values: tuple[object, ...], told: list[str]
) -> None:
    for rank, value in enumerate(values):
        text = f"hello\n{line.format(value)}\nRuntimeError: boom {rank}\n"
        (tmp_path / f"rank_{rank}.log").write_text(text)
    assert differences_of(tmp_path) == told


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param(logs, id=truth.id)
        for logs, truth in read_truths(RECORDED)
        if truth.kind == "healthy"
    ],
)
def test_the_ranks_of_a_healthy_job_do_not_differ(logs: Path) -> None:
    assert differences_of(logs) == []


def test_a_node_that_never_joined_is_no_rank_that_hangs(tmp_path: Path) -> None:
    said = "starting the agent\nRendezvousTimeoutError\n"
    job = job_of(write(tmp_path, {"gpu01.log": said, "gpu02.log": said}))
    assert job.kind is FailureKind.RENDEZVOUS
    assert job.finding == Explanation.NEVER_JOINED


def test_how_many_ranks_there_are_is_no_part_of_what_a_rank_says(tmp_path: Path) -> None:
    said = "".join(f"rank {rank} of 4: model built\n" for rank in range(4))
    log = tmp_path / "all.log"
    log.write_text(f"{said}[rank1]: RuntimeError: CUDA error: out of memory\n")
    job = job_of(log)
    assert [group.text for group in job.others] == ["model built"]
    assert job.others[0].line == 1


def merged(folder: Path, *lines: str) -> Path:
    return write(folder, {"all.log": "".join(f"{line}\n" for line in lines)})


def first_of(*paths: Path) -> tuple[int | None, str]:
    """Who failed first, and what shows it."""
    job = job_of(*paths)
    assert job.failed
    return job.culprits[0].rank, job.culprits[0].text or ""


def test_a_rank_that_never_spoke_is_named_by_those_that_wait_for_it(tmp_path: Path) -> None:
    work = [f" [{rank}] sweep {n} energy 1.{n}" for n in range(6) for rank in (0, 1, 3)]
    wait = [" [0] grid: 3 of 4 are here, waiting for task(s) 2"] * 4
    ended = "TERM_RUNLIMIT: job killed after reaching LSF run time limit."
    rank, line = first_of(merged(tmp_path, *work, *wait, ended))
    assert (rank, line) == (2, wait[0].strip())


def test_a_process_id_that_a_rank_waits_for_is_no_rank(tmp_path: Path) -> None:
    work = [f"[{n % 3}] sweep {n}" for n in range(12)]
    ended = ["[0] waiting for process 4711", "TERM_RUNLIMIT: job killed after reaching time limit."]
    assert job_of(merged(tmp_path, *work, *ended)).culprits[0].rank in range(3)


def test_a_rank_that_was_started_again_may_have_little_left_to_say(tmp_path: Path) -> None:
    work = [f"{n % 3}: sweep {n}" for n in range(12)]
    ended = ["srun: error: mars-1: task 1: Exited with exit code 1", "restarting rank 1"]
    rest = ["1: sweep 12", "1: training finished", "0: training finished", "2: training finished"]
    assert not job_of(merged(tmp_path, *work, *ended, *rest)).failed


def test_a_prefix_that_counts_per_host_gives_way_to_the_rank_behind_it(tmp_path: Path) -> None:
    for place, host in enumerate(("node-1", "node-2")):
        work = [f"[worker{n % 2}]: pass {n // 2} of 9" for n in range(12)]
        marked = [f"[worker{n}]:[rank{2 * place + n}]: Traceback" for n in range(2)]
        told = "ValueError: bad tile" if host == "node-2" else "ConnectionResetError: gone"
        ends = [f"[worker{n}]:[rank{2 * place + n}]: ConnectionResetError: gone" for n in range(2)]
        ends[1] = f"[worker1]:[rank{2 * place + 1}]: {told}"
        write(tmp_path, {f"{host}.log": "\n".join([*work, *marked, *ends, ""])})
    assert first_of(tmp_path) == (3, "[worker1]:[rank3]: ValueError: bad tile")


def test_a_file_named_by_a_role_is_that_of_the_rank_which_it_states(tmp_path: Path) -> None:
    files = {
        f"scout.{n}.txt": f"10:00:01 scout-{n} begins as rank={n}/3\n10:00:09 scout-{n} goes home\n"
        for n in (1, 2)
    }
    told = "10:00:01 chief begins as rank=0/3\n10:00:02 chief opens the table\nKeyError: 'seat'\n"
    assert first_of(write(tmp_path, files | {"chief.txt": told})) == (0, "KeyError: 'seat'")


def test_what_a_process_prints_belongs_to_the_rank_that_its_other_lines_name(
    tmp_path: Path,
) -> None:
    def said(pid: int, text: str) -> str:
        return f"2026-03-02T10:00:0{pid % 10}+0000 mars-1 feeder[{pid}]: {text}"

    work = [said(9000 + n % 3, f"I part<{n % 3}> batch {n}") for n in range(18)]
    stack = [
        "Traceback (most recent call last):",
        '  File "feed.py", line 3, in pull',
        "KeyError: 7",
    ]
    lines = [line for text in stack for line in (said(9001, text), said(9000, "I part<0> idle"))]
    assert first_of(merged(tmp_path, *work, *lines)) == (1, said(9001, "KeyError: 7"))


def test_a_stack_is_that_of_the_rank_which_speaks_of_an_error_before_it(tmp_path: Path) -> None:
    work = [f"0.{n} I area{n % 3} turn {n}" for n in range(12)]
    failed = [
        "1.1 E area2 turn 13 is given up",
        "Traceback (most recent call last):",
        "KeyError: 3",
    ]
    ended = ["1.2 C area0 stops all", "MPI_ABORT was invoked on rank 0 in communicator X"]
    assert first_of(merged(tmp_path, *work, *failed, *ended)) == (2, "KeyError: 3")


def test_each_rank_says_which_attempt_it_begins(tmp_path: Path) -> None:
    lines = []
    for attempt, (guilty, error) in enumerate([(1, "KeyError: 'a'"), (2, "KeyError: 'b'")]):
        lines += [f"[pod/crew-{n}/main] crew({n}) attempt {attempt} starts" for n in range(3)]
        lines += [f"[pod/crew-{n % 3}/main] crew({n % 3}) lap {n}" for n in range(12)]
        for n in range(3):
            lines.append(f"[pod/crew-{n}/main] Traceback (most recent call last):")
            lines.append(f'[pod/crew-{n}/main]   File "row.py", line 7, in pull')
            told = error if n == guilty else "ConnectionResetError: gone"
            lines.append(f"[pod/crew-{n}/main] {told}")
    job = job_of(merged(tmp_path, *lines))
    assert (job.culprits[0].rank, job.culprits[0].text) == (2, "[pod/crew-2/main] KeyError: 'b'")
    assert [one.rank for one in job.earlier] == [1]


def test_tries_of_a_reader_are_no_attempts_of_the_job(tmp_path: Path) -> None:
    lines = [f"[{n % 3}] lap {n}" for n in range(12)]
    lines += [f"[{n}] read of shard: attempt {k} of 3" for n in range(3) for k in (1, 2)]
    lines += ["[1] KeyError: 'a'"]
    job = job_of(merged(tmp_path, *lines))
    assert (job.culprits[0].rank, job.earlier) == (1, ())


def test_names_of_ranks_are_learned_where_a_program_tells_their_numbers(tmp_path: Path) -> None:
    names = {"left2": 2, "left3": 3, "right0": 0, "right1": 1}
    told = [f"{name}: {name} is rank {rank}" for name, rank in names.items()]
    work = [f"{name}: row {n}" for n in range(8) for name in names]
    lines = [*told, *work, "right1: Traceback (most recent call last):", "right1: KeyError: 3"]
    assert first_of(merged(tmp_path, *lines)) == (1, "right1: KeyError: 3")


def test_stacks_of_processes_are_those_of_ranks_that_told_their_pid(tmp_path: Path) -> None:
    pids = {("sun-1", 0): 501, ("sun-1", 1): 502, ("sun-2", 0): 611, ("sun-2", 1): 612}
    files: dict[str, str] = {"sun-1/console.txt": "", "sun-2/console.txt": ""}
    for turn, ((host, local), pid) in product(range(9), pids.items()):
        said = f"turn {turn} ok" if turn else f"hello, pid {pid}"
        files[f"{host}/console.txt"] += f"<{host}:{local}> {said}\n"
        stands = "reduce" if pid != 611 else "refill"
        files[f"{host}/dump.{pid}.txt"] = (
            f'Current thread 0x1 (most recent call first):\n  File "a.py", line 3 in {stands}\n'
            '  File "a.py", line 9 in main\n'
        )
    for host in ("sun-1", "sun-2"):
        stops = [pid for (where, _local), pid in pids.items() if where == host]
        files[f"{host}/console.txt"] += "".join(f"guard: SIGKILL to pid {pid}\n" for pid in stops)
    job = job_of(write(tmp_path, files))
    assert (job.kind, job.culprits[0].rank) == (FailureKind.HANG, 2)
    assert job.culprits[0].text == 'File "a.py", line 3 in refill'


def test_an_exception_because_of_a_lost_peer_is_no_first_failure(tmp_path: Path) -> None:
    lost = (
        "12:00:0{}.0 row\nTraceback (most recent call last):\nConnectionResetError: it is away\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\nmesh.TeamIsGone: link down to {}\n"
    )
    failed = "12:00:09.0 row\nTraceback (most recent call last):\nValueError: odd\n"
    files = {f"rank_{n}.log": lost.format(n, n + 1) for n in range(3)} | {"rank_3.log": failed}
    assert first_of(write(tmp_path, files)) == (3, "ValueError: odd")


def test_the_rank_that_did_not_call_the_last_collective_is_the_one_that_hangs(
    tmp_path: Path,
) -> None:
    caught = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=58, OpType=ALLGATHER)"
    behind = "dump because of a collective timeout. Last enqueued NCCL work: 57, last completed"
    lines = [f"{n}: [rank{n}]: {caught if n != 2 else behind}" for n in range(4)]
    ended = ["srun: error: mars-1: tasks 0-1,3: Aborted (core dumped)"]
    assert first_of(merged(tmp_path, *lines, *ended)) == (2, f"2: [rank2]: {behind}")


def test_the_rank_that_waited_for_another_collective_is_out_of_step(tmp_path: Path) -> None:
    caught = (
        "[Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=58, OpType={})"
    )
    waited = ["ALLREDUCE, NumelIn=4096", "ALLREDUCE, NumelIn=4096", "BARRIER, NumelIn=1"]
    waited.append(waited[0])
    lines = [f"[rank{n}]: {caught.format(n, waited[n])}" for n in range(4)]
    job = job_of(merged(tmp_path, *lines))
    assert (job.kind, [one.rank for one in job.culprits]) == (FailureKind.DESYNC, [2])


def test_the_last_words_of_a_rank_may_stand_behind_the_report_of_its_end(tmp_path: Path) -> None:
    work = [f"[1,{n % 4}]<stdout>: cell {n // 4} flux=  {n}.5" for n in range(24)]
    abort = ["MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD"]
    late = ["[1,2]<stderr>: the wall at x=4 has a hole, stop", "[1,2]<stdout>: cell 6 flux= -7.5"]
    assert first_of(merged(tmp_path, *work, *abort, *late)) == (2, late[0])


def test_a_job_that_is_preempted_fails_by_no_rank(tmp_path: Path) -> None:
    files = {f"rank_{n}.log": f"step 1\nstep 2\ncaught signal 15, bye {n}\n" for n in range(2)}
    ended = "slurmstepd: error: *** JOB 5 ON mars-1 CANCELLED AT x DUE TO PREEMPTION ***\n"
    job = job_of(write(tmp_path, files | {"slurm-5.out": ended}))
    assert (job.failed, job.finding) == (True, Explanation.PREEMPTED)
    assert (job.culprits[0].rank, job.culprits[0].text) == (None, ended.strip())


def exported(pod: str, second: int, text: str) -> str:
    return json.dumps(
        {
            "logName": "projects/p/logs/stderr",
            "resource": {"labels": {"pod_name": pod}},
            "textPayload": text,
            "timestamp": f"2026-03-02T10:00:{second:02}.000000Z",
        }
    )


@pytest.mark.parametrize("added", ["", "-x7k2p"])
def test_an_export_may_begin_with_the_newest_line_and_pods_are_ranks(
    tmp_path: Path, added: str
) -> None:
    lines = [exported(f"oar-{n % 4}{added}", n, f"stroke {n}") for n in range(20)]
    lines += [
        exported(f"oar-2{added}", 20 + n, text)
        for n, text in enumerate(["warming up", "KeyError: 3"])
    ]
    lines += [exported(f"oar-{n}{added}", 30, "ConnectionResetError: gone") for n in (0, 1, 3)]
    write(tmp_path, {"newest_first.jsonl": "\n".join([*reversed(lines), ""])})
    job = job_of(tmp_path)
    assert (job.culprits[0].rank, job.world_size) == (2, 4)
    assert job.culprits[0].host == f"oar-2{added}"
    assert (job.culprits[0].text or "").endswith("KeyError: 3")


def test_pods_in_which_a_launcher_starts_several_are_no_ranks(tmp_path: Path) -> None:
    lines = [exported(f"oar-{n % 2}", n, ("stroke", "rest")[n % 2]) for n in range(20)]
    lines += [
        exported("oar-0", 1, "torchrun --nproc-per-node 8"),
        exported("oar-1", 25, "KeyError: 3"),
    ]
    write(tmp_path, {"all.jsonl": "\n".join([*lines, ""])})
    job = job_of(tmp_path)
    assert (job.culprits[0].rank, job.culprits[0].host) == (None, "oar-1")


@pytest.mark.parametrize("indent", [None, 1])
def test_what_loki_answers_is_read_stream_by_stream(tmp_path: Path, indent: int | None) -> None:
    streams = []
    for n in range(3):
        said = [f"stroke {k}" for k in range(60)]
        said.append("KeyError: 'oar'" if n == 1 else "ConnectionResetError: gone")
        values = [[f"17724456{k:02}000000000", text] for k, text in enumerate(said)]
        streams.append({"stream": {"pod": f"oar-{n}"}, "values": values[::-1]})
    answer = {"status": "success", "data": {"resultType": "streams", "result": streams}}
    write(tmp_path, {"answer.json": json.dumps(answer, indent=indent)})
    job = job_of(tmp_path)
    assert job.culprits[0].rank == 1
    assert (job.culprits[0].text or "").endswith("KeyError: 'oar'")
    if indent:
        told = (tmp_path / "answer.json").read_text().split("\n")[(job.culprits[0].line or 0) - 1]
        assert "KeyError: 'oar'" in told


def test_a_kill_by_the_limit_of_time_blames_nobody_and_a_list_of_stalled_ranks_does(
    tmp_path: Path,
) -> None:
    work = [f"[1,{n % 4}]<stdout>:tile {n}" for n in range(20)]
    last = "[1,3]<stdout>:opening the big tile"
    stall = ["[1,0]<stderr>:Missing ranks:", "[1,0]<stderr>:3: [grads/reduce_0, grads/reduce_1]"]
    ends = [
        "slurmstepd: error: *** JOB 5 ON mars-1 CANCELLED AT x DUE TO TIME LIMIT ***",
        "mpirun noticed that process rank 1 with PID 7 on node mars-1 exited on signal 9 (Killed).",
        "RuntimeError: mpirun failed with exit code 137",
    ]
    assert first_of(merged(tmp_path, *work, last, *stall * 3, *ends)) == (3, last)


def test_a_try_that_is_repeated_is_not_the_failure(tmp_path: Path) -> None:
    def said(rank: int) -> str:
        if rank != 1:
            return "step 1\nstep 2\nConnectionResetError: gone\n"
        tried = "WARN read failed, retrying: Input/output error\n" * 2
        return f"step 1\n{tried}ERROR tape 4 is lost: Input/output error\n"

    files = {f"rank_{rank}.log": said(rank) for rank in range(3)}
    told = first_of(write(tmp_path, files))
    assert told == (1, "ERROR tape 4 is lost: Input/output error")


@pytest.mark.parametrize(("noisy", "failed"), [(3, False), (1, True)])
def test_noise_of_all_workers_at_the_shutdown_is_no_failure(
    tmp_path: Path, noisy: int, failed: bool
) -> None:
    work = "10:00:01 tile 1\n10:00:02 tile 2\n"
    noise = "10:00:03 goodbye\nTypeError: NoneType has no queue\n"
    files = {
        f"worker-{n}.log": f"{work}{noise if n < noisy else ''}10:00:04 worker left the pool\n"
        for n in range(3)
    }
    files["client.log"] = "all 6 tiles are here\nmosaic finished\n"
    assert job_of(write(tmp_path, files)).failed is failed


def test_a_host_that_is_called_worker_is_no_rank(tmp_path: Path) -> None:
    out = [f"worker-{n % 4 // 2}: rank {n % 4} lap {n}" for n in range(40)]
    err = ["worker-1: UserWarning: slow"] * 8
    err += [f"worker-0: [rank{n}]:[E ] NCCL error: remote process exited" for n in range(2)]
    err += [
        "worker-1: [ERROR] ['python', 'a.py', '--local_rank=1'] exits with return code = -7",
        "worker-0: [ERROR] ['python', 'a.py', '--local_rank=0'] exits with return code = -6",
    ]
    files = {"pdsh.out.log": "\n".join([*out, ""]), "pdsh.err.log": "\n".join([*err, ""])}
    assert first_of(write(tmp_path, files)) == (3, err[-2])


def test_the_executor_of_spark_is_the_rank_and_not_its_container(tmp_path: Path) -> None:
    begins = "10:00:01 INFO Executor: Starting executor ID {} on host mars"
    works = "10:00:02 INFO Executor: Running task {}.0 in stage 3.0"
    failed = "10:00:03 ERROR boom\njava.io.IOException: No space left on device\n"
    files = {}
    for n in range(1, 4):
        said = f"{begins.format(n)}\n{works.format(n)}\n{failed if n == 2 else ''}"
        files[f"mars-{n}/container_01_00000{n + 1}/stderr"] = said
    tasks = [f"10:00:02 INFO TaskSetManager: Finished task {n}.0 in stage 3.0" for n in range(40)]
    files["driver.stderr"] = "\n".join([*tasks, "10:00:05 ERROR Aborting job", ""])
    assert first_of(write(tmp_path, files))[0] == 2


def test_an_error_of_a_team_that_says_who_hung_up_is_no_first_failure(tmp_path: Path) -> None:
    names = ("mesh.PeerLost", "net.LinkClosed", "RuntimeError", "ValueError")
    said = ("round 9: cut off", "bye", "connection closed by rank 3", "widget 7 is jammed")
    files = {
        f"rank{rank}.log": steps()
        + 'Traceback (most recent call last):\n  File "/opt/train.py", line 3, in main\n'
        + f"{name}: {text}\n"
        for rank, (name, text) in enumerate(zip(names, said, strict=True))
    }
    job = job_of(write(tmp_path, files))
    assert [(one.rank, one.text) for one in job.culprits] == [(3, "ValueError: widget 7 is jammed")]


@pytest.mark.parametrize(
    "line", ["{}: {}ms|INFO|lap {}", "<p{}/3> 07:00:{:02} II patch {} solved=9 failed=3"]
)
def test_an_error_is_past_when_a_rank_goes_on_with_lines_of_its_usual_form(
    tmp_path: Path, line: str
) -> None:
    work = [line.format(n % 3, 10 + n, n // 3) for n in range(30)]
    name = work[1].split(" ")[0]
    caught = [
        f"{name} 07:00:12 EE no table, the default is used",
        f"{name} 07:00:12 EE IndexError: list index out of range",
    ]
    ends = [f"{line.split(' ')[0].format(n)} 07:00:59 II finalize, exit 0" for n in range(3)]
    assert not job_of(merged(tmp_path, *work[:6], *caught, *work[6:], *ends)).failed


def test_what_a_rank_tidies_up_behind_its_error_is_no_sign_that_it_survived(tmp_path: Path) -> None:
    begins = "07:00:01 INFO step 1\n07:00:02 INFO step 2\n"
    files = {f"rank_{n}.log": begins for n in range(3)}
    files["rank_1.log"] += f"07:00:03 ERROR {BROKEN}\n07:00:04 INFO process group destroyed\n"
    assert first_of(write(tmp_path, files))[0] == 1


def test_a_watchdog_that_kills_a_process_tells_of_a_failure(tmp_path: Path) -> None:
    work = [f"07:00:{n:02} INFO {{rank={n % 3}}} lap {n // 3}" for n in range(30)]
    told = "07:01:00 watchdog: local rank 1 still alive, sending SIGKILL"
    assert first_of(merged(tmp_path, *work, told)) == (None, told)


def test_a_job_at_the_limit_of_its_time_fails_by_no_rank(tmp_path: Path) -> None:
    work = [f"{n % 3}: {n * 71}ms|INFO|lap {n // 3}" for n in range(30)]
    caught = "1: 99ms|ERROR|no licence ([Errno 2] No such file or directory: 'a.lic'), use another"
    ends = [
        "slurmstepd: error: *** JOB 5 ON mars-1 CANCELLED AT x DUE TO TIME LIMIT ***",
        "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.",
        "srun: error: mars-1: tasks 0-2: Terminated",
    ]
    job = job_of(merged(tmp_path, *work[:9], caught, *work[9:], *ends))
    assert (job.failed, job.finding) == (True, Explanation.OUT_OF_TIME)
    assert (job.culprits[0].rank, job.culprits[0].text) == (None, ends[0])


def test_a_job_that_somebody_interrupts_fails_by_no_rank(tmp_path: Path) -> None:
    work = [f"[default{n % 3}]:lap {n // 3}" for n in range(30)]
    agent = "W1129 21:30:20.093000 77 torch/distributed/elastic/agent/server/api.py:753]"
    told = f"{agent} Received 2 death signal, shutting down workers"
    ends = [f"[default{n}]:[rank{n}]: KeyboardInterrupt" for n in range(3)]
    ends += ["Traceback (most recent call last):", '  File "api.py", line 86, in handler']
    ends += ["elastic.api.SignalException: Process 77 got signal: 2"]
    job = job_of(merged(tmp_path, *work, told, *ends))
    assert (job.failed, job.finding) == (True, Explanation.INTERRUPTED)
    assert (job.culprits[0].rank, job.culprits[0].text) == (None, told)


def test_what_a_driver_of_ray_raises_is_final_though_the_actors_print_later(tmp_path: Path) -> None:
    said = "(Actor pid=4{0}) 10:00:{1:02} INFO actor[{0}] lap {2}: 9 fish"
    work = [said.format(n % 3, n, n // 3) for n in range(30)]
    caught = [
        "(Actor pid=41) 10:00:04 ERROR actor[1] net is stuck, again (1/3)",
        "(Actor pid=41) TimeoutError: no fish in 5.0s",
    ]
    raised = [
        "Traceback (most recent call last):",
        '  File "/srv/drive.py", line 17, in <module>',
        "    ray.get([one.sail.remote() for one in actors])",
        "ray.exceptions.RayTaskError(KeyError): ray::Actor.sail() (pid=42, ip=10.0.0.1, repr=<x>)",
        '  File "/srv/drive.py", line 14, in sail',
        "KeyError: 'net'",
    ]
    late = [said.format(n, 30, 10) for n in range(3)]
    lines = [*work[:6], *caught, *work[6:], *raised, *late]
    assert first_of(merged(tmp_path, *lines)) == (2, "KeyError: 'net'")


def test_a_rank_that_complains_to_its_end_while_all_others_just_stop(tmp_path: Path) -> None:
    begins = "21.17.23 INF 6 keys read\n"
    files = {f"1/rank.{n}/stdout": f"{begins}21.17.24 INF waiting for the map\n" for n in range(4)}
    files["1/rank.2/stdout"] = begins
    files["1/rank.2/stderr"] = "21.17.24 ERR nz: here 46, there 75\n21.17.25 ERR giving up\n"
    assert first_of(write(tmp_path, files)) == (2, "21.17.24 ERR nz: here 46, there 75")


@pytest.mark.parametrize(
    "reason",
    [
        "EOFError: Compressed file ended before the end-of-stream marker was reached",
        "EOFError: Ran out of input",
    ],
)
def test_a_file_that_ends_too_early_is_no_lost_peer_and_a_broken_barrier_is_one(
    tmp_path: Path, reason: str
) -> None:
    stack = "12:00:0{} ERROR stage failed\nTraceback (most recent call last):\n{}\n"
    files = {
        f"rank_{n}.log": f"12:00:01 bucket {n}\n"
        + stack.format(*((2, reason) if n == 2 else (5, "threading.BrokenBarrierError")))
        for n in range(4)
    }
    assert first_of(write(tmp_path, files)) == (2, reason)


def test_a_line_in_front_of_a_stack_announces_what_its_exception_tells(tmp_path: Path) -> None:
    stack = "12:00:02 ERROR the loop died: RuntimeError\nTraceback (most recent call last):\n{}\n"
    files = {f"rank_{n}.log": f"step 1\n{stack.format(LOST)}" for n in range(3)}
    files["rank_3.log"] = f"step 1\n{stack.format(BROKEN).replace('02', '09')}"
    assert first_of(write(tmp_path, files)) == (3, BROKEN)


def test_a_line_in_front_of_a_stack_that_is_cut_off_is_all_that_is_told(tmp_path: Path) -> None:
    died = "12:00:02 ERROR the loop died: RuntimeError"
    cut = f'{died}\nTraceback (most recent call last):\n  File "/opt/train.py", line 3, in main\n'
    files = {f"rank_{n}.log": "step 1\nstep 2\n" for n in range(3)}
    files["rank_3.log"] = f"step 1\n{cut}"
    assert first_of(write(tmp_path, files)) == (3, died)


def test_rotated_files_of_one_log_are_no_ranks(tmp_path: Path) -> None:
    work = [f"07:00:{n:02} INFO {{rk=0{n % 3}, sz=3}} - batch {n // 3}" for n in range(30)]
    failed = ["07:00:40 ERROR {rk=02, sz=3} - odd", "Traceback (most recent call last):", BROKEN]
    lines = [*work, *failed]
    parts = {"a.log.2": lines[:12], "a.log.1": lines[12:24], "a.log": lines[24:]}
    files = {name: "\n".join([*part, ""]) for name, part in parts.items()}
    assert first_of(write(tmp_path, files)) == (2, BROKEN)


def test_a_process_is_named_in_chinese_and_its_host_is_no_rank(tmp_path: Path) -> None:
    said = "【2026年11月30日 05时24分{1:02}秒】〔工作进程 {0}／主机 bj-gpu-2{0}〕信息：第 {1} 步"
    files = {
        f"工作进程-{n}.log": "".join(f"{said.format(n, k)}\n" for k in range(9)) for n in range(4)
    }
    files["工作进程-2.log"] += f"Traceback (most recent call last):\n{BROKEN}\n"
    told = "【2026年11月30日 05时24分{:02}秒】〔参数服务器〕信息：收到 工作进程 {} 的梯度\n"
    files["参数服务器.log"] = "".join(told.format(n, n % 4) for n in range(40))
    assert first_of(write(tmp_path, files)) == (2, BROKEN)


def test_an_attempt_and_a_rank_in_front_of_each_line(tmp_path: Path) -> None:
    def attempt(number: int, first: int) -> list[str]:
        begins = [f"{number}.{n}> INFO attempt {number}, at step {first}" for n in range(3)]
        return [*begins, *(f"{number}.{n % 3}> INFO step {first + n // 3}" for n in range(15))]

    broken = [f"0.1> [rank1]: {BROKEN}", f"0.0> [rank0]: {LOST}", f"0.2> [rank2]: {LOST}"]
    again = "elastic> restarting from last checkpoint (2 restarts left)"
    ends = [f"1.{n}> INFO training finished, 8 steps" for n in range(3)]
    lines = [*attempt(0, 0), *broken, again, *attempt(1, 4)]
    assert not job_of(merged(tmp_path, *lines, *ends, "elastic> job SUCCEEDED")).failed
    failed = [line.replace("0.", "1.", 1) for line in broken]
    assert first_of(merged(tmp_path, *lines, *failed)) == (1, failed[0])


def test_a_host_and_a_local_rank_in_front_of_each_line(tmp_path: Path) -> None:
    files = {}
    for host in range(2):
        name = f"hz-mill-{host + 4}"
        said = [f"T07:00:{n:02} {name}:{n % 3} info step {n // 3} ok" for n in range(30)]
        last = [f"{name}:{n} error {LOST}" for n in range(3) if (host, n) != (1, 1)]
        if host:
            said.append(f"T07:00:40 {name}:1 info step 10: waiting for the lock")
            last.append(f"{name}:- error watchdog: local rank 1 still alive, sending SIGKILL")
        files[f"{name}.log"] = "".join(
            f"2026-11-29{'' if line.startswith('T') else 'T07:01:00 '}{line}\n"
            for line in [*said, *last]
        )
    job = job_of(write(tmp_path, files))
    assert (job.culprits[0].rank, job.culprits[0].host) == (4, "hz-mill-5")
    assert (job.culprits[0].text or "").endswith("waiting for the lock")


def test_a_launcher_that_fails_before_any_rank_runs_tells_its_node(tmp_path: Path) -> None:
    begins = "launch: node mars-{0} node_rank={0} nproc=2\n+ torchrun --node-rank {0} train.py\n"
    files = {f"slot{n}.txt": f"{begins.format(n)}launch: torchrun ended rc=124\n" for n in (1, 2)}
    port = "torch.distributed.DistNetworkError: EADDRINUSE, message: address already in use"
    stack = '  File "torch/distributed/run.py", line 1028, in main'
    raised = f"Traceback (most recent call last):\n{stack}\n{port}\n"
    files["slot0.txt"] = f"{begins.format(0)}{raised}launch: torchrun ended rc=1\n"
    job = job_of(write(tmp_path, files))
    assert (job.culprits[0].host, job.culprits[0].text) == ("mars-0", port)


@pytest.mark.parametrize("which", ["player {} of 4", "band player={}/4", "[player #{}/4]"])
def test_files_of_which_each_says_which_of_how_many_it_is(tmp_path: Path, which: str) -> None:
    names = {"harp": 2, "bass": 0, "flute": 3, "drum": 1}
    files = {}
    for name, number in names.items():
        begins = f"07:00:00 INFO {which.format(number)}, try 1/3, node 1/2\n"
        files[f"{name}-7.txt"] = begins + steps(9) + f"{BROKEN if name == 'harp' else LOST}\n"
    assert first_of(write(tmp_path, files)) == (2, BROKEN)


def test_what_each_file_counts_alike_is_no_rank(tmp_path: Path) -> None:
    files = {f"{name}.txt": "phase 1/3\n" + steps(9) + f"{LOST}\n" for name in ("bass", "drum")}
    files["harp.txt"] = "phase 2/3\n" + steps(9) + f"{BROKEN}\n"
    reading = scan_log(Log.from_paths([write(tmp_path, files)]), Scanner([]), markers())
    assert analyse(reading.files) is None


def test_a_healthy_job_needs_no_root_line_whether_it_is_empty_or_left_out() -> None:
    truth = Truth("one", "", "healthy", False, (), (), "")
    assert truth.is_shown_by(None)
    assert msgspec.structs.replace(truth, root_line=None).is_shown_by(None)
    assert not msgspec.structs.replace(truth, root_line="boom").is_shown_by(None)


def test_a_kernel_log_has_no_ranks_and_a_process_is_that_of_the_trainer_rank(
    tmp_path: Path,
) -> None:
    files = {
        f"loom-{n}_out.log": f"ts=2026-11-21T03:00:00Z process_rank={n} of 3 pid=77{n}\n"
        + steps(9)
        + (f"{LOST}\n" if n != 1 else "")
        for n in range(3)
    }
    kernel = "2026-11-21T03:01:0{0},5+00:00 p{0} (unregistering): left promiscuous mode\n"
    killed = "2026-11-21T03:00:09,7+00:00 Memory cgroup out of memory: Killed process 771 (weave)\n"
    files["node-dmesg.txt"] = killed + "".join(kernel.format(n) for n in range(6))
    assert first_of(write(tmp_path, files)) == (1, killed.strip())
    assert origin_of("node-dmesg.txt").host is None


def java_stack(*frames: str) -> str:
    own = "".join(f"\tat {frame}\n" for frame in frames)
    return f'Full thread dump OpenJDK 64-Bit Server VM\n\n"main" #1 nid=0x7 runnable\n{own}\n'


def test_the_stack_of_a_java_program_tells_who_is_not_in_the_collective(tmp_path: Path) -> None:
    caught = "java.lang.IllegalStateException: page 4\n\tat Mill.repair(Mill.java:80)\n"
    files = {}
    for n, name in enumerate(("oak", "elm", "ash", "fir")):
        begins = f"2026.325 03:00:00,1 INFO saw {n}/4\n" + (caught if n == 0 else "") + steps(9)
        inner = ("jdk.net.Read.read(java.base@17/Native Method)", "Mill.sum(Mill.java:8)")
        if name == "ash":
            inner = ("java.util.Lock.lock(java.base@17/Lock.java:3)", "Mill.oil(Mill.java:11)")
        files[f"saw-{name}.out"] = begins + java_stack(*inner, "Mill.main(Mill.java:21)")
    times = "2026.325 03:01:0"
    files["start.txt"] = "".join(
        (
            *(f"{times}0 start saw {n} pid 81{n}\n" for n in range(4)),
            f"{times}1 start no output for 9 s, asking for stacks\n",
            f"{times}2 start ERROR killing saw elm (pid 811) and all others\n",
            *(f"{times}3 start pid 81{n} exit 137\n" for n in range(4)),
        )
    )
    assert first_of(write(tmp_path, files)) == (2, "at Mill.oil(Mill.java:11)")


def test_who_hung_up_on_others_waited_for_the_one_whose_lines_are_odd(tmp_path: Path) -> None:
    files = {}
    for n, name in enumerate(("pine", "reed", "moss", "fern")):
        work = "".join(f"T+{k:02} ok lap {k} net {200 + k} ms\n" for k in range(2, 9, 2))
        if name == "moss":
            work += "T+15 dbg lap 9 net 8000 ms (fetch 7000 ms, /srv/deep/a)\n"
        end = "ERR GATHER TIMEOUT lap 9: 2 of 3 replies, no quorum"
        end = end if n == 0 else "ERR died: Error: the leader hung up on us"
        files[f"pane-{3 - n}-{name}.txt"] = f"T+00 boot k={n}/4\n{work}T+20 {end}\n[13] 09:20:15\n"
    assert first_of(write(tmp_path, files)) == (
        2,
        "T+15 dbg lap 9 net 8000 ms (fetch 7000 ms, /srv/deep/a)",
    )


def test_the_message_of_a_panic_stands_behind_its_head(tmp_path: Path) -> None:
    work = [
        f"rank-{n % 3} sea-{n % 3}\t+00{n // 3}.{n:02}s INFO net {n // 3} in" for n in range(27)
    ]
    head = "rank-{0} sea-{0}\tthread '{1}' (77{0}) panicked at src/{1}.rs:12:7:"
    said = "rank-{} sea-{}\t{}"
    panics = [
        head.format(1, "reader"),
        said.format(1, 1, "called `Result::unwrap()` on an `Err` value: ParseIntError { kind: X }"),
        said.format(1, 1, "stack backtrace:"),
        said.format(1, 1, "+009.30s INFO the reader is gone, finished early"),
        head.format(0, "main"),
        said.format(0, 0, "net 9: lost a neighbour: failed to fill whole buffer"),
        head.format(2, "main"),
        said.format(2, 2, "peer 0 is dead"),
    ]
    fields = ("{0}", ":", "1796030811.9", " 9.4", "0", "9", "{1}", "0", "./net {0}")
    ends = [chr(9).join(fields).format(n + 1, 0 if n == 1 else 101) for n in range(3)]
    files = {"all.out": "\n".join([*work, *panics, ""]), "joblog.tsv": "\n".join([*ends, ""])}
    rank, text = first_of(write(tmp_path, files))
    assert (rank, text.split()) == (1, panics[1].split())


def test_of_a_bad_value_the_rank_is_at_fault_that_was_warned_first(tmp_path: Path) -> None:
    work = [f"[{n % 4}] 07:00:{n:02} INFO lap {n // 4} |w| 1.{n}" for n in range(40)]
    mended = "[1] 07:00:09 ERROR 1 reading not finite, replaced by the mean"
    warned = "[3] /srv/mill.py:14: RuntimeWarning: divide by zero encountered in log"
    raised = ["[0] 07:00:41 CRITICAL diverged, |w|=nan", "[2] FloatingPointError: cell 2 is nan"]
    lines = [*work[:9], mended, *work[9:], warned, *raised]
    assert first_of(merged(tmp_path, *lines)) == (3, warned)
    assert first_of(merged(tmp_path, *work, mended, *raised))[0] == 2


def test_a_task_that_a_launcher_tries_again_did_not_fail_its_job(tmp_path: Path) -> None:
    stack = [
        "(raylet) Task weigh failed. There are 2 retries remaining, so it will be retried. Error:",
        "ray::weigh() (pid=71, ip=192.0.2.2)",
        '  File "/srv/fish.py", line 14, in weigh',
        '    raise ValueError("no scale")',
        "ValueError: no scale",
    ]
    work = [f"lap {n}: 9 fish" for n in range(6)]
    odd = "(Boat pid=72) ERROR net is torn, this one is dropped"
    lines = [*work[:3], *stack, odd, *work[3:], "all 6 laps finished", "driver exit 0"]
    boats = "".join(f"(Boat pid=7{n}) cast off\n" for n in range(3))
    files = {"driver.log": boats + "\n".join([*lines, ""])}
    files["session/worker-aa-72.err"] = "ERROR net is torn, this one is dropped\n"
    files["session/raylet.out"] = "rank=0 agent up\nrank=1 agent up\n"
    assert not job_of(write(tmp_path, files)).failed
    for code in (0, 1):  # that of `tee`, and its own
        files["driver.log"] = boats + "\n".join([*work, *stack[1:], f"driver exit {code}", ""])
        assert job_of(write(tmp_path, files)).failed


def test_a_driver_in_an_export_of_many_streams_says_that_the_work_is_done(tmp_path: Path) -> None:
    def said(stream: str, second: int, line: str) -> str:
        labels = {"app": "fish", "instance": stream}
        told = {"labels": labels, "line": line, "timestamp": f"2026-11-21T03:00:{second:02}Z"}
        return json.dumps(told) + "\n"

    text = ""
    for n in range(4):
        text += said(f"boat-{n}", n, "INFO boat starts")
    for n in range(4):
        text += said("captain", 5 + n, f"INFO {40 + 40 * n} of 160 fish")
    text += said("boat-2", 10, "ERROR net 9: FATAL flag in the header, skipped")
    text += said("captain", 20, "INFO wrote the list, job complete")
    for n in range(4):
        text += said(f"boat-{n}", 22, "Traceback (most recent call last):")
        text += said(f"boat-{n}", 22, "TypeError: 'NoneType' object is no fish")
        text += said(f"boat-{n}", 23, "INFO End boat")
    assert not job_of(write(tmp_path, {"loki.jsonl": text})).failed
