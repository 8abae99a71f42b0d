"""Settings that people ask about and propose."""

from __future__ import annotations

from collections import Counter

import pytest

from kb.conversation.acts import Act
from kb.conversation.known_options import KnownOption, known_options, option_asked, options_in
from kb.conversation.message import parts_of
from kb.corpus.base import KnowledgeBase
from tests.kb.talks import said, talk

OPENING = "NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129"


def test_a_name_is_of_one_option_unless_their_programs_differ() -> None:
    named = Counter(
        (name.lower(), option.program) for option in known_options() for name in option.names
    )
    assert [name for name, count in named.items() if count > 1] == []


@pytest.mark.parametrize("option", known_options(), ids=lambda option: option.name)
def test_every_option_is_found_by_each_of_its_names(option: KnownOption) -> None:
    for name in option.names:
        found = options_in(f"should i set {name} tonight?", option.program)
        assert any(name.lower() in map(str.lower, one.names) for one in found), name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("could i just set NCCL_IB_TIMEOUT=22 tonight?", "NCCL_IB_TIMEOUT"),
        ("能不能先把 NCCL_IB_TIMEOUT 调大顶一晚", "NCCL_IB_TIMEOUT"),
        ("what does --enforce-eager do", "--enforce-eager"),
        ("有人建议把 swap_space 调大，有用吗", "--swap-space"),
        ("maybe we set CUDA_LAUNCH_BLOCKING=1 first", "CUDA_LAUNCH_BLOCKING"),
    ],
)
def test_a_setting_is_asked_about_or_proposed(text: str, name: str) -> None:
    option = option_asked(text)
    assert option
    assert option.name == name


def test_of_one_name_the_option_of_the_program_that_is_named() -> None:
    asked = "should i set --attention-backend"
    programs = [options_in(f"{asked} {where}")[0].program for where in ("", "in megatron")]
    assert programs == ["", "megatron"]


@pytest.mark.parametrize(
    "text",
    ["we already set NCCL_IB_TIMEOUT=22", "NCCL_IB_TIMEOUT=22 is set", "export NCCL_IB_TIMEOUT=22"],
)
def test_who_tells_that_it_is_set_asks_nothing(text: str) -> None:
    assert option_asked(text) is None


def test_a_proposal_is_answered_with_what_it_cures_and_where_it_is_set(
    knowledge: KnowledgeBase,
) -> None:
    answer = said(talk(knowledge, OPENING, "could i just set NCCL_IB_TIMEOUT=22 tonight?"))
    assert "It cures no" in answer or "no fix" in answer or "not" in answer
    assert "on every node" in answer
    assert "a running job does not see it" in answer


def test_it_is_the_setting_that_was_spoken_of(knowledge: KnowledgeBase) -> None:
    asked = ["what does NCCL_CROSS_NIC do", "is it enough to set it on one node only?"]
    answer = said(talk(knowledge, OPENING, *asked))
    assert answer.startswith("Set it the same for all ranks, on every node of the job")


def test_a_proposal_is_no_success_and_takes_nothing_back(knowledge: KnowledgeBase) -> None:
    for text in ("要不先把超时调到 2 小时，今晚不改代码", "去掉 if 存下来了，但目录里少了两个文件"):
        acts = {part.act for part in parts_of(text, knowledge)}
        assert not acts & {Act.SUCCESS, Act.UNDO}
