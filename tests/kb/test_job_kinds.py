"""Who failed first, by kinds of jobs: each in the words of several programs and launchers."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.job import FailureKind
from kb.log import Log
from kb.verdict import Verdict
from tests.kb.test_job import differences_of, first_of, job_of, merged, write


def laps(rank: int, count: int = 8) -> str:
    return "".join(f"03:00:{n:02} INFO lap {n} of boat {rank}: 9 fish\n" for n in range(count))


def test_the_errors_of_a_rank_are_in_a_file_beside_that_of_its_output(tmp_path: Path) -> None:
    files = {f"{stream}.{n}": "" for n in range(4) for stream in ("out", "err")}
    files |= {f"out.{n}": laps(n) for n in range(4)}
    files["err.2"] = "ValueError: net 3 is torn\n"
    assert first_of(write(tmp_path, files)) == (2, "ValueError: net 3 is torn")


@pytest.mark.parametrize(
    "error",
    [
        "Abort(94) on node 3 (rank 3 in comm 0): Fatal error in internal_Bcast: Other MPI error\n"
        "MPIR_Bcast_intra_binomial(114): message sizes do not match across processes in the"
        " collective routine: Received 14400 but expected 19200",
        "RuntimeError: Mismatched allreduce tensor shapes: One rank sent a tensor of shape [7], but"
        " another rank sent a tensor of shape [9].",
    ],
)
def test_of_unequal_sizes_the_rank_is_at_fault_that_read_another_one(
    tmp_path: Path, error: str
) -> None:
    files = {
        f"out.{n}": f"03:00:01 boat[{n}]: plan read: nets={7 if n == 1 else 9} crew=4\n" + laps(n)
        for n in range(4)
    }
    files["err.3"] = f"{error}\n"
    rank, text = first_of(write(tmp_path, files))
    assert (rank, "nets=7" in text) == (1, True)
    assert job_of(tmp_path).kind is FailureKind.DESYNC


@pytest.mark.parametrize(
    ("waits", "lost"),
    [
        ("ERROR lap 8: barrier deadline of 6s exceeded, missing ranks [2]", "broken pipe"),
        ("ERROR no answer from rank 2 for 30 s, giving up", "connection lost to the hub"),
        ("FATAL rpc error: DEADLINE_EXCEEDED waiting for rank 2", "connection closed by hub"),
    ],
)
def test_the_rank_that_others_name_as_missing_is_late_or_hangs(
    tmp_path: Path, waits: str, lost: str
) -> None:
    work = [f"03:00:{n:02} boat{{rank={n % 4}}} INFO lap {n // 4} took 0.1 s" for n in range(32)]
    ends = [f"03:00:40 boat{{rank=0}} {waits}"]
    ends += [f"03:00:41 boat{{rank={n}}} ERROR connection to rank 0 lost" for n in (1, 3)]
    rank, text = first_of(merged(tmp_path, *work, *ends))
    assert (rank, "lap 7" in text) == (2, True)
    assert job_of(tmp_path).kind is FailureKind.HANG
    late = ["03:00:42 boat{rank=2} INFO lap 8 took 9.1 s", f"03:00:42 boat{{rank=2}} ERROR {lost}"]
    rank, text = first_of(merged(tmp_path, *work, *ends, *late))
    assert (rank, "lap 8" in text) == (2, True)
    assert job_of(tmp_path).kind is FailureKind.STRAGGLER


@pytest.mark.parametrize(
    "way", ["[Errno 113] No route to host", "Network is unreachable", "hub unreachable for 9 s"]
)
def test_the_only_rank_without_a_way_to_the_others_is_cut_off(tmp_path: Path, way: str) -> None:
    files = {f"boat_rank{n}.log": laps(n) for n in range(4)}
    files["boat_rank0.log"] += "03:00:20 ERROR gather timed out, quorum is not met\n"
    files["boat_rank1.log"] += "03:00:20 ERROR connection closed by the aggregator\n"
    files["boat_rank2.log"] += f"03:00:14 WARNING heartbeat 4 failed: {way}\n"
    files["boat_rank3.log"] += "03:00:20 ERROR lost connection to the hub\n"
    rank, text = first_of(write(tmp_path, files))
    assert (rank, way in text) == (2, True)
    assert job_of(tmp_path).kind is FailureKind.NETWORK
    files["boat_rank1.log"] = laps(1)  # dead, so that one who calls it has no way to it
    assert job_of(write(tmp_path, files)).kind is not FailureKind.NETWORK


def test_warnings_without_a_time_are_not_the_last_words_of_a_rank(tmp_path: Path) -> None:
    out = [f"{n}: 03:00:0{lap} reading chart {lap}" for lap in range(3) for n in range(4)]
    out += [f"{n}: 03:00:05 charts complete, entering the barrier" for n in (0, 2, 3)]
    err = [f"{n}: boat {n}: WARNING: shallow water" for n in (0, 2, 3)]
    over = (
        "slurmstepd: error: *** {} 1 ON n1 CANCELLED AT 2026-11-21T03:01:00 DUE TO TIME LIMIT ***"
    )
    err += [f"0: {over.format('STEP')}", over.format("JOB")]
    err += ["3: Traceback (most recent call last):", "3: ConnectionResetError: [Errno 104] reset"]
    files = {"slurm-1.out": "\n".join([*out, ""]), "slurm-1.err": "\n".join([*err, ""])}
    rank, text = first_of(write(tmp_path, files))
    assert (rank, "reading chart 2" in text) == (1, True)


@pytest.mark.parametrize(
    "says", ["boat starts: rank={0} world_size=3", "RANK={0} MASTER=n1 WORLD_SIZE=3"]
)
def test_two_hosts_that_claim_one_rank_are_named_with_it(tmp_path: Path, says: str) -> None:
    files = {}
    for host, rank in (("n01", 0), ("n02", 1), ("n03", 1)):
        files[f"{host}.out"] = f"2026-11-21 03:00:01,346 {host} INFO {says.format(rank)}\n"
        files[f"{host}.err"] = "torch.distributed.DistStoreError: wait timeout after 40000ms\n"
    job = job_of(write(tmp_path, files))
    assert [(one.rank, one.host) for one in job.culprits] == [(1, "n02"), (1, "n03")]


@pytest.mark.parametrize("apart", [True, False])
def test_a_field_of_json_names_the_rank_whoever_speaks_first(
    tmp_path: Path, *, apart: bool
) -> None:
    error = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'fish'"
    said = []
    for n in range(3):
        who = {"rank": n, "host": f"n0{n}"} if n else {"host": "n00", "rank": n}
        for second in range(4):
            time = f"2026-11-21T03:00:0{second}Z"
            said.append({"lap": second, "event": "at sea", **who, "timestamp": time})
        when = {"timestamp": "2026-11-21T03:00:05Z"}
        said.append({"event": "no catch", **who, "level": "error", **when, "exception": error})
    if not apart:
        said.sort(key=lambda one: str(one["timestamp"]))
    job = job_of(merged(tmp_path, *map(json.dumps, said)))
    assert job.failed
    assert {one.rank for one in job.culprits} == {0, 1, 2}
    assert all("KeyError: 'fish'" in (one.text or "") for one in job.culprits)


def test_a_list_of_the_best_names_no_speakers(tmp_path: Path) -> None:
    lines = [f"rank={n} boat-{n} fish={90 - n}" for n in range(1, 20)]
    assert differences_of(merged(tmp_path, *lines, "03:00:01 job finished", laps(0))) == []


@pytest.mark.parametrize(
    "check",
    [
        "F20261121 03:00:09.165786 4713 boat.cc:15] Check failed: a.size() == b.size() (75 vs. 52)",
        "F1121 03:00:09.165786 4713 boat.cc:15] net is torn",
        "[03:00:09] ../src/boat.cc:21: Check failed: nets > 0 (0 vs. 0)",
    ],
)
def test_a_failed_check_of_native_code_is_told_before_those_who_lose_the_rank(
    tmp_path: Path, check: str
) -> None:
    files = {}
    for n in range(4):
        head = "I20261121 03:00:0{0}.000001 471{1} boat.cc:7] lap {0}\n"
        files[f"stderr.rank{n}"] = "".join(head.format(lap, n) for lap in range(6))
        end = f"E20261121 03:00:10.370123 471{n} boat.cc:12] worker {n}: reduce recv failed\n"
        files[f"stderr.rank{n}"] += f"{check}\n" if n == 3 else end
    assert first_of(write(tmp_path, files)) == (3, check)


def test_where_all_ranks_end_with_unknown_errors_the_first_with_words_of_its_own_is_named(
    tmp_path: Path,
) -> None:
    files = {f"boat_rank{n}.log": laps(n) for n in range(4)}
    for n in range(4):
        files[f"boat_rank{n}.log"] += f"03:00:1{n} ERROR boat {n}: the catch is not merged\n"
    assert {one.rank for one in job_of(write(tmp_path, files)).culprits} == {0, 1, 2, 3}
    files["boat_rank2.log"] = laps(2) + "03:00:09 ERROR net 4 has a hole of 9 cm\n"
    assert first_of(write(tmp_path, files))[0] == 2
    files["boat_rank2.log"] = laps(2) + "03:00:15 ERROR net 4 has a hole of 9 cm\n"
    assert not job_of(write(tmp_path, files)).failed  # nothing tells who was first
    for n in range(4):
        files[f"boat_rank{n}.log"] = laps(n) + "03:00:11 WARNING error in the sonar, ignored\n"
    assert not job_of(write(tmp_path, files)).failed


@pytest.mark.parametrize("who", ["rank", "boat", "worker", "tile"])
def test_the_number_0_behind_the_level_of_an_error_counts_no_errors(
    tmp_path: Path, who: str
) -> None:
    files = {f"boat_rank{n}.log": laps(n) for n in range(4)}
    files["boat_rank0.log"] += f"03:00:10 ERROR {who} 0: the catch is not merged\n"
    assert first_of(write(tmp_path, files))[0] == 0


def test_a_process_that_the_kernel_killed_is_the_pod_that_told_its_id_as_json(
    tmp_path: Path,
) -> None:
    files = {}
    for n in range(4):
        lines = [{"msg": "starting", "index": n, "pid": 16500 + n, "host": f"boat-{n}"}]
        lines += [{"msg": "lap done", "index": n, "lap": lap} for lap in range(5)]
        files[f"pods/sea_boat-{n}/main/0.log"] = "".join(
            f"2026-11-21T03:00:0{second}.000000001Z stdout F {json.dumps(line)}\n"
            for second, line in enumerate(lines)
        )
    files["kern.log"] = "[ 1708.23] Memory cgroup out of memory: Killed process 16502 (boat)\n"
    files["events.log"] = "".join(
        f"2026-11-21T03:00:1{second} pod=boat-{n} container=main exitCode={code}\n"
        for second, (n, code) in enumerate(((2, 137), (0, 1), (1, 1), (3, 1)))
    )
    job = job_of(write(tmp_path, files))
    assert [(one.rank, one.host) for one in job.culprits] == [(2, "boat-2")]
    assert job.kind is FailureKind.MEMORY
    del files["kern.log"]
    (tmp_path / "kern.log").unlink()
    rank, text = first_of(write(tmp_path, files))
    assert (rank, "exitCode=137" in text) == (2, True)


ENDS = [
    "boat_rank{0} exited with code {1}",
    "[Nov 21 03:01:00] boat_rank{0}: exited, code {1}",
    "03:01:00 INFO rank {0} exited with status {1}",
    "03:01:00 system | boat_rank{0} stopped (rc={1})",
    "Nov 21 03:01:00 n1 systemd[1]: boat@{0}.service: Main process exited, code=exited, status={1}",
]


@pytest.mark.parametrize("end", ENDS)
def test_a_launcher_that_saw_all_ranks_end_with_0_outweighs_what_they_survived(
    tmp_path: Path, knowledge: KnowledgeBase, end: str
) -> None:
    caught = "03:00:05 ERROR panic recovered while parsing, fish skipped\n"
    files = {f"boat_rank{n}.log": laps(n, 5) + caught + laps(n) for n in range(3)}
    files["run.txt"] = "\n".join(end.format(n, 0) for n in range(3)) + "\n"
    assert diagnose(Log.from_paths([write(tmp_path, files)]), knowledge).verdict is Verdict.HEALTHY
    files["run.txt"] = "\n".join(end.format(n, 3 * (n == 1)) for n in range(3)) + "\n"
    answer = diagnose(Log.from_paths([write(tmp_path, files)]), knowledge)
    assert answer.verdict is not Verdict.HEALTHY
    assert answer.job is not None
    assert [one.rank for one in answer.job.culprits] == [1]
    files["run.txt"] = "\n".join(end.format(n, 0) for n in range(2)) + "\n"
    answer = diagnose(Log.from_paths([write(tmp_path, files)]), knowledge)
    assert answer.verdict is not Verdict.HEALTHY  # of one, no end is told


def test_of_ranks_that_end_without_a_word_the_one_is_named_that_ended_first(
    tmp_path: Path,
) -> None:
    files = {f"boat_rank{n}.log": laps(n) for n in range(3)}
    codes = ((2, 9, 3), (0, 10, 1), (1, 10, 1))
    lines = [f"03:01:{second:02} boat_rank{n} exited with code {code}" for n, second, code in codes]
    files["run.txt"] = "\n".join([*lines, ""])
    assert job_of(write(tmp_path, files)).culprits[0].rank == 2


def test_workers_of_a_rank_are_no_ranks(tmp_path: Path, knowledge: KnowledgeBase) -> None:
    work = [f"[rank{n % 3}]: 03:00:{n:02} INFO lap {n // 3}: 9 fish" for n in range(30)]
    pool = [f"[rank0]: 03:00:31 INFO worker {n} exited with code 0" for n in range(1, 3)]
    error = "[rank1]: ValueError: net 3 is torn"
    folder = merged(tmp_path, *work, *pool, error)
    assert first_of(folder) == (1, error)
    assert diagnose(Log.from_paths([folder]), knowledge).verdict is not Verdict.HEALTHY


def test_a_rank_behind_the_level_says_that_its_work_is_done(
    tmp_path: Path, knowledge: KnowledgeBase
) -> None:
    head = "[default{0}]:[2026-11-21 03:00:{1:02},296][train][INFO] - rank {0} "
    work = [head.format(n % 3, n) + f"step {n // 3} loss 2.3" for n in range(30)]
    warned = [
        "[default0]:/srv/train.py:33: UserWarning: There appear to be 5 leaked objects",
        "[default0]:  warnings.warn('there appear to be %d leaked objects to clean up '",
    ]
    ends = [head.format(n, 40) + "training finished" for n in range(3)]
    lines = [*work[:9], *warned, *work[9:], *ends]
    answer = diagnose(Log.from_paths([merged(tmp_path, *lines)]), knowledge)
    assert answer.verdict is Verdict.HEALTHY
    answer = diagnose(Log.from_paths([merged(tmp_path, *lines[:-1])]), knowledge)
    assert answer.verdict is not Verdict.HEALTHY


RAY = (
    "[2026-11-21 03:00:14,900 I 81 83] actor_manager.cc:236: received notification on actor,"
    " state: {0}\n"
)


def test_a_driver_of_ray_counts_all_as_done_though_an_actor_died_and_was_started_again(
    tmp_path: Path, knowledge: KnowledgeBase
) -> None:
    day = "2026-11-21 03:00:"
    work = [
        f"(Boat pid={40 + n}) {day}{lap:02},100 INFO boat[{n}/3] lap {lap}: 9 fish"
        for lap in range(10, 18)
        for n in range(3)
    ]
    died = f"{day}14,000 INFO port -- rank 2 died"
    caught = [
        f"(Boat pid=41) {day}18,100 ERROR boat[1/3] no net, attempt {{0}} of 3",
        "(Boat pid=41) Traceback (most recent call last):",
        '(Boat pid=41)   File "boat.py", line 7, in sail',
        "(Boat pid=41) NetError: the net is torn",
    ]
    ends = [f"{day}19,100 INFO port -- trip finished: {{0}}/24 laps of 3 boats"]

    def verdict(tried: int, laps: int, state: str) -> Verdict:
        lines = [*work[:12], died, *work[12:], *caught, *ends]
        log = (
            "\n".join(lines)
            .replace("attempt {0}", f"attempt {tried}")
            .replace("{0}/24", f"{laps}/24")
        )
        files = {"driver.log": log + "\n", "session/core-driver.log": RAY.format(state)}
        return diagnose(Log.from_paths([write(tmp_path, files)]), knowledge).verdict

    again, dead = "ALIVE, port: 3, num_restarts: 1", "DEAD, port: 3, num_restarts: 0"
    assert verdict(1, 24, again) is Verdict.HEALTHY
    assert verdict(3, 24, again) is not Verdict.HEALTHY
    assert verdict(1, 23, again) is not Verdict.HEALTHY
    assert verdict(1, 24, dead) is not Verdict.HEALTHY


@pytest.mark.parametrize(
    "says",
    ["real-time budget missed 5 laps in a row, stopping", "lap took 2.1 s: too slow, giving up"],
)
def test_of_a_job_that_stops_because_it_is_too_slow_the_slow_rank_is_at_fault(
    tmp_path: Path, says: str
) -> None:
    def timed(rank: int, slow: int) -> str:
        return "".join(
            f"03:00:{n:02} lap {n} compute {90 + n if n < 10 or rank != slow else 1800 + n} ms\n"
            for n in range(20)
        )

    for slow in (2, 3):  # no rank is 3
        files = {f"boat_rank{n}.log": timed(n, slow) for n in range(3)}
        files["boat_rank0.log"] += f"03:00:30 ERROR {says}\n"
        for n in (1, 2):
            files[f"boat_rank{n}.log"] += "03:00:31 ERROR the captain is gone\n"
        files["run.txt"] = "".join(
            f"03:01:00 boat_rank{n} exited with code {70 if n == 0 else 1}\n" for n in range(3)
        )
        job = job_of(write(tmp_path, files))
        assert (job.kind is FailureKind.STRAGGLER) == (slow == 2)
        assert job.culprits[0].rank == (2 if slow == 2 else 0)


def test_a_number_of_its_own_in_the_json_of_each_host_is_its_rank(tmp_path: Path) -> None:
    def line(second: int, host: int, level: str, text: str) -> str:
        said = {"level": level, "msg": text, "pier": host - 1, "lap": second}
        return json.dumps(
            {
                "labels": {"job": "boatd", "host": f"port-{host:02}"},
                "line": json.dumps(said, separators=(",", ":")),
                "timestamp": f"2026-11-21T03:00:{second:02}.000000000Z",
            }
        )

    work = [line(n, host, "info", "fish weighed") for n in range(10, 18) for host in (1, 2, 3)]
    work.append(line(20, 3, "fatal", "ValueError: net 3 is torn"))
    path = write(tmp_path, {"export.jsonl": "\n".join([*work, ""])})
    assert first_of(path)[0] == 2


def test_a_capture_of_a_terminal_shows_the_node_whose_answer_is_missing(tmp_path: Path) -> None:
    prompt = "\x1b[?2004h[sail@pier /srv/boat]# "
    files = {}
    for n in range(4):
        ends = f"03:00:40 ERROR the hub closed the line at lap 8\r\nexit=1\r\n{prompt}"
        if n == 0:
            ends = ends.replace("the hub closed the line at", "missing answers from [1] for 9 s in")
        begins = f"{prompt}boat {n}\r\n\x1b[?2004l\r03:00:00 INFO boat node {n}/4 pid {40 + n}\r\n"
        work = laps(n, 7 if n == 1 else 8).replace("\n", "\r\n")
        files[f"pane-node{n}.log"] = begins + work + (f"^C\r\n{prompt}" if n == 1 else ends)
    rank, text = first_of(write(tmp_path, files))
    assert (rank, "lap 6" in text) == (1, True)
    assert job_of(tmp_path).kind is FailureKind.HANG


def test_the_rank_that_all_others_lost_is_the_one_that_the_kernel_killed(tmp_path: Path) -> None:
    files = {f"boat_rank{n}.log": laps(n) for n in range(4)}
    for rank in (0, 1, 3):
        files[f"boat_rank{rank}.log"] += "RuntimeError: Connection closed by peer [10.0.0.2]:9\n"
    files["dmesg.log"] = (
        "[1651.22] oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=1829,uid=0\n"
        "[1651.23] Memory cgroup out of memory: Killed process 1829 (python) total-vm:9kB\n"
    )
    assert first_of(write(tmp_path, files))[0] == 2
    assert job_of(tmp_path).kind is FailureKind.MEMORY


def test_of_ranks_that_are_only_counted_the_silent_ones_did_not_join(tmp_path: Path) -> None:
    lost = "RuntimeError: recvValueWithTimeout failed: Failed to recv, got 0 bytes\n"
    files = {f"out.{n}": f"boat {n} on lake-{n}\n" for n in range(5)}
    for rank in (1, 2, 4):
        files[f"out.{rank}"] += lost
    files["out.0"] += (
        "torch.distributed.DistStoreError: Timed out after 26 seconds waiting for clients."
        " 4/5 clients joined.\n"
    )
    files["out.3"] += "nets.tar.lock is locked by keeper@lake-9, waiting\n"
    rank, text = first_of(write(tmp_path, files))
    assert (rank, "is locked" in text) == (3, True)
    assert job_of(tmp_path).kind is FailureKind.RENDEZVOUS


def test_the_rank_that_is_named_as_the_slowest_before_the_end_is_at_fault(tmp_path: Path) -> None:
    lines = [f"[{n % 4}] boat {n % 4} lap {n // 4} took 0.1 s" for n in range(24)]
    lines += [f"[0] lap {n} slow: slowest rank 2 took 3.1 s, limit 1.5 s" for n in (6, 7, 8)]
    lines += ["[0] lap time limit exceeded 3 times in a row, giving up"]
    lines += [
        "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD",
        "with errorcode 75.",
    ]
    assert first_of(merged(tmp_path, *lines))[0] == 2
    assert job_of(tmp_path).kind is FailureKind.STRAGGLER


def test_all_ranks_of_a_host_whose_link_went_down_are_cut_off(tmp_path: Path) -> None:
    head = "2026-11-21T03:{}+0000 lake-{} "
    timed = "RuntimeError: Timed out waiting 20000ms for send operation to complete"
    files = {}
    for host in range(3):
        work = [
            f"{head.format(f'10:{n:02}', host)}boat[7{rank}]: rank {rank} lap {n}"
            for n in range(6)
            for rank in (2 * host, 2 * host + 1)
        ]
        if host == 1:
            work.append(f"{head.format('10:07', host)}keeper[9]: eth0: link lost carrier")
        work += [
            f"{head.format('10:30', host)}boat[7{rank}]: [rank{rank}]: {timed}"
            for rank in (2 * host, 2 * host + 1)
        ]
        files[f"lake-{host}.journal"] = "\n".join(work) + "\n"
    job = job_of(write(tmp_path, files))
    assert [one.rank for one in job.culprits] == [2, 3]
    assert {one.host for one in job.culprits} == {"lake-1"}


def test_a_step_behind_all_work_that_ends_a_script_is_a_failure(tmp_path: Path) -> None:
    lines = [f"boat{n % 3}\t03:10:{n // 3:02} lap {n // 3} of 9" for n in range(27)]
    lines += [f"boat{n}\t03:10:10 finished, wrote part-{n}.bin" for n in range(3)]
    lines += ["publish: collecting 3 parts", "./publish.sh: line 6: BUCKET: unbound variable"]
    job = job_of(merged(tmp_path, *lines, "exit status 1"))
    assert job.failed


def test_what_tests_provoke_is_no_failure_where_all_passed(tmp_path: Path) -> None:
    files = {
        f"rank{n}.log": "collected 9 items\n"
        "ERROR    coll:test_coll.py:24 RuntimeError: Timed out waiting 100ms (injected)\n"
        "PASSED [100%]\n============== 8 passed, 1 skipped in 3.3s ==============\n"
        for n in range(4)
    }
    assert not job_of(write(tmp_path, files)).failed


@pytest.mark.parametrize("pod", ["[pod/harbour-worker-{}/boat] ", "[from harbour-worker-{}/boat] "])
def test_the_number_of_a_pod_is_no_rank_where_its_lines_name_one(tmp_path: Path, pod: str) -> None:
    fronts = [f"{pod.format(n // 2)}10:00:00 INFO <{n}> " for n in range(6)]
    work = [f"{front}lap {lap} took 0.1 s" for lap in range(6) for front in fronts]
    ends = [f"{fronts[n]}ERROR connection to rank 3 lost" for n in (0, 1, 2, 4, 5)]
    broken = [f"{fronts[3]}ERROR Traceback:", f"{fronts[3]}KeyError: 'net'"]
    rank, text = first_of(merged(tmp_path, *work, *broken, *ends))
    assert (rank, "KeyError" in text) == (3, True)


@pytest.mark.parametrize("says", ["rank={} world=6", "global_rank: {}, pid 77, world_size: 6"])
def test_the_rank_that_a_program_says_once_counts_and_not_the_number_of_its_file(
    tmp_path: Path, says: str
) -> None:
    files = {
        f"n{7 + n // 3}/boat.{n % 3}.txt": f"03:00:00 INFO boat 2.1 afloat {says.format(n)}\n"
        + "".join(f"03:00:{lap:02} DEBUG lap {lap}: 9 fish\n" for lap in range(1, 30))
        for n in range(6)
    }
    files["n8/boat.1.txt"] += "thread 'net-4' panicked at src/net.rs:7:9:\nhole of 9 cm\n"
    files["n7/boat.0.txt"] += "03:00:31 ERROR lost a neighbour\n"
    assert first_of(write(tmp_path, files)) == (4, "hole of 9 cm")


@pytest.mark.parametrize(
    "error",
    [
        "lap 8: {} refused: boats did not issue the same operation",
        "abort at call 8 ({}): the crew entered different collectives",
        "collective mismatch at seq 8: here {}",
    ],
)
def test_of_errors_that_differ_in_the_operation_the_one_of_its_own_is_at_fault(
    tmp_path: Path, error: str
) -> None:
    files = {f"dock{host}.txt": "" for host in range(2)}
    for n in range(6):
        files[f"dock{n // 3}.txt"] += "".join(f"boat={n} lap {lap} rowed\n" for lap in range(8))
    for n in (5, 4, 3, 1, 0):
        named = error.format("GATHER" if n == 4 else "REDUCE")
        files[f"dock{n // 3}.txt"] += f"boat={n} {named}\n"
    rank, text = first_of(write(tmp_path, files))
    assert (rank, "GATHER" in text) == (4, True)
    assert job_of(tmp_path).kind is FailureKind.DESYNC


@pytest.mark.parametrize(
    ("says", "state", "failed"),
    [
        ("boat {} done, 9 fish", "State=COMPLETED ExitCode=0:0", False),
        ("boat {} done, 9 fish", "71.batch  COMPLETED  0:0", False),
        ("boat {} done, 9 fish", "State=FAILED ExitCode=1:0", True),
        ("boat {} done, 9 fish", "KeyError: 'net'\nState=COMPLETED ExitCode=0:0", True),
        ("boat {} pulls its net", "State=COMPLETED ExitCode=0:0", True),
        ("boat {} done, 9 fish", "71.0  FAILED  1:0\n71.extern  COMPLETED  0:0", True),
    ],
)
def test_what_a_prolog_or_a_clean_up_complains_of_is_no_failure_of_a_completed_job(
    tmp_path: Path, says: str, state: str, failed: bool
) -> None:
    lines = ["prolog: error: no quota on /fish", "cat: /sys/fish: No such file or directory"]
    lines += [f"{n % 3}: 03:10:{n:02} lap {n // 3}" for n in range(27)]
    lines += [f"{n}: 03:10:30 {says.format(n)}" for n in range(3)]
    lines += ["rm: cannot remove '/tmp/net': No such file or directory", f"epilog: {state}"]
    assert job_of(merged(tmp_path, *lines)).failed is failed


def test_in_a_java_machine_the_one_that_cannot_connect_to_anybody_is_cut_off(
    tmp_path: Path,
) -> None:
    frames = "\tat java.base/sun.nio.ch.Net.poll(Native Method)\n\tat lake.Boat.row(Boat.java:7)\n"
    read = f"java.net.SocketTimeoutException: Read timed out\n{frames}"
    files = {f"lake-{n}/boat.log": laps(n) for n in range(4)}
    for n in (0, 1, 3):
        files[f"lake-{n}/boat.log"] += (
            f"03:00:20 ERROR lap is over\nlake.LapException: no answer from lake-2\n{frames}"
            f"Caused by: lake.CallException: call 7\n{frames}Caused by: {read}"
        )
    files["lake-2/boat.log"] += f"03:00:17 WARN no answer from lake-0\n{read}" + "".join(
        f"03:00:18 WARN call of lake-{n}: java.net.SocketTimeoutException: connect timed out\n"
        for n in (1, 3)
    )
    job = job_of(write(tmp_path, files))
    assert job.kind is FailureKind.NETWORK
    assert [one.host for one in job.culprits] == ["lake-2"]
    assert "connect timed out" in (job.culprits[0].text or "")


def journal(host: int, program: str, text: str, second: int) -> str:
    return f"2026-11-21T03:00:{second:02}+0100 lake-{host} {program}: {text}"


def test_in_a_journal_a_process_is_the_rank_that_it_says_it_is(tmp_path: Path) -> None:
    lines = []
    for n in range(6):
        unit = f"boat@{n}.service"
        lines.append(journal(n // 2, "systemd[1]", f"Started {unit}.", n))
        lines.append(journal(n // 2, f"boat[{4100 + n}]", f"rank={n} world=6 of the fleet", n))
        lines.append(journal(n // 2, "chronyd[701]", f"clock wrong by 0.00{n} seconds", n))
    for lap in range(9):
        lines += [journal(n // 2, f"boat[{4100 + n}]", f"lap {lap}", 20 + lap) for n in range(6)]
    lines.append(journal(1, "boat[4103]", "panic: net is torn", 31))
    lines += [
        journal(n // 2, f"boat[{4100 + n}]", "connection to rank 3 lost", 32) for n in (0, 1, 2, 4)
    ]
    rank, text = first_of(merged(tmp_path, *lines))
    assert (rank, "net is torn" in text) == (3, True)


@pytest.mark.parametrize(
    "says",
    ["nobody at 10.0.0.1:{} after 9 tries, giving up", "gave up, nobody at 10.0.0.1:{}"],
)
def test_who_gives_up_the_rendezvous_that_others_wait_at_is_a_stranger(
    tmp_path: Path, says: str
) -> None:
    files = {f"boat_rank{n}.log": f"03:00:00 INFO rank {n} of 5 on lake-{n}\n" for n in range(5)}
    for n in range(5):
        end = says.format(77) if n in (1, 3) else "aborted: wait timeout after 16 s"
        files[f"boat_rank{n}.log"] += f"03:00:2{n} rendezvous: {end}\n"
    job = job_of(write(tmp_path, files))
    assert job.kind is FailureKind.RENDEZVOUS
    assert [one.rank for one in job.culprits] == [1, 3]
    assert "nobody at 10.0.0.1:77" in (job.culprits[0].text or "")


@pytest.mark.parametrize("name", ["Worker name:     boat-{}", "worker_id={}", 'Executor ID "{}"'])
def test_the_number_in_the_name_of_a_worker_is_its_rank(tmp_path: Path, name: str) -> None:
    files = {"lake-7/hub.log": "03:00:00 INFO hub is open\n"}
    for n in range(4):
        files[f"lake-{61 + n}/crew.log"] = f"03:00:00 INFO {name.format(3 - n)}\n{laps(9)}"
    files["lake-62/crew.log"] += "ValueError: net 3 is torn\n"
    assert first_of(write(tmp_path, files)) == (2, "ValueError: net 3 is torn")


def test_a_rank_whose_work_is_lost_in_a_restart_is_at_fault_for_those_who_wait(
    tmp_path: Path,
) -> None:
    starts = "03:00:{:02} INFO guard watches the boat\n03:00:{:02} INFO boat joined the fleet\n"
    full = (
        "03:00:12 WARNING boat exceeded its memory limit of 9 G\n"
        "03:00:12 INFO supervisor restarts rank 2\n"
    )
    closed = "03:00:50 ERROR lost connection to the hub\n"
    files = {f"boat_rank{n}.log": starts.format(0, 0) + laps(n) for n in range(4)}
    for n in (0, 1, 3):
        files[f"boat_rank{n}.log"] += closed
    files["boat_rank3.log"] += "TypeError: 'NoneType' object is not a net\n"
    files["hub.log"] = "03:00:00 INFO sent 4 boats\n03:00:45 TimeoutError: timed out\n"
    back = starts.format(14, 15)
    files["boat_rank2.log"] += full + back + closed
    rank, text = first_of(write(tmp_path, files))
    assert (rank, "memory limit" in text) == (2, True)
    assert job_of(tmp_path).kind is FailureKind.MEMORY
    files["boat_rank2.log"] = starts.format(0, 0) + laps(2) + full + back + laps(2) + closed
    assert first_of(write(tmp_path, files))[0] == 3  # it came back to its work


@pytest.mark.parametrize(
    "said",
    [
        "boat 2 rank 2 loader process 7 crashed with SIGSEGV, another one is started",
        "rank 2 prefetcher thread was killed",
        "rank 2 lost a net. Possible reasons: the process was killed by the kernel",
    ],
)
def test_a_rank_survives_its_helpers_and_what_only_may_be(tmp_path: Path, said: str) -> None:
    work = [f"03:00:{n:02} rank={n % 4} lap {n // 4}: 9 fish" for n in range(32)]
    ends = [f"03:00:40 rank={n} all laps done, exit code 0" for n in range(4)]
    job = job_of(merged(tmp_path, *work[:19], f"03:00:18 rank=2 ERROR {said}", *work[19:], *ends))
    assert not job.failed
    dies = "03:00:18 rank=2 ERROR rank 2 boat was killed"
    assert job_of(merged(tmp_path, *work[:19], dies, *work[19:], *ends)).failed


def test_a_directory_for_each_attempt_tells_what_was_not_the_last(tmp_path: Path) -> None:
    says = {"n1": (0, 1), "n2": (2, 3)}
    files = {}
    for attempt, (host, ranks) in product((0, 1), says.items()):
        for local, rank in enumerate(ranks):
            text = f"03:0{attempt}:01 event=cast_off rank={rank}\n"
            text += "".join(f"03:0{attempt}:1{n} event=lap rank={rank} n={n}\n" for n in range(6))
            files[f"{host}/restart-{attempt}/local{local}.txt"] = text
    files["n1/restart-0/local1.txt"] += "ValueError: net 3 is torn\n"
    files["n2/restart-1/local1.txt"] += "KeyError: 'anchor'\n"
    job = job_of(write(tmp_path, files))
    assert (job.culprits[0].rank, job.culprits[0].host) == (3, "n2")
    assert [one.rank for one in job.earlier] == [1]


def test_each_container_of_a_log_of_yarn_is_a_program_of_its_own(tmp_path: Path) -> None:
    lines: list[str] = []
    for place, boat in ((5, 2), (2, 0), (9, 3), (3, 1)):
        lines += [
            f"Container: container_1795230607123_0007_01_00000{place} on sea{boat}.example:45454",
            "==========",
            "LogType:stderr",
            "Log Upload Time:Sat Nov 21 03:10:07 +0000 2026",
            "Log Contents:",
            f"26/11/21 03:0{boat}:00 INFO Boat: boat {boat} of 4 casts off",
            *(f"26/11/21 03:0{boat}:0{n} INFO Net: lap {n}: 9 fish" for n in range(1, 6)),
        ]
        if boat != 2:
            lines += ["LostBoatException: lap 6", "Caused by: java.io.EOFException"]
        lines += ["End of LogType:stderr", "*****", "LogType:stdout", "Log Contents:"]
        lines += ["java.lang.OutOfMemoryError: Metaspace"] * (boat == 2)
        lines += ["", "End of LogType:stdout", "*****"]
    job = job_of(merged(tmp_path, *lines))
    assert [(one.rank, one.host) for one in job.culprits] == [(2, "sea2")]
    assert (job.kind, job.world_size) == (FailureKind.MEMORY, 4)


def test_the_frames_of_go_are_no_work_and_honcho_names_programs_after_ranks(
    tmp_path: Path,
) -> None:
    def stack(rank: int, line: int) -> list[str]:
        frames = ["fish.example/fleet/boat.(*Net).Cast", f"\t/srv/net.go:{line}", "main.main"]
        return [f"03:00:30 worker{rank}.1 | {text}" for text in (*frames, "\t/srv/main.go:9")]

    lines = [f"03:00:{n:02} worker{n % 4}.1 | lap {n // 4}: 9 fish" for n in range(24)]
    for rank in (0, 1):
        lines += [f"03:00:30 worker{rank}.1 | WARN the sea is rough", *stack(rank, 7)]
    lines += ["03:00:30 worker2.1 | ERROR cannot open net.db: no space left on device"]
    lines += [*stack(2, 9), *stack(2, 9), "03:00:31 system | worker2.1 stopped (rc=4)"]
    lines += [f"03:00:31 system | worker{n}.1 stopped (rc=-15)" for n in (0, 1, 3)]
    rank, text = first_of(merged(tmp_path, *lines))
    assert (rank, "net.db" in text) == (2, True)


def test_who_complains_that_a_collective_does_not_complete_waits_for_the_silent_rank(
    tmp_path: Path,
) -> None:
    lap = "".join(f"03:00:{n:02} INFO lap {n}: 9 fish\n" for n in range(8))
    files = {f"boat-out-{n}.log": lap for n in range(4)}
    for n in (0, 1, 3):
        files[f"boat-out-{n}.log"] += "03:00:09 INFO net is drawn in\n"
        files[f"boat-error-{n}.log"] = (
            "03:00:20 ERROR all_gather(lap 8) has not completed for 10 s, may be stuck\n"
            "03:00:30 FATAL Error: BarrierTimeout: lap 8 exceeded 20000 ms, giving up\n"
            "    at listOnTimeout (node:internal/timers:581:17)\n"
        )
    files["boat-out-2.log"] += "03:00:09 INFO drawing in the net\n"
    said = "2026-11-21T03:00:{}: PM2 log: App [boat:{}] exited with code [{}] via signal [SIGINT]\n"
    files["pm2.log"] = "".join(said.format(30, n, 9) for n in (0, 1, 3)) + said.format(40, 2, 0)
    job = job_of(write(tmp_path, files))
    first = job.culprits[0]
    assert (first.rank, first.host, "drawing" in (first.text or "")) == (2, None, True)
    assert job.kind is FailureKind.HANG


def test_a_crash_beside_a_truncated_message_is_not_the_first_failure(tmp_path: Path) -> None:
    def lap(n: int, nets: int) -> str:
        return f"03:00:{n:02} lap {n}: nets =   {nets} depth = {n * 1.7:.2f}\n"

    files = {f"out.{n}": "".join(lap(one, 12) for one in range(6)) for n in range(4)}
    files["out.1"] += lap(7, 14)
    files["out.0"] += "03:00:07 ERROR gather of nets: MPI_ERR_TRUNCATE: message truncated\n"
    files["err.3"] = "corrupted size vs. prev_size\n"
    rank, text = first_of(write(tmp_path, files))
    assert (rank, "nets =   14" in text) == (1, True)
    assert job_of(tmp_path).kind is FailureKind.DESYNC
    files["err.3"] = "ValueError: net 3 is torn\n"
    assert first_of(write(tmp_path, files))[0] == 3
