"""What to do: the next thing, and another one where that cannot be done."""

from __future__ import annotations

import re

import msgspec

from kb.check import Check
from kb.conversation.acts import Acted
from kb.conversation.language import say
from kb.conversation.next_step import (
    name_of,
    task_of,
)
from kb.conversation.replies.answer import (
    Answer,
    in_short,
    nothing_to_do,
    paragraphs,
    sentences,
    steps_ahead,
    with_task,
)
from kb.conversation.replies.meant import (
    first_record,
    is_of_it,
    record_meant,
    task_meant,
    task_named,
)
from kb.conversation.replies.remedies import show_fix
from kb.conversation.speech import (
    prose,
)
from kb.conversation.state import Conversation, Statement
from kb.corpus.base import KnowledgeBase
from kb.questions import QuestionPlan, Topic

_CHANGES = re.compile(
    r"\b(?:chang|upgrad|downgrad|add|buy|replac|updat|modify|swap|resiz|touch|restart|reboot|lower"
    r"|rebuild|stop)(?:e|ing)?\b|\bget more\b|\binternet\b"
    r"|\b(?:won['’]?t|will not|refuse\w*|never|not going to)"
    r" (?:open|allow|permit|approve|give|let|do)\b"
    r"|\b(?:policy|forbidden|prohibited|not allowed|against the rules)\b"
    r"|[加改换买扩动停]|升级|降级|重启|重装|更换|调整|[不没](?:让|允许|同意|批|肯|开放)|禁止|规定|外网",
    re.IGNORECASE,
)
"""Something that would change the set-up, or that somebody else refuses: not the run of a check."""
_JOB_GONE = re.compile(
    r"\b(?:job|process|pod|run|it|rank|node|container)s?\b.{0,30}\b(?:gone|dead|died|ended|exited|finished"
    r"|killed|restarted|rebooted|deleted|over|evicted|rescheduled|down already)\b"
    r"|\b(?:already|just) (?:restarted|rebooted|killed|cancelled|resubmitted)\b|\bno longer runs\b"
    r"|(?:任务|作业|进程|pod|容器|机器|节点).{0,8}(?:没了|退出|结束|挂了|重启|被杀|杀掉|删了|回收)"
    r"|已经(?:重启|杀|退出|结束|停)",
    re.IGNORECASE,
)
_NO_ROOT = re.compile(
    r"(?:\bno\b|\bnot\b|n['’]?t\b|\bwithout\b|\black).{0,20}\b(?:root|sudo|privileges?|admin)\b"
    r"|(?:没|无|不是|不能|拿不到|缺).{0,8}(?:root|sudo|管理员|提权|权限)",
    re.IGNORECASE,
)


def next_step(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What to do now, and the question that is open."""
    language = conversation.language
    named = record_meant(acted.text, conversation, knowledge)
    task = task_of(conversation, knowledge)
    parts = []
    if conversation.inquiry:
        parts.append(_open_question(conversation.inquiry, conversation))
    if task:
        answer = with_task("\n".join(parts), task, language)
        text = paragraphs([answer.text, steps_ahead(task, conversation)])
        return msgspec.structs.replace(answer, text=text)
    incident = named or first_record(conversation)
    if incident:
        verify = prose(incident.body.verify, language)
        parts.append(say("all-steps-done", language, id=incident.id, verify=verify))
    else:
        parts.append(nothing_to_do(conversation))
    return Answer(paragraphs(parts))


def _open_question(inquiry: QuestionPlan, conversation: Conversation) -> str:
    if inquiry.topic is Topic.EFFECT:
        return inquiry.text
    return say("ask-apart", conversation.language, question=conversation.question_in_words)


def cannot(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What cannot be done is set aside, and something else is offered."""
    language = conversation.language
    named = task_named(acted.text, conversation, knowledge)
    if named is None and _CHANGES.search(acted.text) and not is_of_it(acted.text):
        return _without_it(acted, conversation, knowledge)
    task = named or task_meant(acted.text, conversation, knowledge)
    aside = [name_of(task)] if task else []
    said = say("cannot", language, what=in_short(task, language)) if task else ""
    gone = bool(_JOB_GONE.search(acted.text))
    if gone:
        aside, said = [], say("cannot-job", language)
    elif _NO_ROOT.search(acted.text):
        aside += _for_root(knowledge)
        said = say("cannot-root", language)
    statement = Statement(
        acted.text, says=(said,) if said else (), set_aside=tuple(aside), job_ended=gone
    )
    return _with_alternative(said, statement, conversation, knowledge)


def _without_it(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """A change that is not possible is noted, and all other remedies are named."""
    said = say("cannot-change", conversation.language)
    statement = Statement(acted.text, says=(said,))
    rest = show_fix(acted, conversation, knowledge)
    text = paragraphs([said, rest.text])
    return msgspec.structs.replace(rest, text=text, statement=statement)


def _for_root(knowledge: KnowledgeBase) -> list[str]:
    return [
        guide.id
        for guide in knowledge.guides.by_id.values()
        if isinstance(guide, Check) and "root" in guide.header.needs
    ]


def _with_alternative(
    said: str, statement: Statement, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    language = conversation.language
    other = task_of(conversation.with_statement(statement), knowledge)
    if other is None:
        return Answer(paragraphs([said, say("cannot-last", language)]), statement=statement)
    answer = with_task(paragraphs([said, say("instead", language)]), other, language)
    return Answer(answer.text, shows=answer.shows, records=answer.records, statement=statement)


_FIND = {
    Topic.SYSTEMS: "find-systems",
    Topic.NODES: "find-nodes",
    Topic.HARDWARE: "find-hardware",
    Topic.VERSION: "find-version",
    Topic.EFFECT: "find-effect",
}
"""How to find out what is asked, by what it is about."""


def dont_know(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """How to find out."""
    language, inquiry = conversation.language, conversation.inquiry
    if inquiry and inquiry.topic in _FIND:
        return Answer(sentences([say("dont-know", language), say(_FIND[inquiry.topic], language)]))
    task = task_of(conversation, knowledge)
    if task is None:
        return Answer(sentences([say("dont-know", language), nothing_to_do(conversation)]))
    key = "find-observation" if inquiry else "find-out"
    return with_task(sentences([say("dont-know", language), say(key, language)]), task, language)


def yes(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """Without a question it is a "go ahead"."""
    task = task_of(conversation, knowledge)
    language = conversation.language
    if task is None:
        return Answer(sentences([say("no-question", language), nothing_to_do(conversation)]))
    return with_task(say("go-ahead", language), task, language)
