"""A conversation survives whatever is said in it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kb.conversation import Conversation, Speaker, begin, reply
from kb.conversation.acts import MAX_TALK_CHARACTERS
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log
from kb.service.service import Service
from kb.settings import Settings

pytestmark = pytest.mark.slow

SHM = "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Zk2 (size 9637888)"

_PREPOSITIONS = "with on under using in without of for to from at by"
_BEGINNINGS = """\
also|same|still|also happens|it is|it's|not|no|never|don't|I tried|already|I already tried|tried|\
step|step 0|step 99 done|step 1 done|why|why not|what about|fix of|show me|number|no.|the|\
we run|we use|we have|only|version|NCCL 2.|torch ="""
_ALONE = """
0 -1 1 2 6 99 007 1.5 1e9 ² ① １ 一 五 NaN None true null / // ? ?? ! . .. ... , ;; - -- # %s {0}
${x} `id` ' " ( ) (( [ ] [[ [] [x] [1] { } < > <b> &amp; | || * ** _ ~ ^ @ : :// = == not no nope
yes y n only also with on in under the a of it but why what fix next undo help first second nodes
node host both 2nodes GPUs NCCL nccl- torch 2.1.1.1.1 上 也 也会 上也会 同样是 没 没有 不 不是 无 我
我们 试过 改过 已经 第步 第1步 第一个 但 但是 不过 为什么 为什么不是 机 机器 单机 两台 。 “” 「」
😀 é ß İ ﷺ 𝕏 नमस्ते שלום
"""
_WHOLE = (
    "",
    " ",
    "\n",
    "\r\n\t",
    "\0",
    "\x1b[2J",
    "\x07\u202e\ufeff",
    "\ud800",
    "why not \ud800",
    "\x00\x01\x02\xff\xfe",
    "a\nb",
    "help\nhelp",
    "1\n2",
    "why not [",
    "what about (?P<",
    "fix of \\",
    "also with ,",
    "also with but",
    "not",
    "no but no but no",
    ", , ,",
    "but",
    "我说" + "过你" * 200 + "x",
    "不是" * 100,
    "9" * 900,
    "1" * 5000,
    "9" * 300 + " nodes",
    "NCCL " + "1." * 300 + "1",
    "rank " * 150,
    "not " * 15_000,
    "also with " * 6_000,
    "没" * 30_000,
    "node " * 10_000,
    "a" * 100_000,
    "(" * 50_000,
)
ODD = (
    *_WHOLE,
    *_ALONE.split(),
    *_PREPOSITIONS.split(),
    *(f"{first}{end}" for first in _BEGINNINGS.split("|") for end in ("", " with", " but", " 1")),
    *(f"{first} {word}" for first in ("also", "same", "still") for word in _PREPOSITIONS.split()),
)


@pytest.fixture(scope="module")
def opened(knowledge: KnowledgeBase) -> Conversation:
    return begin(diagnose(Log.from_text(SHM), knowledge))


def test_there_are_many_odd_turns() -> None:
    assert len(set(ODD)) >= 200


@pytest.mark.parametrize("text", dict.fromkeys(ODD), ids=lambda text: repr(text[:20]))
def test_an_odd_turn_is_answered(opened: Conversation, knowledge: KnowledgeBase, text: str) -> None:
    after = reply(opened, text, knowledge)
    new = after.turns[len(opened.turns) :]
    assert [turn.speaker for turn in new] in ([], [Speaker.USER, Speaker.TOOL])
    assert all(turn.text.strip() for turn in new)
    assert 0 <= sum(match.confidence for match in after.matches) <= 1.01


def test_odd_turns_one_after_the_other_keep_the_conversation_alive(
    opened: Conversation, knowledge: KnowledgeBase
) -> None:
    conversation = opened
    for text in dict.fromkeys(ODD):
        if len(text) <= MAX_TALK_CHARACTERS:
            conversation = reply(conversation, text, knowledge)
    after = reply(conversation, "what did I tell you?", knowledge)
    assert after.turns[-1].speaker is Speaker.TOOL


def test_what_is_longer_than_people_type_is_searched_and_not_taken_for_words(
    opened: Conversation, knowledge: KnowledgeBase
) -> None:
    said = reply(opened, "why not 2", knowledge)
    pasted = reply(opened, f"why not {'x' * MAX_TALK_CHARACTERS}\n{SHM}", knowledge)
    assert not said.statements
    assert [statement.question for statement in pasted.statements] == [None]
    assert "nccl-shm-too-small-container" in pasted.turns[-1].text


def test_a_turn_that_fails_is_told_and_the_conversation_goes_on(
    opened: Conversation, built_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_CACHE", str(built_cache))
    broken = msgspec.structs.replace(opened, statements=(None,))
    with Service(Settings()) as service:
        failed = service.reply(broken, "only with 2 nodes").result()
        whole = msgspec.structs.replace(failed, statements=())
        after = service.reply(whole, "only with 2 nodes").result()
    assert "This message could not be read, so nothing changes" in failed.turns[-1].text
    assert len(after.turns) == len(opened.turns) + 4
    assert after.statements
