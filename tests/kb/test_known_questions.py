"""Questions that a table answers, whatever the case is."""

from __future__ import annotations

import pytest

from kb.answers import known_questions
from kb.conversation.known_questions import (
    MEANT_NEAR,
    may_be_known,
    question_known,
    question_meant,
    question_near,
)
from kb.corpus.base import KnowledgeBase
from kb.evidence.glossary import has_chinese
from tests.kb.talks import said, talk

SHM = (
    "node-a:2143:2561 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left"
    " on device"
)


def test_every_row_is_whole() -> None:
    rows = known_questions()
    wordings = [ask for row in rows for ask in row.asks]
    assert len(rows) > 300
    assert len(set(wordings)) == len(wordings)
    for row in rows:
        assert {*map(has_chinese, row.asks)} == {True, False}, row.asks
        assert (has_chinese(row.en), has_chinese(row.zh)) == (False, True), row.asks
        assert row.source.startswith("https://"), row.asks
        assert row.about, row.asks
        assert [topic.lower() for topic in row.about] == [*row.about], row.asks


def test_each_wording_is_known_as_its_own() -> None:
    found = {
        ask: question_near(ask, ask + " ".join(row.about))
        for row in known_questions()
        for ask in row.asks
    }
    others = [
        ask
        for row in known_questions()
        for ask in row.asks
        if found[ask] is not None and found[ask] != row
    ]
    assert len(others) <= 0.02 * len(found), others


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("num_workers - how much is sane on a 16 core box?", "cores"),
        ("does /dev/shm use count against my memory limit", "cgroup"),
        ("why does one missing rank hang all the others?", "rank"),
        ("v100 能用 bf16 吗", "V100"),
        ("一个 token 的 kv cache 占多大", "层"),
    ],
)
def test_another_wording_is_known(text: str, words: str) -> None:
    question = question_known(text, "")
    assert question is not None
    assert words in f"{question.en} {question.zh}"


@pytest.mark.parametrize(
    "text",
    [
        "it hangs after 300 steps",
        "what should I check first",
        "why do you think so",
        "why not just raise the nccl timeout",  # proposes something
        "can't we simply set num_workers to 0",
        "what is a watchdog",  # the glossary tells
        "side effects?",
        "where do I look",
        "我试过了，没用",
        "先检查什么",
    ],
)
def test_what_asks_nothing_of_the_table_is_none_of_its_questions(text: str) -> None:
    assert not may_be_known(text)


def test_a_question_about_another_system_is_not_answered() -> None:
    """Only the name tells that the default port of one server is not that of another."""
    row = next(one for one in known_questions() if "port" in one.about and "vllm" in one.about)
    ask = next(one for one in row.asks if "vllm" in one)
    assert question_known(ask, "") == row
    other = question_known(ask.replace("vllm", "sglang"), "")
    assert other is None or "sglang" in other.about


def test_a_wording_of_which_numbers_tell_the_topic_needs_the_topic() -> None:
    """“803 和 804 要不要重启” asks about CUDA errors, and not whether to reboot."""
    row = next(one for one in known_questions() if "803 和 804 要不要重启" in one.asks)
    assert question_known("要不要先重启", "多机训练卡住，没有报错") != row
    assert question_known("803 和 804 要不要重启", "cuda error 803") == row


def test_the_answer_changes_no_belief(knowledge: KnowledgeBase) -> None:
    before = talk(knowledge, SHM)
    after = talk(knowledge, SHM, "can i mix a100 and h100 in one job?")
    assert after.matches == before.matches
    assert "NCCL supports it" in said(after) or "slowest" in said(after)
    assert "https://" in said(after)


def test_it_is_answered_in_chinese(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, SHM, "v100 能用 bf16 吗")
    assert has_chinese(said(after))
    assert "来源" in said(after)


def test_what_the_check_or_the_step_says_itself_comes_first(knowledge: KnowledgeBase) -> None:
    after = talk(knowledge, "training hangs, no error", "is py-spy safe on a live process?")
    assert "[py-spy-dump]" in said(after)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("why would the scheduler pile every actor onto a single machine", "pack"),
        ("those /dev/shm settings, does the memory count towards what the pod may use", "cgroup"),
        ("is it fine to leave the peer to peer switch off for good", "NVLink"),
    ],
)
def test_a_question_in_other_words_finds_its_row(
    asked: str, words: str, knowledge: KnowledgeBase
) -> None:
    case = "ray actors on kubernetes, NCCL_P2P_DISABLE=1 is set, /dev/shm is 64M"
    found, likeness = question_meant([asked], case, knowledge)
    assert found is not None
    assert words in found.en
    assert likeness > 0.5


def test_a_question_of_another_topic_finds_none(knowledge: KnowledgeBase) -> None:
    found, likeness = question_meant(
        ["where can I buy good coffee near the office"], "lustre is slow", knowledge
    )
    assert found is None or likeness < MEANT_NEAR


def test_what_is_asked_beside_a_success_is_answered(knowledge: KnowledgeBase) -> None:
    asked = "why does one missing rank hang all the others?"
    after = talk(knowledge, SHM, f"it works now, I made /dev/shm larger. {asked}")
    assert after.solved is not None
    assert "rank" in said(after).partition("\n")[2]
