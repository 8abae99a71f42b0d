"""Slowness that is told in numbers, and not by a word for it."""

from __future__ import annotations

import pytest

from kb.conversation import Speaker, begin, reply
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.evidence.paces import slowness_in
from kb.log import Log

SLOWER = [
    "steps are 1.9 s rather than 1.2",
    "step time went from 1.2 to 1.9",
    "was 900ms per step before, is 1.6 s now",
    "we got 900 samples/s, now 610",
    "610 samples/s on this image, 900 on the old one normally",
    "12k tokens/s -> 8k",
    "gpu util 35% now, 90% last week",
    "MFU 28% vs 41%",
    "an epoch took 30 min yesterday, now 55",
    "每步从 1.2 秒涨到 1.9 秒",
    "以前一个epoch 30分钟，现在 55 分钟",
    "吞吐从9k掉到6k",
]
NOT_SLOWER = [
    "steps are 1.2 s rather than 1.9",
    "steps are 1.2 s instead of 1.21",
    "we got 610 samples/s, now 900",
    "吞吐从6k涨到9k",
    "the timeout is 1800 s per step instead of 600",
    "it died at step 120 instead of 80",
    "the loss went from 2.1 to 2.9 at step 400",
    "4 nodes instead of 8",
    "driver 550.54 instead of 535.12",
    "step 10 of 500",
]


@pytest.mark.parametrize("text", SLOWER)
def test_two_paces_of_which_the_one_of_now_is_worse_are_slowness(text: str) -> None:
    assert "slow" in slowness_in(text)


@pytest.mark.parametrize("text", NOT_SLOWER)
def test_other_numbers_are_no_slowness(text: str) -> None:
    assert not slowness_in(text)


@pytest.mark.parametrize(
    ("text", "playbook"),
    [
        ("our steps take 1.9 s instead of 1.2 since the weekend", "slow-training"),
        ("每步从 1.2 秒变成 1.9 秒，代码没动", "slow-training"),
        ("busbw 14 GB/s instead of 90 on two nodes", "slow-collectives"),
        ("vllm gave 3100 tok/s last week, now 1700", "throughput-drop-inference"),
    ],
)
def test_a_case_that_is_told_in_numbers_is_known(
    knowledge: KnowledgeBase, text: str, playbook: str
) -> None:
    opened = diagnose(Log.from_text(text), knowledge)
    assert opened.playbooks[0].playbook.id == playbook
    assert opened.next


def test_slowness_in_numbers_is_never_a_success(knowledge: KnowledgeBase) -> None:
    opened = begin(diagnose(Log.from_text("vllm answers late under load"), knowledge))
    after = reply(opened, "we had 3100 tok/s last week, now 1700", knowledge)
    assert after.solved is None
    assert after.turns[-1].speaker is Speaker.TOOL
