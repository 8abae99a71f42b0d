"""What people observe in words, and what is read of outputs in the middle of a conversation."""

from __future__ import annotations

import pytest

from kb.conversation import reply
from kb.conversation.clues import Clue, clue_in, clues
from kb.conversation.language import Language, language_of
from kb.conversation.next_step import playbooks_of
from kb.conversation.state import ReplyAct
from kb.corpus.base import KnowledgeBase
from kb.evidence.nature import printed_part
from tests.kb.talks import said, talk

HANG = "training hangs in the middle, no error at all, gpus at 100%"
DISK = "the root filesystem is full, nothing starts any more"
PENDING = "throughput of our vllm server is half of last week, no error"


@pytest.mark.parametrize("clue", clues(), ids=lambda clue: clue.name)
def test_the_examples_have_the_clue_and_the_others_do_not(clue: Clue) -> None:
    for text in clue.examples:
        assert clue_in(text) is clue, text
    for text in clue.others:
        assert clue_in(text) is not clue, text


def test_a_clue_points_to_causes_that_there_are(knowledge: KnowledgeBase) -> None:
    for clue in clues():
        for target in clue.points_to:
            playbook, _colon, key = target.partition(":")
            causes = {one.key for one in knowledge.guides.by_id[playbook].body.causes}
            assert key in causes, target


@pytest.mark.slow
def test_ranks_in_different_collectives_are_told_apart_in_words(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, HANG, "rank 6 is in all_gather, the others in all_reduce")
    assert "same calls in the same order" in said(after)
    assert any(name.startswith("hang-mid-training:") for name in after.readings)


@pytest.mark.slow
def test_a_clue_is_said_once_and_in_the_language_of_the_user(knowledge: KnowledgeBase) -> None:
    once = talk(knowledge, "训练卡住不动了，没有报错", "每次都卡在第 731 步，换卡也一样")
    assert "同一个 batch" in said(once)
    assert "同一个 batch、" not in said(reply(once, "每次都卡在第 731 步", knowledge))


@pytest.mark.slow
def test_code_is_understood_as_far_as_a_few_rules_go(knowledge: KnowledgeBase) -> None:
    code = "this is it:\nif batch['has_image'].any():\n    feats = gather(vision(batch))"
    after = talk(knowledge, HANG, code)
    assert "reached by all ranks" in said(after)
    assert after.turns[-1].act is not ReplyAct.DECLINE


@pytest.mark.slow
def test_a_setting_that_stands_already_is_no_success_and_brings_the_other_remedies(
    knowledge: KnowledgeBase,
) -> None:
    after = talk(knowledge, PENDING, "gpu-memory-utilization 已经 0.95 了")
    assert after.solved is None
    assert "处理办法" in said(after) or "如果是" in said(after)


@pytest.mark.slow
def test_a_full_disk_in_words_leads_to_df_and_du(knowledge: KnowledgeBase) -> None:
    opened = talk(knowledge, DISK)
    assert opened.turns[-1].shows == ("df-disk-inodes",)
    read = reply(opened, "du -xh / | sort -rh | head -2\n412G\t/\n366G\t/var/lib", knowledge)
    assert "one level deeper" in said(read)
    found = reply(read, "360G\t/var/lib/systemd/coredump", knowledge)
    assert "MaxUse" in said(found)
    assert "coredumpctl" in found.turns[-1].shows
    assert "MaxUse" in said(reply(found, "deleted. how do we prevent that?", knowledge))


@pytest.mark.slow
def test_an_output_that_changed_counts_although_its_check_was_read(
    knowledge: KnowledgeBase,
) -> None:
    space = (
        "df -h /d\nFilesystem  Size  Used Avail Use% Mounted on\n/dev/sda1 7.0T 2.9T 4.1T 42% /d"
    )
    files = "df -i /d\nFilesystem  Inodes IUsed IFree IUse% Mounted on\n/dev/sda1 900 900 0 100% /d"
    before = talk(knowledge, DISK, space)
    after = reply(before, files, knowledge)
    assert not before.readings
    assert after.readings["disk-full:inodes"] > 1


@pytest.mark.slow
def test_an_error_of_another_symptom_brings_up_that_symptom(knowledge: KnowledgeBase) -> None:
    error = (
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='models.lan', port=443):"
        " Max retries exceeded with url: /w.bin"
    )
    after = talk(knowledge, "tgi pod crashloops on start", error)
    assert playbooks_of(after, knowledge)[0].playbook.id == "download-fails"
    assert "Absent" not in said(after)


@pytest.mark.slow
def test_what_is_read_of_an_output_is_said_and_followed(knowledge: KnowledgeBase) -> None:
    stack = (
        'Thread 2211 (active): "MainThread"\n'
        "    all_reduce (torch/distributed/distributed_c10d.py:2501)\n"
        "    train_step (train.py:311)"
    )
    after = talk(knowledge, HANG, stack)
    assert "inside a collective call" in said(after)
    assert after.turns[-1].shows == ("py-spy-all-ranks",)


@pytest.mark.slow
def test_a_bare_number_is_that_of_the_case(knowledge: KnowledgeBase) -> None:
    events = "  Last State: Terminated\n    Reason: Error\n    Exit Code: 137\n"
    after = talk(knowledge, "vllm pod keeps restarting", events, "137 means OOM no?")
    assert "SIGKILL" in said(after)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("what do I tell the network team", "the network"),
        ("存储组要我给什么信息", "存储"),
    ],
)
def test_those_who_run_a_part_get_what_is_known(
    knowledge: KnowledgeBase, text: str, what: str
) -> None:
    after = talk(knowledge, "nccl all_reduce is slow since today on 16 nodes", text)
    assert what in said(after)
    assert "slow since today" in said(after)


@pytest.mark.slow
def test_a_question_beside_what_is_told_is_answered(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, PENDING, "one tenant sends 30k prompts since today. 怎么处理不影响别人")
    assert "如果是" in said(after) or "今晚先跑起来" in said(after)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("docker run -it --rm -v /data:/data pytorch/pytorch:2.4.0 bash", Language.CHINESE),
        ("RuntimeError: The driver on your system is too old", Language.CHINESE),
        ("how do I fix that", Language.ENGLISH),
    ],
)
def test_commands_and_errors_are_in_no_language(text: str, language: Language) -> None:
    assert language_of(text, Language.CHINESE) is language


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("加了之后：docker: Error response from daemon: could not select", "docker: Error"),
        ("from the pod: curl: (28) Failed to connect to x", "curl: (28)"),
        ("ibv_devinfo 显示 No IB devices found", "No IB devices"),
        ("dmesg shows no Xid", ""),
        ("there is no error at all", ""),
    ],
)
def test_the_error_of_a_program_is_no_denial_of_the_user(text: str, quoted: str) -> None:
    assert printed_part(text).startswith(quoted)
    assert bool(printed_part(text)) is bool(quoted)
