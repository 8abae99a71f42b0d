"""What speaks against a record: the same text, with and without a contradiction."""

from __future__ import annotations

import pytest

from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, diagnose
from kb.diagnosis.retrieval import retrieve
from kb.evidence import collect
from kb.evidence.accelerators import Hardware, hardware_of, products_in, required_hardware
from kb.evidence.facts import find_facts
from kb.log import Log
from kb.verdict import ANSWER_AT, Verdict

GEFORCE = "nccl-geforce-pcie-p2p-hang-driver"
COLLATE = "pytorch-dataloader-collate-unequal-sizes"
NONBLOCKING = "pytorch-2.7.0-device-id-nonblocking-nccl-hang"
FALLEN = "xid79-gpu-fallen-off-bus"
PEERMEM = "nccl-gdr-disabled-nvidia-peermem-not-detected"

TWO_CARDS = """\
# Using devices
#  Rank  0 Group  0 Pid  8801 on    box-3 device  0 [0x19] NVIDIA {card}
#  Rank  1 Group  0 Pid  8801 on    box-3 device  1 [0x3b] NVIDIA {card}
box-3:8801:8840 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer
box-3:8801:8841 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/direct pointer
box-3:8801:8840 [0] NCCL INFO Connected all rings
it hangs here, nvidia-smi hangs as well, kill -9 does nothing
"""

WORKER = """\
Traceback (most recent call last):
  File "/opt/app/train.py", line 88, in <module>
    for step, batch in enumerate(loader):
  File "/opt/lib/python3.10/torch/_utils.py", line 694, in reraise
    raise exception
{name}: Caught {short} in DataLoader worker process 1.
Original Traceback (most recent call last):
  File "/opt/lib/python3.10/torch/utils/data/_utils/worker.py", line 308, in work
    data = fetcher.fetch(index)
  File "/opt/lib/python3.10/torch/utils/data/_utils/fetch.py", line 54, in fetch
    return self.collate_fn(data)
  File "/opt/lib/python3.10/torch/utils/data/_utils/collate.py", line 265, in default_collate
    return collate(batch, collate_fn_map=default_collate_fn_map)
{error}
"""

UNEQUAL = (
    "RuntimeError: stack expects each tensor to be equal size,"
    " but got [3, 512, 384] at entry 0 and [3, 512, 400] at entry 5"
)
OTHERS = [
    "ValueError: could not convert string to float: 'n/a'",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/cityscapes/0431.png'",
    "cv2.error: OpenCV(4.9.0) /io/opencv/modules/imgproc/src/resize.cpp:4152: error:"
    " (-215:Assertion failed) !ssize.empty() in function 'resize'",
    "RuntimeError: CUDA error: out of memory",
    "KeyError: 'attention_mask'",
]

DEVICE_ID = """\
[launch] torch {version}+cu126 | NCCL version 2.26.2
init_process_group(backend="nccl", device_id=torch.device("cuda", 3))
[rank2]:[E612 03:17:44.201713351 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective \
operation timeout: WorkNCCL(SeqNum=877, OpType=_ALLGATHER_BASE, NumelIn=78, NumelOut=624, \
Timeout(ms)=600000) ran for 600043 milliseconds before timing out.
it hangs now and then, a rerun passes
"""

NO_GDR = """\
gpu-7:4021:4077 [3] NCCL INFO NCCL version {version}+cuda12.4
gpu-7:4021:4077 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB bond0:10.0.0.7<0>
gpu-7:4021:4077 [3] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
gpu-7:4021:4077 [3] NCCL INFO Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/0
lsmod | grep peermem
nvidia_peermem 16384 0
cat: /sys/kernel/mm/memory_peers/nv_mem/version: No such file or directory
"""


def ask(text: str, knowledge: KnowledgeBase) -> Diagnosis:
    return diagnose(Log.from_text(text), knowledge)


def sure_of(identifier: str, diagnosis: Diagnosis) -> float:
    return next((m.confidence for m in diagnosis.candidates if m.incident.id == identifier), 0.0)


def in_worker(error: str) -> str:
    name = error.partition(":")[0]
    return WORKER.format(name=name, short=name.rpartition(".")[2], error=error)


def test_a_record_of_geforce_cards_is_no_match_on_others(knowledge: KnowledgeBase) -> None:
    own = ask(TWO_CARDS.format(card="GeForce RTX 4090"), knowledge)
    assert (own.verdict, own.matches[0].incident.id) == (Verdict.MATCH, GEFORCE)
    other = ask(TWO_CARDS.format(card="H800"), knowledge)
    assert other.verdict is not Verdict.MATCH
    assert sure_of(GEFORCE, other) < ANSWER_AT


def test_a_record_of_another_xid_is_no_match(knowledge: KnowledgeBase) -> None:
    line = "[41200.812] NVRM: Xid (PCI:0000:c1:00): {}, pid=2204, GPU has fallen off the bus."
    own = ask(line.format(79), knowledge)
    assert (own.verdict, own.matches[0].incident.id) == (Verdict.MATCH, FALLEN)
    assert sure_of(FALLEN, ask(line.format(48), knowledge)) < ANSWER_AT


def test_the_exception_that_a_record_is_about_is_a_match(knowledge: KnowledgeBase) -> None:
    own = ask(in_worker(UNEQUAL), knowledge)
    assert (own.verdict, own.matches[0].incident.id) == (Verdict.MATCH, COLLATE)


@pytest.mark.parametrize("error", OTHERS)
def test_another_exception_behind_the_same_frames_is_no_match(
    error: str, knowledge: KnowledgeBase
) -> None:
    assert sure_of(COLLATE, ask(in_worker(error), knowledge)) < ANSWER_AT


def test_an_exception_that_led_to_the_last_one_is_explained(knowledge: KnowledgeBase) -> None:
    last = (
        "\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/app/train.py", line 97, in <module>\n'
        "    tracker.close()\n"
        "TypeError: close() missing 1 required positional argument: 'reason'\n"
    )
    chain = ask(in_worker(UNEQUAL) + last, knowledge)
    assert (chain.verdict, chain.matches[0].incident.id) == (Verdict.MATCH, COLLATE)


def unexplained(text: str, identifier: str, knowledge: KnowledgeBase) -> bool:
    evidence = collect(Log.from_text(text).blocks(), knowledge.signatures, knowledge.markers)
    found = {one.incident.id: one.features for one in retrieve(evidence, knowledge)}
    return bool(found[identifier].unexplained_exception)


@pytest.mark.parametrize(
    "ending",
    [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero"
        " exit status 1.",
        "ray.exceptions.RayTaskError(RuntimeError): ray::train() (pid=77, ip=10.0.0.4)",
    ],
)
def test_a_wrapper_hides_no_exception(ending: str, knowledge: KnowledgeBase) -> None:
    wrapped = f'\nTraceback (most recent call last):\n  File "run.py", line 3, in main\n{ending}\n'
    assert not unexplained(in_worker(UNEQUAL) + wrapped, COLLATE, knowledge)
    assert unexplained(in_worker(OTHERS[0]) + wrapped, COLLATE, knowledge)


def test_what_became_of_other_ranks_contradicts_nothing(knowledge: KnowledgeBase) -> None:
    text = (
        "node-1:90:91 [2] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
        "[rank2]: RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer\n"
        "[rank3]: torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:12,"
        " unhandled system error, NCCL version 2.19.3\n"
    )
    assert not unexplained(text, PEERMEM, knowledge)


def test_a_version_with_the_fix_is_no_match(knowledge: KnowledgeBase) -> None:
    before = ask(DEVICE_ID.format(version="2.7.0"), knowledge)
    assert (before.verdict, before.matches[0].incident.id) == (Verdict.MATCH, NONBLOCKING)
    after = ask(DEVICE_ID.format(version="2.8.0"), knowledge)
    assert sure_of(NONBLOCKING, after) < ANSWER_AT


def test_the_version_that_a_log_prints_counts(knowledge: KnowledgeBase) -> None:
    before = ask(NO_GDR.format(version="2.21.5"), knowledge)
    assert (before.verdict, before.matches[0].incident.id) == (Verdict.MATCH, PEERMEM)
    after = ask(NO_GDR.format(version="2.26.2"), knowledge)
    assert sure_of(PEERMEM, after) < ANSWER_AT


def test_a_system_that_is_said_to_be_absent_speaks_against_its_records(
    knowledge: KnowledgeBase,
) -> None:
    line = "shared memory segment could not be created by nccl, No space left on device\n"
    record = "nccl-shm-too-small-container"
    plain = sure_of(record, ask(f"{line}we run it in docker.", knowledge))
    assert sure_of(record, ask(f"{line}we do not use docker.", knowledge)) < plain


@pytest.mark.parametrize(
    ("text", "used", "absent"),
    [
        ("we don't use deepspeed.", (), ("deepspeed",)),
        ("没有用 docker，直接 torchrun", ("pytorch",), ("docker",)),
        ("not using docker or slurm, plain torchrun", ("pytorch",), ("docker", "slurm")),
        ("No module named deepspeed", ("deepspeed",), ()),
        ("we could not use NCCL over docker", ("docker", "nccl"), ()),
        ("no docker.\nDeepSpeed and docker run", ("deepspeed", "docker"), ()),
    ],
)
def test_systems_are_used_or_absent(
    text: str, used: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    facts = find_facts([text])
    assert (facts.systems, facts.absent_systems) == (used, absent)


@pytest.mark.parametrize(
    ("text", "families", "generations"),
    [
        ("2 nodes with 8x H800", {"NVIDIA data centre"}, {"Hopper"}),
        ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)", {"NVIDIA data centre"}, {"Ampere"}),
        ("NVIDIA GeForce RTX 4090", {"GeForce or RTX"}, {"Ada"}),
        ("two boxes, 8x4090 and 4090D 显卡", {"GeForce or RTX"}, {"Ada"}),
        ("AMD Instinct MI300X", {"AMD"}, set()),
        ("昇腾 910B 集群", {"Ascend"}, set()),
        ("step 3080 of 5000, p100 latency 12 ms, layer L4", set(), set()),
    ],
)
def test_cards_are_of_a_family_and_a_generation(
    text: str, families: set[str], generations: set[str]
) -> None:
    assert hardware_of(products_in(text)) == Hardware(frozenset(families), frozenset(generations))


@pytest.mark.parametrize(
    ("needed", "excluded", "allowed"),
    [
        ("any", [], ["H100", "RTX 4090", "MI300X"]),
        ("any NVIDIA GPU; reported on A10", ["MI300X"], ["H100", "RTX 4090"]),
        ("two or more GeForce cards, mostly RTX 4090", ["H800", "MI300X"], ["RTX 3090"]),
        ("reported on RTX 30 mobile and L20", [], ["H100", "MI300X"]),
        ("L4, T4 and other GPUs without peer access", [], ["H100"]),
        ("compute capability 7.x and older (V100, T4)", ["H100"], ["V100", "P100"]),
        ("Turing and newer; reported on A10", ["V100"], ["Tesla T4", "H100"]),
        ("two or more GPUs over PCIe (RTX A6000), AMD or Intel host", [], ["H100"]),
    ],
)
def test_a_record_excludes_only_what_it_names_others_instead_of(
    needed: str, excluded: list[str], allowed: list[str]
) -> None:
    required = required_hardware(needed)
    assert [card for card in excluded + allowed if hardware_of([card]).excludes(required)] == (
        excluded
    )
