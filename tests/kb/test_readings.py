"""What the outputs of checks do to the belief, in one input and in a conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.conversation import Conversation, begin, reply
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, diagnose
from kb.log import Log
from kb.verdict import ANSWER_AT, Verdict
from tests.kb.talks import said, talk

SEGMENT = "nccl-0:41:98 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2"
NO_SPACE = (
    "nccl-0:41:98 [0] NCCL WARN Call to posix_fallocate failed: No space left on device\n"
    "nccl-0:41:98 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2"
)
SMALL = """\
$ df -h /dev/shm
Filesystem      Size  Used Avail Use% Mounted on
shm              64M     0   64M   0% /dev/shm"""
LARGE = """\
$ df -h /dev/shm
Filesystem      Size  Used Avail Use% Mounted on
tmpfs           504G  2.1G  502G   1% /dev/shm"""
FELL_OFF = """\
$ sudo dmesg -T | tail -1
[Thu Mar  5 10:12:44 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus."""
NO_MANAGER = "Unit nvidia-fabricmanager.service could not be found."
TOO_SMALL = "nccl-shm-too-small-container"


def asked(text: str, knowledge: KnowledgeBase) -> Diagnosis:
    return diagnose(Log.from_text(text), knowledge)


def confidence(diagnosis: Diagnosis, identifier: str) -> float:
    found = [one.confidence for one in diagnosis.candidates if one.incident.id == identifier]
    return found[0] if found else 0.0


def opened(text: str, knowledge: KnowledgeBase) -> Conversation:
    return begin(asked(text, knowledge))


def share(conversation: Conversation, identifier: str) -> float:
    return conversation.belief.shares.get(identifier, 0.0)


def test_a_reading_speaks_for_the_incidents_of_the_cause_that_it_names(
    knowledge: KnowledgeBase,
) -> None:
    log, read = asked(SEGMENT, knowledge), asked(f"{SEGMENT}\n{SMALL}", knowledge)
    assert read.observations[0].check in ("df-shm", "nccl-warn-lines")
    assert read.matches[0].incident.id == TOO_SMALL
    assert confidence(read, TOO_SMALL) > confidence(log, TOO_SMALL) + 0.1
    assert sum(one.confidence for one in (*read.candidates, *read.playbooks)) <= 1.001


def test_a_reading_brings_its_playbook_to_the_front(knowledge: KnowledgeBase) -> None:
    question = "training hangs on one node"
    before = [match.playbook.id for match in asked(question, knowledge).playbooks]
    named = asked(f"{question}\n{SMALL}", knowledge).playbooks
    assert "bus-error-shm" not in before
    assert "bus-error-shm" in [match.playbook.id for match in named]


@pytest.mark.parametrize("output", [SMALL, NO_MANAGER])
def test_a_reading_alone_is_no_match(knowledge: KnowledgeBase, output: str) -> None:
    diagnosis = asked(output, knowledge)
    assert diagnosis.verdict is Verdict.POSSIBLE
    assert diagnosis.matches[0].confidence < ANSWER_AT


def test_a_reading_that_names_an_incident_brings_it_up_with_its_line(
    knowledge: KnowledgeBase,
) -> None:
    diagnosis = asked(f"the loss is odd since today\n{NO_MANAGER}", knowledge)
    record = "nvidia-cuda802-fabricmanager-not-running"
    (found,) = (one for one in diagnosis.matches if one.incident.id == record)
    assert [why.line.text for why in found.why] == [NO_MANAGER]
    assert diagnosis.verdict is Verdict.POSSIBLE


def test_a_kernel_log_beside_a_log_names_the_gpu(knowledge: KnowledgeBase) -> None:
    watchdog = Path("benchmarks/samples/nccl-shm.log").read_text(encoding="utf-8")
    alone, read = asked(watchdog, knowledge), asked(f"{watchdog}\n{FELL_OFF}", knowledge)
    lost = "xid79-gpu-fallen-off-bus"
    assert confidence(read, lost) > confidence(alone, lost)


def test_a_normal_reading_lowers_what_an_abnormal_one_would_have_named_a_little(
    knowledge: KnowledgeBase,
) -> None:
    log = "cudaGetDeviceCount returned error 802, system not yet initialized, on every node"
    record = "nvidia-cuda802-fabricmanager-not-running"
    start = opened(log, knowledge)
    running = """\
● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Active: active (running) since Thu 2026-03-05 08:01:12 UTC; 2h ago"""
    normal = reply(start, running, knowledge)
    missing = reply(start, "Unit nvidia-fabricmanager.service could not be found.", knowledge)
    assert share(normal, record) < share(start, record) <= share(missing, record)
    assert share(normal, record) > share(start, record) / 2
    assert "`nvidia-fabricmanager`: The fabric manager runs" in normal.turns[-1].text


def test_what_a_check_cannot_see_is_not_ruled_out_by_it(knowledge: KnowledgeBase) -> None:
    """`df` shows one moment and one mount: a job that filled it has freed it again."""
    start = opened(SEGMENT, knowledge)
    after = reply(start, LARGE, knowledge)
    assert after.matches == start.matches
    shown = after.turns[-1].text
    assert "shared memory is not what is short here" in shown
    assert "this holds only for this shell and this moment" in shown


@pytest.mark.parametrize("words", ["df -h /dev/shm shows: ", "it says: ", "df 的输出是："])
def test_a_row_behind_words_is_read(knowledge: KnowledgeBase, words: str) -> None:
    start = opened(SEGMENT, knowledge)
    after = reply(start, f"{words}shm 64M 64M 0 100% /dev/shm", knowledge)
    assert after.turns[-1].text.startswith("`df-shm`")
    assert share(after, TOO_SMALL) > share(start, TOO_SMALL)


@pytest.mark.parametrize(
    "text",
    [
        "df -h /dev/shm shows 64M",
        "`df -h /dev/shm` says 64M here",
        "in the pod df -h /dev/shm shows 64M",
        "shm              64M     0   64M   0% /dev/shm",
        SMALL,
    ],
)
@pytest.mark.parametrize("log", [SEGMENT, NO_SPACE])
def test_what_a_record_names_itself_speaks_for_it(
    knowledge: KnowledgeBase, log: str, text: str
) -> None:
    start = opened(log, knowledge)
    after = reply(start, text, knowledge)
    assert after.matches[0].incident.id == TOO_SMALL
    assert share(after, TOO_SMALL) >= share(start, TOO_SMALL)
    assert f"[{TOO_SMALL}] falls" not in after.turns[-1].text


@pytest.mark.parametrize(
    "text",
    ["df -h /dev/shm does not show 64M", "df -h /dev/shm shows 126G", "does df show 64M of shm?"],
)
def test_what_a_record_does_not_name_does_not_speak_for_it(
    knowledge: KnowledgeBase, text: str
) -> None:
    start = opened(SEGMENT, knowledge)
    after = reply(start, text, knowledge)
    assert "describes this itself" not in after.turns[-1].text


def test_a_kernel_log_in_a_conversation_brings_up_the_lost_gpu(knowledge: KnowledgeBase) -> None:
    start = opened("training hangs, one rank does not answer", knowledge)
    after = reply(start, FELL_OFF, knowledge)
    assert after.matches[0].incident.id == "xid79-gpu-fallen-off-bus"
    assert (
        "`dmesg-xid`: The GPU no longer answers on PCIe."
        in after.turns[-1].text.replace(" Reboot", "")
        or "`dmesg-xid`" in after.turns[-1].text
    )
    assert reply(after, "undo", knowledge).matches == start.matches


def test_who_pastes_the_output_of_the_check_is_told_the_next_one(knowledge: KnowledgeBase) -> None:
    start = opened("our workers die with a bus error", knowledge)
    asked_for = reply(start, "what should I check next?", knowledge)
    assert "[df-shm]" in asked_for.turns[-1].text
    pasted = reply(asked_for, LARGE, knowledge)
    assert "Check next: " in pasted.turns[-1].text
    assert "[df-shm]" not in pasted.turns[-1].text
    again = reply(pasted, "what next?", knowledge).turns[-1].text
    assert "[df-shm]" not in again
    named = pasted.turns[-1].text.split("Check next: ")[1].split("\n")[0]
    assert named in again


def test_an_output_without_a_prompt_and_without_the_look_of_a_log_is_read(
    knowledge: KnowledgeBase,
) -> None:
    stacks = (
        '== gpu-3 rank 0 pid 51\nThread 51 (active): "MainThread"\n'
        "    export_weights (jobs/out.py:9)\n    main (jobs/run.py:30)\n"
        '== gpu-3 rank 1 pid 52\nThread 52 (active): "MainThread"\n'
        "    barrier (torch/distributed/distributed_c10d.py:4818)\n"
    )
    after = reply(opened("the training hangs", knowledge), stacks, knowledge)
    assert "py-spy-dump" in after.checks


def test_the_same_output_pasted_twice_counts_once(knowledge: KnowledgeBase) -> None:
    once = reply(opened(SEGMENT, knowledge), SMALL, knowledge)
    twice = reply(once, SMALL, knowledge)
    assert share(twice, TOO_SMALL) == pytest.approx(share(once, TOO_SMALL), abs=0.02)


HALF = "inter-node nccl bandwidth is half of what it should be, intra node is ok"
SLOW_LINK = """$ ibstat | egrep "CA '|State|Rate"
CA 'mlx5_0'
    State: Active
    Rate: 400
CA 'mlx5_1'
    State: Active
    Rate: 200
"""


@pytest.fixture(scope="module")
def slow_link(knowledge: KnowledgeBase) -> Conversation:
    """A record shares the words of the opening; then a port turns out to be slow."""
    conversation = talk(knowledge, HALF, SLOW_LINK)
    assert conversation.matches
    assert conversation.verdict is not Verdict.MATCH
    return conversation


def test_a_record_of_the_same_words_falls_where_an_output_shows_another_cause(
    knowledge: KnowledgeBase, slow_link: Conversation
) -> None:
    before = talk(knowledge, HALF).matches[0]
    after = {match.incident.id: match.confidence for match in slow_link.matches}
    assert after[before.incident.id] < before.confidence


def test_a_trail_is_followed_before_the_steps_of_a_record_that_is_only_possible(
    slow_link: Conversation,
) -> None:
    assert "[perfquery]" in said(slow_link)


def test_what_was_read_stands_in_the_ticket(
    knowledge: KnowledgeBase, slow_link: Conversation
) -> None:
    assert "mlx5_1 at 200 Gb/s" in said(reply(slow_link, "write a ticket for the dc", knowledge))


@pytest.mark.parametrize("text", ["what can we do for now", "今晚还得跑，先怎么办"])
def test_until_the_morning_the_cause_that_was_shown_is_kept_away(
    knowledge: KnowledgeBase, slow_link: Conversation, text: str
) -> None:
    answer = said(reply(slow_link, text, knowledge))
    assert "[slow-collectives]" in answer
    assert "port" in answer or "端口" in answer


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ("I ran nproc inside the job and it says 1, the node has 128", "cpu-affinity"),
        ("ss on the master says it listens on 127.0.1.1 only", "ss-listen"),
        ("torch.cuda.is_available() 返回 False，但 nvidia-smi 正常", "torch-cuda-check"),
        ("ibstat 看了一下，mlx5_2 的 Rate 是 200，其他都是 400", "ibstat"),
        ("ibstat 看了一下，mlx5_2 的 Rate 是 400，其他都是 400", ""),
        ("how do I see whether ss says it listens on 127.0.0.1 only?", ""),
        ("nproc says 64 inside the job", ""),
        ("it listened on 127.0.1.1, as ss says it listens on 127.0.1.1, and we fixed that", ""),
    ],
)
def test_a_value_is_read_that_is_told_in_words(
    told: str, seen: str, knowledge: KnowledgeBase
) -> None:
    answered = reply(opened("training is slow since today", knowledge), told, knowledge)
    faults = [one for said in answered.statements for one in said.observations if one.abnormal]
    assert {one.check for one in faults} == ({seen} - {""})
