"""What is said of a case that is over: what helped, and who found it."""

from __future__ import annotations

import pytest

from kb.corpus.base import KnowledgeBase
from tests.kb.talks import said, talk

SHM = (
    "node-a:2143:2561 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left"
    " on device"
)
SHM_RECORD = "nccl-shm-too-small-container"


@pytest.mark.parametrize(
    "told",
    [
        "we gave the second server the variable MY_BASE_PORT=61000 and now it works",
        "the storage team found a broken switch in their rack, replaced it, everything works now",
        "给第二个实例改了 MY_BASE_PORT 之后好了，说明不是你说的原因",
    ],
)
def test_a_remedy_of_the_users_own_credits_no_step(knowledge: KnowledgeBase, told: str) -> None:
    after = talk(knowledge, SHM, told)
    assert after.solved is not None
    assert (after.solved.record, after.solved.step) == ("", 0)
    assert told in said(after)
    assert told in said(talk(knowledge, SHM, told, "summarise"))


@pytest.mark.parametrize(
    ("told", "step"),
    [
        ("step 2 did it, thanks", 2),
        ("it works now, we started the container with --shm-size=16g", 2),
    ],
)
def test_a_step_that_is_told_of_is_credited(knowledge: KnowledgeBase, told: str, step: int) -> None:
    solved = talk(knowledge, SHM, told).solved
    assert solved is not None
    assert (solved.record, solved.step) == (SHM_RECORD, step)


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("it works now, write me a summary for the ticket", "State: solved"),
        ("起来了，谢谢！帮我总结下", "状态：已"),
        ("换掉那张卡之后跑了两天没有nan了，总结一下", "状态：已解决"),
        ("works, the host stays at 20G. one line for the log please", "State: solved"),
    ],
)
def test_a_note_that_is_asked_for_with_the_success_says_it(
    knowledge: KnowledgeBase, told: str, state: str
) -> None:
    assert state in said(talk(knowledge, SHM, told))


def test_how_well_it_goes_now_is_no_remedy(knowledge: KnowledgeBase) -> None:
    told = "it works, throughput is at 41k tok/s and memory at 62 GB"
    assert "41k" not in said(talk(knowledge, "training hangs, no error, 2 nodes", told))


def test_the_words_of_a_remark_that_no_record_knows_are_not_said_back(
    knowledge: KnowledgeBase,
) -> None:
    answer = said(talk(knowledge, SHM, "funny, the fans of that box are rather loud tonight"))
    assert "`funny`" not in answer
    assert "`loud`" not in answer


@pytest.mark.parametrize(
    "told", ["we start it with --no-load-optim", "there is no metrics endpoint yet"]
)
def test_a_flag_and_what_is_not_there_yet_are_no_absence(
    knowledge: KnowledgeBase, told: str
) -> None:
    assert "Absent" not in said(talk(knowledge, SHM, told))


@pytest.mark.parametrize("told", ["no py-spy on that box, what else?", "这台机器没装py-spy"])
def test_a_tool_that_is_missing_sets_its_check_aside(knowledge: KnowledgeBase, told: str) -> None:
    after = talk(knowledge, "training hangs, no error, 2 nodes", told)
    assert "py-spy-dump" in said(after).split("\n")[0]
    assert "py-spy dump --pid" not in said(after)


def test_a_question_is_told_with_its_answers(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, "NCCL timeout in all-gather, 2 nodes", "summarise")
    question = after.question
    assert question is not None
    assert question.text.endswith("use?")
    assert f"{question.text} {', '.join(question.answers)}" in said(after)


def test_a_remedy_that_took_effect_and_did_not_help_lowers_its_record(
    knowledge: KnowledgeBase,
) -> None:
    opening = "ibv_reg_mr failed with error Cannot allocate memory in podman"
    name = "ulimit-memlock-ibv-cannot-allocate"
    before = talk(knowledge, opening)
    after = talk(knowledge, opening, "ulimit -l in the container is unlimited now but same error")
    assert before.matches[0].incident.id == name
    shares = [
        next(m.confidence for m in one.matches if m.incident.id == name) for one in (before, after)
    ]
    assert shares[1] < shares[0]


@pytest.mark.parametrize("told", ["all good again since noon", "跑了一晚上没再出现，谢谢"])
def test_a_step_that_did_not_help_gets_no_credit(knowledge: KnowledgeBase, told: str) -> None:
    after = talk(knowledge, SHM, "step 2 did not help", "what is posix_fallocate", told)
    assert after.solved is not None
    assert after.solved.step == 0


@pytest.mark.parametrize(
    "told",
    [
        "replaced the riser, 14k steps since monday without an error",
        "mounted 64G on it, loads in 40 s instead of 9 min",
        "改成 64G 之后压测两小时没再爆",
        "rebooting the node fixed it",
    ],
)
def test_the_result_alone_tells_that_it_is_over(knowledge: KnowledgeBase, told: str) -> None:
    assert talk(knowledge, SHM, told).solved is not None


@pytest.mark.parametrize(
    "told",
    [
        "hope this is it, restarting the pods now",
        "that fixed the first error, now it dies in the first backward",
        "with shared memory off it trains, at a third of the speed",
        "升级前一直好好的，升级完就不行了",
    ],
)
def test_a_hope_or_half_a_success_ends_nothing(knowledge: KnowledgeBase, told: str) -> None:
    assert talk(knowledge, SHM, told).solved is None
