"""What was said, once more: the same, shorter, or after it came back. And what holds for every job:
where its logs are, and how one rank holds up the others."""

from __future__ import annotations

import re

import msgspec

from kb.check import Place
from kb.conversation.acts import Acted
from kb.conversation.language import say
from kb.conversation.next_step import Task, name_of, symptom_of, task_of
from kb.conversation.passages import passage_about
from kb.conversation.replies.answer import (
    Answer,
    in_short,
    near_question,
    nothing_to_do,
    paragraphs,
    what_leads,
    with_passage,
    with_task,
)
from kb.conversation.replies.meant import first_record, place_of, task_meant
from kb.conversation.speech import fenced_command, prose
from kb.conversation.state import Conversation, ReplyAct, Speaker, Statement
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck

_OTHER_LANGUAGE = re.compile(r"\b(?:chinese|english|mandarin)\b|中文|英文|英语|汉语", re.IGNORECASE)
_DRAINS = {Place.SLURM: "drain-slurm", Place.K8S: "drain-k8s"}
_LOGS = {Place.SLURM: "logs-slurm", Place.K8S: "logs-k8s", Place.DOCKER: "logs-docker"}


def repeat(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """The last reply; in another language what leads and what to do. None before the first."""
    task = task_of(conversation, knowledge)
    if _OTHER_LANGUAGE.search(acted.text):
        leads = what_leads(conversation, knowledge)
        return with_task(leads, task, conversation.language) if task else Answer(leads or "")
    tools = [turn for turn in conversation.turns if turn.speaker is Speaker.TOOL]
    if not tools:
        return None
    return Answer(tools[-1].text, shows=tools[-1].shows, records=tools[-1].records)


def brief(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What leads, and the command to run."""
    leads = what_leads(conversation, knowledge)
    task = task_of(conversation, knowledge)
    if task is None:
        return Answer(paragraphs([leads, nothing_to_do(conversation)]))
    text = paragraphs([leads, in_short(task, conversation.language), _command(task)])
    records = () if isinstance(task, NextCheck) else (task.incident.id,)
    return Answer(text, shows=(name_of(task),), records=records)


def _command(task: Task) -> str:
    if isinstance(task, NextCheck):
        return fenced_command(task.command)
    step = task.step
    return f"```{step.language}\n{step.command}\n```" if step.command else ""


def relapse(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """A case that was solved is open again. None where none was."""
    if conversation.solved is None:
        return None
    language = conversation.language
    said = say("relapse", language)
    statement = Statement(acted.text, says=(said,), relapsed=True)
    task = task_of(conversation.with_statement(statement), knowledge)
    answer = with_task(said, task, language) if task else Answer(said)
    return msgspec.structs.replace(answer, statement=statement)


def logs(acted: Acted, conversation: Conversation, _knowledge: KnowledgeBase) -> Answer:
    """Where the logs of the job are, by what started it."""
    language = conversation.language
    where = _LOGS.get(place_of(acted.text, conversation), "logs-bare")
    return Answer(paragraphs([say(where, language), say("logs-all", language)]))


def so_far(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """It is not closed yet; how to be sure."""
    language = conversation.language
    incident = first_record(conversation)
    leads = incident is not None and not symptom_of(conversation, knowledge)
    verify = prose(incident.body.verify, language) if incident and leads else ""
    sure = say("success-verify", language, text=verify) if verify else ""
    return Answer(paragraphs([say("so-far", language), sure]), act=ReplyAct.UPDATE)


def drain(acted: Acted, conversation: Conversation, _knowledge: KnowledgeBase) -> Answer:
    """How a host is taken out of use, by what runs there."""
    language = conversation.language
    where = _DRAINS.get(place_of(acted.text, conversation), "drain-both")
    return Answer(paragraphs([say(where, language), say("drain-then", language)]))


def normal(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """What the pages say of a value, or what the check prints where all is well; without either,
    how one finds out."""
    passage = passage_about(acted.text, conversation, knowledge)
    if passage:
        return with_passage(passage, "", conversation, knowledge)
    near = near_question(conversation.turns[-1].text, conversation, knowledge)
    if near:
        return near
    language = conversation.language
    task = task_meant(acted.text, conversation, knowledge)
    if not isinstance(task, NextCheck):
        return Answer(say("normal-unknown", language))
    text = say("normal-output", language, normal=task.check.body.normal, id=task.check.id)
    compare = say("normal-compare", language)
    return Answer(paragraphs([text, compare]), shows=(name_of(task),))


def recurs(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What a failure that stays in one place means."""
    leads = what_leads(conversation, knowledge)
    return Answer(paragraphs([say("recurs", conversation.language), leads]))


def all_wait(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """How one rank holds up the others."""
    leads = what_leads(conversation, knowledge)
    return Answer(paragraphs([say("all-wait", conversation.language), leads]))
