"""Requests by a turn of phrase, whatever else is in the message, and what is answered to them."""

from __future__ import annotations

import re

import pytest

from kb.conversation import ReplyAct, reply
from kb.conversation.asked import asked_in, asked_rows
from kb.conversation.bit_masks import bit_masks, number_asked, set_bits
from kb.conversation.known_commands import (
    CommandWords,
    KnownCommand,
    command_asked,
    known_commands,
)
from kb.conversation.suspects import suspect_named
from kb.corpus.base import KnowledgeBase
from kb.evidence.glossary import has_chinese
from kb.verdict import Verdict
from tests.kb.talks import said, talk

HANG = "my training hangs after some hours on 16 nodes, no error"
SHM = (
    "node-a:2143:2561 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left"
    " on device"
)
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
THROTTLED = "gpu 3 clocks_throttle_reasons.active 0x0000000000000088"


@pytest.mark.parametrize("row", asked_rows(), ids=lambda row: row.asks)
def test_the_examples_of_a_row_ask_for_it_and_the_others_do_not(row: object) -> None:
    for text in row.examples:  # type: ignore[attr-defined]
        assert asked_in(text) is row.asks, text  # type: ignore[attr-defined]
    for text in row.others:  # type: ignore[attr-defined]
        assert asked_in(text) is not row.asks, text  # type: ignore[attr-defined]


# A part that is suspected.


@pytest.mark.parametrize(
    ("guess", "name"),
    [
        ("could this be the cable?", "network"),
        ("is it the driver?", "driver"),
        ("so storage then?", "storage"),
        ("wasn't me, right?", "code"),
        ("会不会是交换机坏了", "network"),
    ],
)
def test_nothing_is_made_up_for_a_part_that_is_suspected(
    knowledge: KnowledgeBase, guess: str, name: str
) -> None:
    """A known cause is named as possible, and nothing as seen."""
    before = talk(knowledge, HANG)
    after = talk(knowledge, HANG, guess)
    assert after.matches == before.matches
    suspect = suspect_named(guess)
    assert suspect
    assert name in suspect.en
    assert re.search(r"rules it out|not ruled out|没有排除", said(after))
    assert not said(after).startswith(("Yes", "是的"))


def test_what_is_known_is_not_given_up_for_a_guess(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, LOST, "could it be the driver?")
    assert "points to the driver" in said(after)
    assert "Nothing" in said(after)
    assert "xid79-gpu-fallen-off-bus" in said(after)


def test_the_part_that_the_record_names_is_affirmed_with_its_line(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, SHM, "is it the memory?")
    assert after.verdict is Verdict.MATCH
    assert "nccl-shm-too-small-container" in said(after)
    assert "line 1" in said(after)


def test_that_is_what_was_told_before(knowledge: KnowledgeBase) -> None:
    slow = "training is 30% slower than last week on 8 nodes"
    after = talk(knowledge, slow, "the admins say there was a kernel update", "could that be it")
    assert "driver" in said(after)


def test_a_rank_is_quoted_where_the_log_names_it(knowledge: KnowledgeBase) -> None:
    error = "rank 5: RuntimeError: CUDA error: an illegal memory access was encountered"
    assert "line 1" in said(talk(knowledge, error, "is it rank 5?"))
    assert "names rank 7" in said(talk(knowledge, error, "is it rank 7?"))


# A number whose bits are asked for.


@pytest.mark.parametrize("mask", bit_masks(), ids=lambda mask: mask.named[:12])
def test_each_bit_has_its_meaning_in_both_languages(mask: object) -> None:
    assert mask.bits.keys() == mask.bits_zh.keys()  # type: ignore[attr-defined]
    assert set(mask.harmless) <= mask.bits.keys()  # type: ignore[attr-defined]


def test_the_bits_of_a_mask_are_explained_one_by_one(knowledge: KnowledgeBase) -> None:
    text = said(talk(knowledge, THROTTLED, "what is 0x88"))
    assert "HW Slowdown" in text
    assert "HW Power Brake" in text
    assert "Thermal" not in text
    assert "硬件" in said(talk(knowledge, THROTTLED, "0x48 啥意思"))
    assert "HW Slowdown" in said(talk(knowledge, THROTTLED, "what's bit 3"))


def test_a_mask_that_nobody_named_is_only_supposed(knowledge: KnowledgeBase) -> None:
    assert "If it was printed as" in said(talk(knowledge, HANG, "what does 0x48 mean"))
    text = said(talk(knowledge, HANG, "what does 0x500000 mean?"))
    assert "depends on what printed it" in text


def test_a_tainted_kernel_is_explained_from_its_decimal_number(knowledge: KnowledgeBase) -> None:
    text = said(talk(knowledge, HANG, "kernel tainted 4097?"))
    assert "proprietary" in text
    assert "None of these is a fault" in text


@pytest.mark.parametrize(
    ("text", "value"), [("0x24 是什么", 0x24), ("bit 5?", 32), ("tainted 12289", 12289)]
)
def test_a_number_is_read_as_it_is_written(text: str, value: int) -> None:
    assert number_asked(text) == value
    assert sum(1 << bit for bit in set_bits(value)) == value


# The command for all hosts.


@pytest.mark.parametrize(
    ("opening", "asked", "program"),
    [
        (f"{HANG}, slurm", "can I run that on all 32 nodes in one go?", "srun --jobid"),
        (f"{HANG}, on kubernetes", "how do I run that on all pods at once", "kubectl exec"),
        (HANG, "how do I run that across 16 hosts in parallel", "clush"),
        (HANG, "what would that be with pdsh", "pdsh -w NODES"),
        (HANG, "怎么在所有节点上跑这个", "clush"),
    ],
)
def test_the_command_is_written_for_all_hosts_and_never_run(
    knowledge: KnowledgeBase, opening: str, asked: str, program: str
) -> None:
    text = said(talk(knowledge, opening, asked))
    assert program in text
    assert re.search(r"do not run it|不执行", text)
    assert "py-spy" in text


def test_a_step_that_changes_something_is_not_taken_everywhere(knowledge: KnowledgeBase) -> None:
    text = said(talk(knowledge, SHM, "show me step 2", "can we do step 2 on all nodes at once?"))
    assert "Not in one go" in text


# What was shown, once more, shorter; where the logs are; whom to call.


def test_the_last_flag_is_that_of_the_last_command(knowledge: KnowledgeBase) -> None:
    assert "`ls --help`" in said(talk(knowledge, SHM, "what is that last flag"))


def test_that_one_is_the_check_that_was_shown(knowledge: KnowledgeBase) -> None:
    assert "[py-spy-dump]" in said(talk(knowledge, HANG, "what does that one do"))


def test_the_last_reply_is_said_again(knowledge: KnowledgeBase) -> None:
    first = talk(knowledge, HANG, "is it safe?")
    assert said(reply(first, "say that again please", knowledge)) == said(first)
    assert re.search("[一-龥]{4}", said(reply(first, "用中文说", knowledge)))


def test_in_brief_is_what_leads_and_the_command(knowledge: KnowledgeBase) -> None:
    text = said(talk(knowledge, HANG, "it's 3am, be brief"))
    assert "py-spy dump" in text
    assert text.count("\n") <= 5


@pytest.mark.parametrize(
    ("opening", "where"), [(f"{HANG}, slurm", "scontrol show job"), (f"{HANG} in pods", "kubectl")]
)
def test_the_logs_are_where_the_scheduler_puts_them(
    knowledge: KnowledgeBase, opening: str, where: str
) -> None:
    assert where in said(talk(knowledge, opening, "where are the logs?"))


def test_whose_business_it_is_follows_from_the_cause(knowledge: KnowledgeBase) -> None:
    assert "vendor" in said(talk(knowledge, LOST, "who should I call?"))
    assert "not known" in said(talk(knowledge, HANG, "who should I call?"))


# What is over, and what is not.


def test_what_goes_well_so_far_is_not_solved(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, SHM, "did step 2, ran 200 steps so far so good")
    assert after.solved is None
    assert "open" in said(after)


def test_a_case_that_comes_back_is_open_again(knowledge: KnowledgeBase) -> None:
    solved = talk(knowledge, SHM, "step 2 fixed it")
    assert solved.solved
    again = reply(solved, "and it's back", knowledge)
    assert again.solved is None
    assert again.turns[-1].shows


def test_nobody_is_told_a_cause_that_nothing_proves(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, "everything is odd since the deploy", "nvm, fixed itself")
    assert after.verdict is not Verdict.MATCH
    assert after.solved
    assert not after.solved.record
    assert "comes back" in said(after)


def test_undo_takes_back_a_case_that_took_the_place_of_another(knowledge: KnowledgeBase) -> None:
    first = talk(knowledge, HANG, "we use FSDP")
    other = reply(first, "start over. " + SHM, knowledge)
    assert other.matches[0].incident.id == "nccl-shm-too-small-container"
    back = reply(other, "undo", knowledge)
    while back.diagnosis != first.diagnosis:  # forgetting and telling anew are two
        back = reply(back, "undo", knowledge)
    assert back.matches == first.matches
    assert back.statements == first.statements
    assert back.turns[-1].act is ReplyAct.UPDATE


def test_a_correction_is_said_back(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, HANG, "it runs with gloo", "no wait, sorry, I meant nccl, not gloo")
    assert "Corrected" in said(after)


# A command of the user's own.

GSP = (
    "NVRM: Xid (PCI:0000:3b:00): 119, pid=1234, name=python, Timeout after 6s of waiting for RPC"
    " response from GPU0 GSP! Expected function 76"
)
EACH_COMMAND = pytest.mark.parametrize(
    "command", known_commands(), ids=lambda command: command.name
)


@EACH_COMMAND
def test_the_examples_of_a_command_ask_about_it_and_the_others_do_not(
    command: KnownCommand,
) -> None:
    for text in command.examples:
        assert command_asked(text) is command, text
    for text in command.others:
        assert command_asked(text) is not command, text


@EACH_COMMAND
def test_a_command_is_described_in_both_languages(command: KnownCommand) -> None:
    english, chinese = command.en, command.zh
    assert bool(english.first) == bool(chinese.first)
    for words, is_chinese in ((english, False), (chinese, True)):
        texts = [words.when, words.does, words.lost, words.undo, *filter(None, [words.first])]
        assert all(has_chinese(text) == is_chinese for text in texts)
        assert not words.when.endswith((".", "。"))
        assert all(text.endswith((".", "。")) for text in texts[1:])
    assert any(has_chinese(text) for text in command.examples)
    assert command.source.startswith("https://")


def test_each_command_is_answered_in_the_language_of_the_question(
    knowledge: KnowledgeBase,
) -> None:
    """And no belief changes for it."""
    start = talk(knowledge, HANG)
    for command in known_commands():
        for text in command.examples:
            after = reply(start, text, knowledge)
            words: CommandWords = command.zh if has_chinese(text) else command.en
            assert words.does in said(after), text
            assert words.when in said(after).split("\n", 1)[0], text
            assert after.matches == start.matches, text


def test_leave_comes_first_then_what_is_lost_and_the_safer_thing(knowledge: KnowledgeBase) -> None:
    lines = said(talk(knowledge, HANG, "can i nvidia-smi -r")).split("\n")
    assert "only if you have root" in lines[0]
    assert "memory of that GPU is lost" in lines[1]
    assert "fuser -v" in lines[2]
    assert "docs.nvidia.com" in lines[3]


@pytest.mark.parametrize(
    ("question", "leave"),
    [
        ("is it ok to scontrol requeue it", "only if"),
        ("systemctl restart nvidia-fabricmanager safe?", "only if"),
        ("kubectl delete pod X --force?", "better not, unless"),
        ("docker restart?", "only if"),
        ("ipcrm -a", "better not, unless"),
        ("nvidia-smi -pm 1", "yes, if"),
        ("scontrol update state=resume, should we?", "only if"),
        ("fuser -k /dev/nvidia*", "better not, unless"),
        ("ray stop --force, is that safe?", "only if"),
        ("sudo umount -l /data?", "only if"),
        ("直接 kill -9 行吗", "只有"),
        ("echo 3 > /proc/sys/vm/drop_caches，会不会丢数据", "可以，前提"),
    ],
)
def test_a_command_without_a_case_is_answered_too(
    knowledge: KnowledgeBase, question: str, leave: str
) -> None:
    after = talk(knowledge, "", question)
    assert leave in said(after).split("\n", 1)[0]
    assert said(after).count(leave) == 1


@pytest.mark.parametrize(
    "told",
    [
        "I ran nvidia-smi -r, no change",
        "we already did scontrol requeue, same hang",
        "tried kill -9 but it is still there",
        "rmmod nvidia_uvm says module is in use",
        "已经重启过 fabricmanager，没用",
        "kill -9 试过了没反应",
        "how do I nvidia-smi -r on all nodes",
        "why did kill -9 not work",
    ],
)
def test_what_was_run_is_no_question_about_it(told: str) -> None:
    assert command_asked(told) is None


def test_a_deed_stays_what_was_tried(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, LOST, "I ran nvidia-smi -r, no change")
    assert "only if" not in said(after)


def test_the_step_of_the_record_that_runs_the_command_is_named(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, GSP, "is it ok to run nvidia-smi -r now?")
    assert "only if you have root" in said(after)
    assert "[xid119-gsp-rpc-timeout]" in said(after)


def test_a_step_that_the_question_names_keeps_its_answer(knowledge: KnowledgeBase) -> None:
    incident = talk(knowledge, GSP).matches[0].incident
    steps = enumerate(incident.body.fix, 1)
    [number] = [number for number, step in steps if "gpu-reset" in (step.command or "")]
    after = talk(knowledge, GSP, f"can I run nvidia-smi --gpu-reset as in step {number}?")
    assert "only if you have root" not in said(after)


def test_a_step_that_only_speaks_of_the_program_does_not_answer_for_it(
    knowledge: KnowledgeBase,
) -> None:
    failed = "RuntimeError: CUDA error 802: system not yet initialized on our HGX H100 box"
    after = talk(knowledge, failed, "and restarting fabricmanager, is that safe while jobs run?")
    assert "A100 NVSwitch" in said(after)


def test_a_conversation_goes_on_behind_such_a_question(knowledge: KnowledgeBase) -> None:
    asked = talk(knowledge, HANG, "can we restart fabric manager while jobs run")
    assert "A100 NVSwitch" in said(asked)
    after = reply(asked, "ok, what should I check first?", knowledge)
    assert "```" in said(after)
