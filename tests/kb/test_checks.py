"""Outputs of checks are recognised, and what they show is said."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from index.signatures import Scanner
from kb.check import Check
from kb.checks import Observation, OutputKeeper, observe
from kb.checks.model import Output
from kb.checks.read import finding_patterns
from kb.checks.readers.values import COMPARISONS, Comparison
from kb.checks.recognise import WINDOW_BYTES
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.diagnosis.outputs import read_outputs, recognised_in
from kb.log import Log
from kb.service.wire import to_json
from tests.conftest import Run

CHECKS = sorted(file.stem for file in Path("incidents/checks").glob("*.md"))
NEGATIVES = Path("benchmarks/reports/negatives.jsonl")
ORDINARY = Path("kb/contribute/lint/ordinary.log")
OUTPUTS = Path("tests/kb/outputs")

HOLDS_TOO = {
    "cgroup-memory/processes-cgroup-killed-limit": {"limit-reached-often-kernel"},
    "chrony/chronyd-not-run": {"no-time-source"},
    "cuda-memory-snapshot/allocations-failed": {"allocator-freed-cache-tried"},
    "curl-health/health-passes-generation-not": {"nothing-listens"},
    "dmesg-oom-kill/workers-killed": {"size-kind-memory"},
    "dmesg-xid/common-cause": {"channels-torn-down-process"},
    "flight-recorder-dump/operation-rank-scheduled-started": {"sequence-number-ranks-issued"},
    "ibv-devinfo/user-space-provider-missing": {"no-rdma-device-visible"},
    "kubectl-describe-pod/host-memory-limit-container": {"137-kill-139-segv"},
    "kubectl-describe-pod/no-node-much-free": {"constraints-exclude-nodes"},
    "kubectl-logs-previous/child-process-killed-inside": {"failing-container-text"},
    "nc-connect/name-not-resolve": {"host-reached-nobody-listens"},
    "nccl-debug-net/rdma-user-library-not": {"inter-node-traffic-goes"},
    "nccl-debug-net/value-nccl-really-read": {"inter-node-traffic-goes"},
    "nccl-watchdog-lines/ranks-print-line-waited": {
        "default-600000-pytorch-s",
        "element-barrier-barrier-reduce",
    },
    "nccl-watchdog-lines/ranks-issued-different-operations": {"default-600000-pytorch-s"},
    "nccl-watchdog-lines/element-barrier-barrier-reduce": {"default-600000-pytorch-s"},
    "nccl-watchdog-lines/first-collectives-never-finished": {"default-600000-pytorch-s"},
    "nccl-watchdog-lines/default-600000-pytorch-s": {"element-barrier-barrier-reduce"},
    "nvidia-fabricmanager/not-enabled-boot": {"not-running"},
    "nvidia-fabricmanager/switch-reported-sxid": {"fabric-manager-sees-no"},
    "py-spy-all-ranks/normal": {"issued-work"},
    "sinfo-R/gpu-count-differs-configuration": {"line-per-reason"},
    "torch-oom-message/gigabytes-outside-allocator": {"almost-nothing-reserved-unused"},
    "torchrun-error-summary/ended-signal-not-exception": {"first-failure-node-agent"},
    "vllm-stats-line/requests-run-no-token": {"queue-cache-mostly-free"},
    "dmesg-nvrm/nouveau-card": {"module-loaded-device-not"},
    "docker-inspect/no-gpu-asked": {"no-memlock-stack-limit", "bridge-network"},
    "findmnt-quota/lustre-mounted-without-flock": {"network-fuse-file-system"},
    "findmnt-quota/read": {"network-fuse-file-system"},
}
"""Further findings that an example shows truly, besides the one that it stands for."""

NOT_READ = {
    "checkpoint-integrity/shard-missing",
    "cuda-memory-snapshot/leak-something-keeps-graph",
    "cuda-memory-snapshot/optimizer-state-created-first",
    "cuobjdump/cubins-run-within-major",
    "dataloader-only/slow",
    "dataloader-only/fast",
    "dev-nvidia-nodes/restricted-permissions",
    "dev-nvidia-nodes/count-gpus-given-container",
    "engine-eager/eager-cures",
    "engine-eager/no-custom-all-reduce-cures",
    "ethtool-pause/roce-traffic-runs-class",
    "ethtool-pause/global-pause",
    "first-failing-rank/only-lost-connections",
    "flight-recorder-dump/recorded-collective-matches-ranks",
    "getent-hosts/hosts-connect-different-machines",
    "hardware-events/node-rebooted-during-job",
    "ib-write-bw/gpudirect-path-slow",
    "import-alone/wrong-place",
    "ip-addr/nccl-socket-ifname-not",
    "ip-route-get/traffic-peer-leaves-interface",
    "iptables/rule-drops-packets-now",
    "last-ordinary-line/different-steps",
    "lfs-df/server-not-answer",
    "lspci-link/gpu-missing-bus",
    "mpirun-verbose/ucx-sees-no-rdma",
    "nccl-ab-switch/not-single-transport",
    "nccl-debug-nvls/multi-node-nvlink-not",
    "nccl-tests/test-hangs-like-job",
    "npu-smi/hbm-held-left-processes",
    "numactl/rank-runs-far-gpu",
    "nvbandwidth/p2p-copy-hangs",
    "nvidia-smi/idle-power-state",
    "nvidia-smi-compute-apps/no-process-listed-memory",
    "nvidia-smi-pcie-link/generation-stays-low-load",
    "nvidia-smi-query-gpu/gpus-wait-input-cpu",
    "nvidia-smi-topo/no-nvlink-pair",
    "permissions/other-owner",
    "permissions/not-in-device-group",
    "pip-list/nodes-not-run-software",
    "proc-wchan/rank-restarted-died",
    "proc-wchan/left-overs-earlier-run",
    "ray-status/node-not-join-joined",
    "reference-output/wrong-too",
    "reference-output/right",
    "scontrol-show-node/node-rebooted-during-job",
    "sglang-server-info/scheduler-stuck",
    "show-gids/nccl-ib-gid-index",
    "slurm-gpu-binding/task-node-fits-torchrun",
    "ss-listen/port-taken",
    "strace-p/pure-user-space-loop",
    "strace-p/threads-sleep-process-state",
    "top-threads/ranks-share-cores",
    "top-threads/rank-computes-cpu-alone",
    "torch-profiler/gaps",
    "torch-profiler/other-kernels",
    "vllm-startup-log/stops-profiling-compilation",
    "vllm-startup-log/multi-gpu-multi-node",
    "vllm-stats-line/engine-loop-blocked-dead",
}
"""Findings whose rule no reader tells yet, because it needs what no output holds (the shape of the
cluster, two runs), or because nobody has written it."""

REAL_OUTPUTS = {
    "neg/ok-ok-sacct-and-nvidia-smi": {"sacct", "nvidia-smi-query-gpu"},
    "neg/ok-ok-k8s-job-events": {"kubectl-describe-pod"},
    "neg/run-pip-check": {"pip-list"},
}
"""Healthy negatives that are such outputs."""

LOG_CHECKS = ("nccl-", "vllm-", "sglang-", "torchrun-", "nccl-tests", "flight-recorder")
"""What they look at is printed by healthy jobs too: their logs are such outputs."""


def outputs_of(text: str, knowledge: KnowledgeBase) -> tuple[set[str], list[Observation]]:
    """The checks that are recognised in a text, and what is read."""
    keeper = OutputKeeper(knowledge.guides.patterns)
    for block in Log.from_text(text).blocks():
        keeper.add(block)
    windows = keeper.windows()
    names = {check.id for window in windows for check in recognised_in(window, knowledge)}
    return names, list(read_outputs(windows, knowledge).observations)


def findings_of(text: str, check: str, knowledge: KnowledgeBase) -> set[str | None]:
    return {seen.finding for seen in outputs_of(text, knowledge)[1] if seen.check == check}


def check_of(identifier: str, knowledge: KnowledgeBase) -> Check:
    guide = knowledge.guides.by_id[identifier]
    assert isinstance(guide, Check)
    return guide


@pytest.mark.parametrize("identifier", CHECKS)
def test_an_example_is_recognised_and_shows_its_finding(
    identifier: str, knowledge: KnowledgeBase
) -> None:
    for finding in check_of(identifier, knowledge).body.findings:
        if not finding.example:
            continue
        name = f"{identifier}/{finding.id}"
        names, seen = outputs_of(finding.example, knowledge)
        assert identifier in names, name
        own = [one for one in seen if one.check == identifier]
        if name not in NOT_READ:
            assert finding.id in {one.finding for one in own}, name
        alarms = {one.finding for one in own if one.abnormal}
        assert alarms <= {finding.id} | HOLDS_TOO.get(name, set()), name


def test_a_finding_that_is_read_has_an_example(knowledge: KnowledgeBase) -> None:
    checks = [check_of(identifier, knowledge) for identifier in CHECKS]
    has_example = {
        f"{check.id}/{finding.id}": bool(finding.example)
        for check in checks
        for finding in check.body.findings
    }
    silent = {name for name, has in has_example.items() if not has}
    assert silent <= NOT_READ <= has_example.keys()


@pytest.mark.parametrize("identifier", CHECKS)
def test_a_normal_output_is_recognised_and_alarms_nobody(
    identifier: str, knowledge: KnowledgeBase
) -> None:
    names, seen = outputs_of(check_of(identifier, knowledge).body.normal, knowledge)
    assert identifier in names
    alarms = {one.finding for one in seen if one.check == identifier and one.abnormal is not False}
    assert alarms <= HOLDS_TOO.get(f"{identifier}/normal", set())


STACKS = """== node-0 rank 0 pid 4410
Thread 4410 (active): "MainThread"
    save_checkpoint (train/save.py:44)
    <module> (train.py:140)
== node-0 rank 1 pid 4411
Thread 4411 (active): "MainThread"
    barrier (torch/distributed/distributed_c10d.py:4818)
    training_step (train.py:88)
== node-0 rank 3 pid 4413
Thread 4413 (active): "MainThread"
    barrier (torch/distributed/distributed_c10d.py:4818)
    training_step (train.py:88)
"""
SMI = """+---------------------------------------------------------------------------------+
| NVIDIA-SMI 570.133.20     Driver Version: 570.133.20     CUDA Version: 12.8     |
|   0  NVIDIA H100 80GB HBM3      On  |   00000000:1B:00.0 Off |                0 |
| N/A   38C    P0    124W /  700W |   70112MiB /  81559MiB |    100%      Default |
|   1  NVIDIA H100 80GB HBM3      On  |   00000000:2B:00.0 Off |                0 |
| N/A   37C    P0    121W /  700W |   70112MiB /  81559MiB |    100%      Default |
|   2  NVIDIA H100 80GB HBM3      On  |   00000000:3B:00.0 Off |                0 |
| N/A   33C    P0     71W /  700W |   70112MiB /  81559MiB |      0%      Default |
"""
TOPOLOGY = """\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV18\tNV18\tSYS\t0-55\t0
GPU1\tNV18\t X \tNV12\tSYS\t0-55\t0
GPU2\tNV18\tNV12\t X \tSYS\t0-55\t0
NIC0\tSYS\tSYS\tSYS\t X
"""
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 42.00 MiB. GPU 0 has a total"
    " capacity of 47.27 GiB of which 9.38 MiB is free. Process 29 has 29.04 GiB memory in use."
    " Including non-PyTorch memory, this process has 18.00 GiB memory in use. Of the allocated"
    " memory 9.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but unallocated."
)
TORCH_PACKAGES = "torch        2.8.0\ntorchvision  0.21.0\ntriton   3.4.0\n"


@pytest.mark.parametrize(
    ("text", "check", "findings", "said"),
    [
        pytest.param(
            STACKS,
            "py-spy-all-ranks",
            {"waiting", "rank-not-running"},
            "Rank 0 stands in save_checkpoint (train/save.py:44), while rank 1, rank 3 wait in"
            " barrier (torch/distributed/distributed_c10d.py:4818).",
            id="one rank saves, two wait, one has no stack",
        ),
        pytest.param(
            SMI,
            "nvidia-smi",
            {"nccl-polling-kernel-spins", "rank-gpu-not-collective"},
            "GPU 2 at 0 % while GPUs 0, 1 stand at 100 %: look at its rank.",
            id="two GPUs spin, one is idle",
        ),
        pytest.param(
            TOPOLOGY,
            "nvidia-smi-topo",
            {"nvlinks-missing", "gpudirect-rdma-not-chosen"},
            "GPU1 and GPU2 have 12 NVLinks (NV12), other pairs have 18.",
            id="a pair with fewer NVLinks, a far NIC",
        ),
        pytest.param(
            OOM,
            "torch-oom-message",
            {"processes-sit-gpu", "memory-reserved-pieces-not", "gigabytes-outside-allocator"},
            "1 other process holds 29.0 GiB of the GPU's 47.3 GiB.",
            id="out of memory with another process",
        ),
        pytest.param(
            TORCH_PACKAGES,
            "pip-list",
            {"torchvision-built-torch-minor"},
            "torch 2.8.0 needs torchvision 0.23, and 0.21.0 is installed.",
            id="torchvision of another torch",
        ),
    ],
)
def test_values_of_an_output_are_compared(
    text: str, check: str, findings: set[str], said: str, knowledge: KnowledgeBase
) -> None:
    _names, seen = outputs_of(text, knowledge)
    alarms = [one for one in seen if one.check == check and one.abnormal]
    assert {one.finding for one in alarms} == findings
    assert said in {one.text for one in alarms}
    assert findings <= {finding.id for finding in check_of(check, knowledge).body.findings}


@pytest.mark.parametrize(
    ("check", "one"),
    [
        pytest.param(check, one, id=f"{check}/{one.finding}")
        for check, comparisons in COMPARISONS.items()
        for one in comparisons
    ],
)
def test_a_comparison_holds_for_the_example_of_its_finding(
    check: str, one: Comparison, knowledge: KnowledgeBase
) -> None:
    findings = check_of(check, knowledge).body.findings
    (finding,) = [finding for finding in findings if finding.id == one.finding]
    assert one.finding in findings_of(finding.example or "", check, knowledge)


def test_a_column_that_cannot_be_read_is_named_and_is_not_normal(
    knowledge: KnowledgeBase,
) -> None:
    old = "             total       used       free     shared    buffers     cached\n"
    header = "              total        used        free      shared  buff/cache   available\n"
    text = old + "Mem:         64215      60000       4215          0        100       2000\n"
    _names, seen = outputs_of(
        header + "Mem:    251Gi   240Gi   1.1Gi   8.2Gi   10Gi   ??\n", knowledge
    )
    assert [(one.finding, one.abnormal) for one in seen] == [(None, None)]
    assert "column available" in seen[0].text
    assert outputs_of(text, knowledge)[1] == []


def test_stacks_that_hold_no_frame_are_named(knowledge: KnowledgeBase) -> None:
    text = STACKS.replace("    save_checkpoint (train/save.py:44)\n", "").replace(
        "    <module> (train.py:140)\n", ""
    )
    _names, seen = outputs_of(text, knowledge)
    assert "Could not read the stack of rank 0." in {one.text for one in seen if not one.finding}


def test_no_check_is_recognised_in_healthy_logs_but_those_that_look_at_logs(
    knowledge: KnowledgeBase,
) -> None:
    reports = map(json.loads, NEGATIVES.read_text().splitlines())
    texts = {one["id"]: one["text"] for one in reports if one["kind"] == "healthy"}
    texts["ordinary"] = ORDINARY.read_text()
    for name, text in texts.items():
        names, seen = outputs_of(text, knowledge)
        outputs = REAL_OUTPUTS.get(name, set())
        assert {one for one in names if not one.startswith(LOG_CHECKS)} <= outputs, name
        assert [one for one in seen if one.abnormal is not False] == [], name


def test_the_beginning_and_the_end_of_a_long_log_are_looked_at(knowledge: KnowledgeBase) -> None:
    calm = "2026-05-08 10:00:00 INFO step 12 of 400\n" * (4 * WINDOW_BYTES // 40)
    full = "Filesystem      Size  Used Avail Use% Mounted on\nshm   64M     0   64M   0% /dev/shm\n"
    for text in (full + calm, calm + full, calm + full.rstrip("\n")):
        _names, seen = outputs_of(text, knowledge)
        (one,) = [one for one in seen if one.check == "df-shm"]
        assert text.split("\n")[one.line - 1].startswith("shm")


def test_an_output_with_a_log_around_it_is_read_alone(knowledge: KnowledgeBase) -> None:
    log = "2026-05-08 10:00:00 ERROR writer: OSError: Read-only file system\n"
    disk = "Filesystem     Type   Size  Used Avail Use% Mounted on\n/dev/sda1 ext4 9G 9G 0 100% /\n"
    _names, seen = outputs_of(disk + "$ cat log\n" + log, knowledge)
    assert any(one.finding == "full-by-space" and one.line == 2 for one in seen)


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        ("tmpfs           1.6G  1.6G     0 100% /run", "/run is full: 0 of 1.6G is left"),
        ("JuiceFS:models  1.0P  1.0P  512M 100% /models", "/models is full: 512M of 1.0P is left"),
        ("s3fs fuse.s3fs   64G   63G  1.0G  99% /mnt/my data", "/mnt/my data is full"),
        ("/dev/loop7       92M   92M     0 100% /snap/core/17200", None),
        ("tmpfs           1.6G  1.5G  100M  94% /run", None),
    ],
)
def test_a_full_file_system_of_any_kind_is_seen(
    knowledge: KnowledgeBase, table: str, shown: str | None
) -> None:
    head = "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda2  3.5T   61G  3.3T   2% /\n"
    _names, seen = outputs_of(f"{head}{table}\n", knowledge)
    full = [one.text for one in seen if one.finding == "full-by-space"]
    assert len(full) == (shown is not None)
    assert all(text.startswith(shown or "") for text in full)


def test_observations_stand_in_the_json_with_secrets_masked(knowledge: KnowledgeBase) -> None:
    text = "shm  64M  0  64M  0% /dev/shm\n"
    diagnosis = diagnose(Log.from_text(text), knowledge)
    (seen,) = json.loads(to_json(diagnosis))["observations"]
    assert (seen["check"], seen["file"], seen["line"], seen["abnormal"]) == (
        "df-shm",
        None,
        1,
        True,
    )
    assert "64M" in seen["text"]


def test_the_terminal_names_what_the_outputs_show(shipped_kb: Run) -> None:
    shown = shipped_kb("ask", stdin=SMI.encode()).stdout.decode()
    part = shown[shown.index("What the outputs show") :]
    assert part.index("! ") < part.index("nvidia-smi (line ")


REAL = {
    "chronyc": ("chrony", {"chronyd-not-run"}),
    "df": ("df-shm", set()),
    "df-h": ("df-shm", set()),
    "df-hT": ("df-disk-inodes", set()),
    "df-i": ("df-disk-inodes", set()),
    "df-shm": ("df-shm", set()),
    "dmesg": ("dmesg-oom-kill", {"size-kind-memory", "whole-host"}),
    "env": ("env-dump", set()),
    "ethtool": ("ethtool-link", {None}),
    "free": ("free-h", set()),
    "free-g": ("free-h", set()),
    "free-h": ("free-h", set()),
    "free-m": ("free-h", set()),
    "gdb-all": ("gdb-bt", set()),
    "gdb-bt": ("gdb-bt", set()),
    "iostat-x": ("iostat", set()),
    "ip-addr": ("ip-addr", set()),
    "ip-br": ("ip-addr", set()),
    "ip-route-get": ("ip-route-get", set()),
    "ip-s-link": ("ip-addr", set()),
    "lscpu": ("numactl", set()),
    "numactl-H": ("numactl", set()),
    "numactl-s": ("numactl", set()),
    "nvidia-smi": ("nvidia-smi", {"program-missing"}),
    "ping": ("mtu-ping", set()),
    "pip-freeze": ("pip-list", set()),
    "pip-list": ("pip-list", set()),
    "proc-stack": ("proc-stack", set()),
    "ps-wchan": ("proc-wchan", set()),
    "py-spy-locals": ("py-spy-dump", {"rank-waits-socket-pipe", "rank-stands-barrier-waits"}),
    "py-spy-native": ("py-spy-dump", {"rank-waits-socket-pipe", "rank-stands-barrier-waits"}),
    "py-spy-one": ("py-spy-dump", {"rank-waits-socket-pipe", "rank-stands-barrier-waits"}),
    "py-spy-ranks": ("py-spy-all-ranks", {"waiting"}),
    "sacct": ("sacct", set()),
    "scontrol-job": ("squeue-reason", {"waits-turn"}),
    "scontrol-node1": ("scontrol-show-node", {"node-takes-no-new", "processes-job-not-ended"}),
    "sinfo": ("sinfo-R", {"nodes-out-service"}),
    "sinfo-Nl": ("sinfo-R", {"nodes-out-service"}),
    "sinfo-R": ("sinfo-R", {"line-per-reason"}),
    "slurmd-log": ("slurmd-log", {"mpi-bootstrap-slurm-failed"}),
    "squeue": ("squeue-reason", {"waits-turn", "named-suitable-nodes-down"}),
    "squeue-start": ("squeue-reason", {"waits-turn", "named-suitable-nodes-down"}),
    "ss-tlnp": ("ss-listen", {"bound-loopback"}),
    "ss-tn": ("ss-connections", set()),
    "strace": ("strace-p", {"blocked-descriptor"}),
    "sysctl": ("sysctl-net-ports", set()),
    "taskset": ("cpu-affinity", set()),
    "top-H": ("top-threads", set()),
    "ulimit-a": ("ulimit", {"pinning-limited"}),
    "ulimit-a-dash": ("ulimit", {"pinning-limited"}),
    "vmstat": ("iostat", set()),
}
"""By the name of a file in `outputs`, which a program really printed: the check that it is of, and
what it shows that is not normal."""
ALSO = {"dmesg": {"kernel-log", "coredumpctl"}, "py-spy-ranks": {"py-spy-dump"}}
"""Further checks whose output it is, and which find something."""
TRAINING = "".join(
    f"2026-05-08 10:00:{second:02d},114 [rank0] INFO step {second} of 400 loss 2.31 lr 1e-4\n"
    for second in range(30)
)


@pytest.mark.parametrize(
    "around", ["{}", "alice@node-0:~$ show\n{}", "{log}[me@node-0 ~]$ x\n{}$ y\n{log}"]
)
@pytest.mark.parametrize("name", REAL)
def test_a_real_output_is_read_wherever_it_stands(
    name: str, around: str, knowledge: KnowledgeBase
) -> None:
    check, findings = REAL[name]
    text = around.format((OUTPUTS / f"{name}.txt").read_text(), log=TRAINING)
    names, seen = outputs_of(text, knowledge)
    assert check in names
    own = [one for one in seen if one.check == check and one.abnormal is not False]
    assert {one.finding for one in own} == findings
    assert all(text.split("\n")[one.line - 1].strip() for one in own)
    strange = {one.check for one in seen if one.abnormal} - {check} - ALSO.get(name, set())
    assert strange == set()


def test_the_heading_of_a_rank_names_it_and_not_the_process_below(knowledge: KnowledgeBase) -> None:
    _names, seen = outputs_of((OUTPUTS / "py-spy-ranks.txt").read_text(), knowledge)
    assert (
        "Rank 0 stands in save_checkpoint (train.py:18), while rank 1, rank 2, rank 3 wait in"
        " barrier (train.py:10)."
    ) in {one.text for one in seen}


def test_all_real_outputs_are_tested() -> None:
    assert {path.stem for path in OUTPUTS.iterdir()} == set(REAL)


def test_runs_of_a_command_on_two_hosts_are_compared(knowledge: KnowledgeBase) -> None:
    text = (
        "node-0$ ip link\n2: eth0: <BROADCAST,UP> mtu 9000 qdisc mq state UP\n"
        "node-1$ ip link\n2: eth0: <BROADCAST,UP> mtu 1500 qdisc mq state UP\n"
    )
    _names, seen = outputs_of(text, knowledge)
    assert [one.text for one in seen if one.finding == "unequal-mtu"] == [
        "The MTU of eth0 differs: 1500; 9000 elsewhere."
    ]


def test_a_counter_that_rises_is_told_from_one_that_stands(knowledge: KnowledgeBase) -> None:
    port = "# Port extended counters: Lid 48 port 1 (CapMask: 0x5300)\nSymbolErrorCounter:....{}\n"
    rising = f"$ perfquery -x\n{port.format(12)}$ perfquery -x\n{port.format(19)}"
    standing = f"$ perfquery -x\n{port.format(12)}$ perfquery -x\n{port.format(12)}"
    assert findings_of(rising, "perfquery", knowledge) == {"bit-errors-wire"}
    assert findings_of(standing, "perfquery", knowledge) == set()


RAS = """Job summary
===========
Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         2         4         4   RUNNING  MISMATCH

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  {0} ranks have launched up to operation {1}
  1 rank has launched up to operation {2}
  Rank 2 -- GPU 0 managed by process 483072 on node 172.16.64.213
"""


def test_the_ranks_behind_are_computed_where_ras_lists_those_ahead(
    knowledge: KnowledgeBase,
) -> None:
    for counts, said in (
        ((3, 6649, 6650), "Ranks 0, 1, 3 stand at operation 6649, the others at 6650."),
        ((3, 6650, 6649), "Rank 2 stands at operation 6649, the others at 6650."),
    ):
        _names, seen = outputs_of(RAS.format(*counts), knowledge)
        assert said in {one.text for one in seen if one.check == "nccl-ras"}


def test_nothing_is_called_missing_where_the_log_goes_on(knowledge: KnowledgeBase) -> None:
    start = (
        "node-0:4410:4505 [0] NCCL INFO ncclCommInitRankConfig comm 0x55d8c0 rank 0 nranks 16"
        " cudaDev 0 nvmlDev 0 busId 1b000 commId 0x8a2f1c - Init START\n"
    )
    calm = "2026-05-08 10:00:00 INFO step 12 of 400\n" * (4 * WINDOW_BYTES // 40)
    assert "init-stuck" in findings_of(start, "nccl-debug-init-complete", knowledge)
    assert findings_of(start + calm, "nccl-debug-init-complete", knowledge) == set()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: fast\n",
            "Could not read the rate `fast` of mlx5_0.",
        ),
        (
            "index, pci.bus_id, memory.used [MiB], utilization.gpu [%]\n"
            "0, 00000000:1B:00.0, [Unknown Error], 0 %\n",
            "Could not read memory.used (`[Unknown Error]`) of GPU 0.",
        ),
        (
            "Capacity:\n  nvidia.com/gpu:     8\nAllocatable:\n  nvidia.com/gpu:     <unset>\n",
            "Could not read the GPUs `<unset>` under Allocatable.",
        ),
        (
            "# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592\n"
            "  8589934592    2147483648     float     sum      -1    31702  270.96  N/A   0\n",
            "Could not read the bus bandwidth of 8589934592 bytes.",
        ),
    ],
)
def test_a_value_in_an_unknown_form_is_named(
    text: str, said: str, knowledge: KnowledgeBase
) -> None:
    _names, seen = outputs_of(text, knowledge)
    assert said in {one.text for one in seen if one.abnormal is None}


@pytest.mark.parametrize("identifier", CHECKS)
def test_no_reader_fails_on_an_output_that_is_damaged(
    identifier: str, knowledge: KnowledgeBase
) -> None:
    check = check_of(identifier, knowledge)
    examples = [check.body.normal, *(one.example or "" for one in check.body.findings)]
    lines = "\n".join(examples).splitlines()
    rows = range(0, len(lines), max(1, len(lines) // 20))
    damaged = [
        *([line[: len(line) * tenth // 10] for line in lines] for tenth in range(10)),
        *([*lines[:row], *lines[row + 1 :]] for row in rows),
        ["".join("?" if char.isdigit() else char for char in line) for line in lines],
        [line.replace("0", "9" * 30) for line in lines],
        lines[::-1],
    ]
    scanner = Scanner(finding_patterns(check))
    for some in damaged:
        said = {one.text for one in observe(Output(None, 1, tuple(some)), check, scanner)}
        assert "Could not read the rest of this output." not in said


LINUX = {
    "df-disk-inodes": "df -hT; df -i",
    "df-shm": "df -h /dev/shm",
    "free-h": "free -h",
    "ulimit": "ulimit -a",
    "ss-listen": "ss -tlnp",
    "ip-addr": "ip addr",
    "pip-list": f"{sys.executable} -m pip list",
    "env-dump": "NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0 env",
}


@pytest.mark.skipif(platform.system() != "Linux", reason="outputs of Linux")
@pytest.mark.parametrize("check", LINUX)
def test_the_real_output_of_this_machine_is_recognised(
    check: str, knowledge: KnowledgeBase
) -> None:
    program = LINUX[check].split()[0]
    if check != "env-dump" and program != "ulimit" and not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    ran = subprocess.run(
        ["bash", "-c", LINUX[check]], capture_output=True, text=True, env=dict(os.environ)
    )
    log = "2026-05-08 10:00:00 INFO step 12 of 400\n" * 3
    for text in (ran.stdout, log + ran.stdout + log):
        names, seen = outputs_of(text, knowledge)
        assert check in names
        assert [one for one in seen if one.check == check and one.abnormal is None] == []


def test_a_ping_without_its_first_line_says_nothing_of_the_one_before(
    knowledge: KnowledgeBase,
) -> None:
    """Who pastes in a hurry leaves it out."""
    text = (
        "$ ping -M do -s 8972 -c 3 10.40.2.12\n"
        "PING 10.40.2.12 (10.40.2.12) 8972(9000) bytes of data.\n"
        "3 packets transmitted, 0 received, 100% packet loss, time 2039ms\n"
        "$ ping -M do -s 1372 -c 3 10.40.2.12\n"
        "3 packets transmitted, 3 received, 0% packet loss, time 2003ms\n"
    )
    _names, seen = outputs_of(text, knowledge)
    assert {one.finding for one in seen if one.abnormal} == {"large-packets-vanish-silently"}
    assert "large-pass" not in {one.finding for one in seen}


def test_a_single_device_that_is_missing_is_a_finding(knowledge: KnowledgeBase) -> None:
    text = "ls: cannot access '/dev/nvidia0': No such file or directory\n"
    assert "no-device" in findings_of(text, "dev-nvidia-nodes", knowledge)
