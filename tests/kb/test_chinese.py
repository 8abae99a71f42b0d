"""The Chinese of the records: complete where it is promised, true to the English, and shown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from benchmarks.chinese import texts_of
from kb.conversation import Conversation, begin, reply
from kb.conversation import language as spoken
from kb.conversation.language import Language, digest, in_language
from kb.conversation.next_step import task_of
from kb.conversation.speech import describe_step, first_sentence
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck, diagnose
from kb.evidence.glossary import has_chinese
from kb.guides import Record
from kb.incident import Incident
from kb.log import Log
from tests.conftest import FOUNDING
from tests.kb.talks import said

pytestmark = pytest.mark.slow

FOLDER = Path("kb/conversation/chinese")
CHINESE = re.compile(r"[\u3400-\u9fff]")
CODE = re.compile(r"`[^`]+`")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)*")
GPT_FAST = (
    "gpt-fast 用 ENABLE_INTRA_NODE_COMM=1 做 speculative decoding，跑几个样本之后卡死，GPU 100%"
)
MEGATRON = (
    "Megatron-LM mixtral 文本生成 server 启动后 rank 1-3 退出，第一个请求就失败："
    "process group has NOT been destroyed before we destruct ProcessGroupNCCL"
)
HANG = "多机训练跑几个小时就卡住，没有报错"

Entry = Mapping[str, tuple[str, str]]
"""Digest and Chinese text by the name of the text."""


def entries(kind: str) -> Mapping[str, Entry]:
    return msgspec.json.decode((FOLDER / f"{kind}.json").read_bytes(), type=dict[str, Entry])


MAX_SHARE_WITHOUT = 0.05
KINDS = ("incidents", "playbooks", "checks")


@pytest.fixture(scope="module")
def records(knowledge: KnowledgeBase) -> Mapping[str, Record]:
    guides = knowledge.guides.by_id.values()
    return {one.id: one for one in (*knowledge.incidents(), *guides)}


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_is_that_of_the_present_english(records: Mapping[str, Record], kind: str) -> None:
    changed = {
        f"{name}: {key}": digest(english[key])
        for name, entry in entries(kind).items()
        for english in [texts_of(records[name])]
        for key, (known, _chinese) in entry.items()
        if known != digest(english[key])
    }
    assert not changed, f"translate anew, or leave the line out: {changed}"


@pytest.mark.parametrize("kind", KINDS)
def test_code_and_numbers_are_those_of_the_record(records: Mapping[str, Record], kind: str) -> None:
    for name, entry in entries(kind).items():
        english = texts_of(records[name])
        for key, (_digest, chinese) in entry.items():
            where = f"{name}: {key}"
            assert set(CODE.findall(chinese)) == set(CODE.findall(english[key])), where
            assert set(NUMBER.findall(chinese)) >= set(NUMBER.findall(english[key])), where


def test_incidents_have_all_their_steps_in_chinese(records: Mapping[str, Record]) -> None:
    """But for some new ones: who contributes a record need not write Chinese."""
    told = entries("incidents")
    incidents = [record for record in records.values() if isinstance(record, Incident)]
    lacking = [one.id for one in incidents if _needed(one) - told.get(one.id, {}).keys()]
    assert len(lacking) <= MAX_SHARE_WITHOUT * len(incidents), lacking
    assert not set(FOUNDING) & set(lacking)


def _needed(record: Incident) -> set[str]:
    return {key for key in texts_of(record) if not key.startswith("prevention")}


@pytest.mark.parametrize("kind", ["playbooks", "checks"])
def test_every_guide_has_a_chinese_title(records: Mapping[str, Record], kind: str) -> None:
    guides = {record.id for record in records.values() if f"{record.kind}s" == kind}
    titled = {name for name, entry in entries(kind).items() if "title" in entry}
    assert guides == titled


def test_one_english_text_has_one_chinese_text() -> None:
    said = defaultdict(set)
    for kind in KINDS:
        for entry in entries(kind).values():
            for key, chinese in entry.values():
                said[key].add(chinese)
    assert not [texts for texts in said.values() if len(texts) > 1]


@pytest.mark.parametrize("text", [GPT_FAST, MEGATRON])
def test_a_remedy_is_shown_in_chinese_with_the_commands_of_the_record(
    knowledge: KnowledgeBase, text: str
) -> None:
    conversation = begin(diagnose(Log.from_text(text), knowledge))
    incident = conversation.matches[0].incident
    assert incident.id in FOUNDING
    entry = entries("incidents")[incident.id]
    title, first, why = (entry[key][1] for key in ("title", "fix-1", "why-1"))
    for shown in (said(conversation), asked(conversation, "先做什么", knowledge)):
        assert f"1. {first}\n```sh\n{incident.body.fix[0].command}\n```\n{why}" in shown
    assert title in said(conversation)
    assert entry["cause"][1] in asked(conversation, "为什么", knowledge)
    whole = asked(conversation, "完整的修复步骤", knowledge)
    for number, step in enumerate(incident.body.fix, 1):
        assert f"{number}. {entry[f'fix-{number}'][1]}" in whole
        assert step.command is None or step.command in whole
    assert entry["verify"][1] in whole


def test_a_symptom_its_check_and_its_causes_are_told_in_chinese(knowledge: KnowledgeBase) -> None:
    conversation = begin(diagnose(Log.from_text(HANG), knowledge))
    task = task_of(conversation, knowledge)
    assert isinstance(task, NextCheck)
    playbook = entries("playbooks")["hang-mid-training"]
    opening = said(conversation)
    assert playbook["title"][1] in opening
    assert playbook["secure-1"][1] in opening
    assert f"{entries('checks')[task.check.id]['title'][1]} [{task.check.id}]" in opening
    assert task.command.run in opening
    assert playbook["cause-one-rank-busy"][1].rstrip("。") in asked(
        conversation, "为什么", knowledge
    )
    assert playbook["remedy-one-rank-busy"][1] in asked(conversation, "怎么修", knowledge)


def test_a_pasted_output_is_read_in_chinese_with_its_values(knowledge: KnowledgeBase) -> None:
    start = begin(diagnose(Log.from_text(HANG), knowledge))
    port = "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling"
    known = entries("checks")["ibstat"]
    shown = asked(start, f"$ ibstat\n{port}", knowledge)
    assert known["finding-down-polling-no-signal"][1].removesuffix("。") in shown
    assert "（Physical state: Polling）" in shown
    assert known["suggests-down-polling-no-signal"][1] in shown


def test_what_comes_after_and_what_leads_is_told_in_chinese(knowledge: KnowledgeBase) -> None:
    conversation = begin(diagnose(Log.from_text(GPT_FAST), knowledge))
    entry = entries("incidents")[conversation.matches[0].incident.id]
    ahead = asked(conversation, "接下来做什么", knowledge).splitlines()[-1]
    assert f"2. {entry['fix-2'][1]} 3. {entry['fix-3'][1]}" in ahead
    plain = asked(conversation, "用大白话说说", knowledge)
    assert entry["title"][1] in plain
    assert entry["cause"][1] in plain
    prevented = asked(conversation, "怎么避免以后再发生", knowledge)
    assert entry["prevention-whole"][1] in prevented


def test_a_passage_of_a_page_and_a_cause_with_its_sign_are_told_in_chinese(
    knowledge: KnowledgeBase,
) -> None:
    start = begin(diagnose(Log.from_text(HANG), knowledge))
    playbook = entries("playbooks")["hang-mid-training"]
    plain = asked(start, "用大白话说说", knowledge)
    cause = playbook["cause-one-rank-busy"][1].rstrip("。")
    assert f"{cause}（{playbook['tell-one-rank-busy'][1]}）" in plain
    passage = asked(start, "py-spy 看到主线程在 DataLoader 里等", knowledge)
    findings = entries("checks")["py-spy-dump"]
    key = next(key for key in findings if key.startswith("finding") and "dataloader" in key)
    assert findings[key][1] in passage


def test_the_first_sentence_of_a_text_is_that_of_its_chinese(
    records: Mapping[str, Record],
) -> None:
    record = records[FOUNDING[0]]
    assert isinstance(record, Incident)
    whole = in_language(texts_of(record)["why-1"], Language.CHINESE)
    first = first_sentence(record.body.fix[0].why or "", Language.CHINESE)
    assert first == whole[: whole.index("。") + 1] != whole


def test_a_step_whose_english_was_changed_is_shown_in_english(
    records: Mapping[str, Record],
) -> None:
    record = records[FOUNDING[0]]
    assert isinstance(record, Incident)
    step = record.body.fix[0]
    changed = msgspec.structs.replace(step, text=step.text.replace("live", "living"))
    assert CHINESE.search(in_language(step.text, Language.CHINESE))
    shown = describe_step(record.id, 1, changed, Language.CHINESE)
    assert "living processes" in shown
    assert step.command is not None
    assert step.command in shown


def test_a_text_is_known_however_its_lines_are_broken(records: Mapping[str, Record]) -> None:
    text = texts_of(records[FOUNDING[0]])["why-1"]
    broken = text.replace(" ", "\n", 3)
    assert in_language(broken, Language.CHINESE) == in_language(text, Language.CHINESE) != text


def test_who_writes_english_reads_english_and_waits_for_no_chinese(
    knowledge: KnowledgeBase,
) -> None:
    spoken._of_records.cache_clear()
    conversation = begin(diagnose(Log.from_text("training hangs after hours"), knowledge))
    asked(conversation, "what should I check first?", knowledge)
    assert not CHINESE.search(said(conversation))
    assert spoken._of_records.cache_info().currsize == 0


def asked(conversation: Conversation, text: str, knowledge: KnowledgeBase) -> str:
    return said(reply(conversation, text, knowledge))


def test_a_chinese_line_before_an_english_log_is_answered_in_chinese(
    knowledge: KnowledgeBase,
) -> None:
    log = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error."
    asked = Log.from_text(f"训练起不来，帮忙看下\n{log}")
    assert has_chinese(begin(diagnose(asked, knowledge)).turns[-1].text)
    alone = Log.from_text(f"{log}\n{log}")
    assert not has_chinese(begin(diagnose(alone, knowledge)).turns[-1].text)
