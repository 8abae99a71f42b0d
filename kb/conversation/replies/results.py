"""What came of it: it works, or it did not help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from index.tokens import tokenize
from kb.conversation.acts import Acted
from kb.conversation.done_steps import (
    FixStep,
    failed_steps,
    names_setting,
    only_looks,
    step_by_number,
    steps_of,
    taken_steps,
)
from kb.conversation.language import say
from kb.conversation.next_step import Task, cause_shown, open_steps, symptom_of, task_of
from kb.conversation.replies.answer import Answer, near_question, paragraphs, sentences, with_task
from kb.conversation.replies.meant import (
    SETTING,
    cause_like,
    first_record,
    record_meant,
    step_of_setting,
    steps_meant,
    task_shown,
)
from kb.conversation.replies.own_remedy import (
    by_itself,
    refutes,
    remedy_told,
    remedy_words,
    tells_remedy,
)
from kb.conversation.speech import cite, first_sentence, named_cause, prose, quote
from kb.conversation.state import (
    Conversation,
    ReplyAct,
    Solved,
    Speaker,
    Statement,
    combine,
)
from kb.conversation.subject import without_question
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Match, NextCheck
from kb.incident import Incident
from kb.playbook import Cause, Playbook
from kb.verdict import FITS_AT, SHOW_QUIET_AT, Verdict, percent

_LEAST_WORDS = 2
"""Of a cause or a step, in what is said of a success: "all gone now" and "set it" name none."""
_CLAUSES = re.compile(r"\s*(?:[，,;；。]|\.\s)\s*")
"""What was done and what came of it are told apart by a comma."""
_IN_VAIN = re.compile(r"\b(?:no|not|still|same|without)\b|n['’]t\b|没|不|还是|仍", re.IGNORECASE)
"""What was done did not help."""
_MAX_RECORDS_COMPARED = 3
"""Likeliest records whose steps are compared with what is said to have helped."""


def success(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What it was, what helped, how to be sure, and how it stays away; and the answer to what is
    asked beside."""
    told, asked = without_question(acted.text)
    answer = _solved(Acted(acted.act, told or acted.text), conversation, knowledge)
    beside = near_question(asked, conversation, knowledge) if told and asked else None
    if beside is None:
        return answer
    return msgspec.structs.replace(answer, text=paragraphs([answer.text, beside.text]))


def _solved(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    language = conversation.language
    helped = _helped(acted, conversation, knowledge)
    symptom = symptom_of(conversation, knowledge)
    cause = cause_like(acted.text, conversation, knowledge, _LEAST_WORDS) if symptom else None
    shown = (cause[0].playbook, cause[1]) if cause else cause_shown(conversation, knowledge)
    if helped is None and not cause and _is_of_own(acted.text, conversation):
        return _success_of_own(acted, conversation)
    if symptom and shown and helped is None:
        return _success_of_cause(acted, *shown, conversation)
    named = record_meant(acted.text, conversation, knowledge)
    incident = helped.incident if helped else named or _proven(conversation)
    solved = Solved(incident.id if incident else "", helped.number if helped else 0)
    said = say("success", language)
    statement = Statement(acted.text, says=(said,), solved=solved)
    if incident is None:
        unknown = sentences([said, *_perhaps(conversation), say("success-unknown", language)])
        key = "success-by-itself" if by_itself(acted.text) else "prevent-everywhere"
        text = paragraphs([unknown, say(key, language)])
        return Answer(text, statement=statement)
    parts = [
        sentences([said, _was(incident, helped, conversation)]),
        say("success-verify", language, text=prose(incident.body.verify, language)),
    ]
    if incident.body.prevention:
        text = first_sentence(incident.body.prevention, language)
        parts.append(say("success-prevent", language, text=text))
    else:
        parts.append(say("prevent-everywhere", language))
    parts.append(say("success-offer", language))
    return Answer(paragraphs(parts), records=(incident.id,), statement=statement)


def _success_of_own(acted: Acted, conversation: Conversation) -> Answer:
    """Of a remedy that the user found: it proves nothing of what was named."""
    language, said = conversation.language, say("success", conversation.language)
    statement = Statement(acted.text, says=(said,), solved=Solved(""))
    own = say("success-own", language, text=quote(remedy_told(acted.text)))
    text = paragraphs([sentences([said, own]), say("success-unknown", language)])
    return Answer(text, statement=statement)


def _is_of_own(text: str, conversation: Conversation) -> bool:
    """Whether what helped is none of what was proposed: the user says so, names a setting that no
    step has, or tells of a remedy that is not in the record, or where none was proven."""
    if refutes(text) or not tells_remedy(text):
        return refutes(text)
    incident = first_record(conversation)
    if incident is None or conversation.verdict is not Verdict.MATCH:
        return True
    settings = SETTING.findall(text)
    if settings:
        return not any(names_setting(step, settings) for step in incident.body.fix)
    steps = " ".join(f"{step.text} {step.command} {step.why}" for step in incident.body.fix)
    known = tokenize(f"{incident.title} {incident.body.cause} {steps}")
    return remedy_words(text).isdisjoint(known)


def _proven(conversation: Conversation) -> Incident | None:
    """The record that leads, where it is above the bar or the user went by it."""
    incident = first_record(conversation)
    followed = any(incident and name == incident.id for name, _number in conversation.done)
    return incident if conversation.verdict is Verdict.MATCH or followed else None


def _likely(conversation: Conversation) -> list[Match]:
    """What leads, where it fits well enough to be named."""
    return [match for match in conversation.matches[:1] if match.confidence >= FITS_AT]


def _perhaps(conversation: Conversation) -> Iterator[str]:
    """What led, where nothing proves it."""
    for match in _likely(conversation):
        record, share = cite(match.incident, conversation.language), percent(match.confidence)
        yield say("success-perhaps", conversation.language, record=record, share=share)


def _success_of_cause(
    acted: Acted, playbook: Playbook, cause: Cause, conversation: Conversation
) -> Answer:
    language, said = conversation.language, say("success", conversation.language)
    statement = Statement(acted.text, says=(said,), solved=Solved(playbook.id))
    was = named_cause(playbook, cause, "success-was-cause", language)
    keep = say("prevent-everywhere", language)
    text = paragraphs([sentences([said, was]), keep, say("success-offer", language)])
    return Answer(text, statement=statement)


def _was(incident: Incident, helped: FixStep | None, conversation: Conversation) -> str:
    language = conversation.language
    record = cite(incident, language)
    if helped is None:
        return say("success-was", language, record=record)
    text = prose(helped.step.text, language)
    return say("success-was-step", language, record=record, number=helped.number, text=text)


def _helped(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> FixStep | None:
    """The step that is named or told of; where nothing else is told, the one that was done or shown
    just now and changes something. One of long ago, or that did not help, gets no credit."""
    if refutes(acted.text):
        return None
    incidents = [
        match.incident
        for match in conversation.matches[:_MAX_RECORDS_COMPARED]
        if match.confidence >= SHOW_QUIET_AT
    ]
    likely = [match.incident for match in _likely(conversation)]
    numbered = step_by_number(acted.text, incidents)
    told = [
        *numbered,
        *(step_of_setting(acted.text, incident) for incident in incidents),
        *(
            step
            for clause in _CLAUSES.split(acted.text)
            if len(remedy_words(clause)) >= _LEAST_WORDS
            for step in steps_meant(clause, likely, knowledge)
        ),
    ]
    if tells_remedy(acted.text):
        named = SETTING.findall(acted.text)
        fits = (one for one in _cures(told) if not named or names_setting(one.step, named))
        return next(fits, None)
    now = [*numbered, *_done_now(conversation), _shown_now(conversation, knowledge)]
    return next(_cures(now), None)


def _done_now(conversation: Conversation) -> Iterator[FixStep]:
    """The steps that the message before told of, unless it said that they did not help."""
    told = [turn.text for turn in conversation.turns if turn.speaker is Speaker.USER][:-1]
    last = conversation.statements[-1] if conversation.statements else None
    if last and told and last.text == told[-1] and not _IN_VAIN.search(last.text):
        yield from steps_of(last, conversation)


def _shown_now(conversation: Conversation, knowledge: KnowledgeBase) -> Task | None:
    """What the last turn told to do, unless it was done before."""
    told = [turn for turn in conversation.turns if turn.speaker is Speaker.TOOL][-1:]
    return task_shown(conversation, knowledge) if any(turn.shows for turn in told) else None


def _cures(tasks: Sequence[Task | None]) -> Iterator[FixStep]:
    return (task for task in tasks if isinstance(task, FixStep) and not only_looks(task.step))


def failure(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """Ask which step, tell how to see whether it took effect, and go on."""
    language = conversation.language
    incident = first_record(conversation)
    task = task_of(conversation, knowledge)
    if incident is None:
        if task is None:
            return Answer(say("failure-nothing", language))
        return with_task(say("frustration", language), task, language)
    numbered = step_by_number(acted.text, [incident])
    if numbered:
        return _failed(numbered[0], acted, conversation, knowledge)
    last = next(reversed(list(taken_steps(conversation))), None)
    shown = task_shown(conversation, knowledge)
    if isinstance(shown, NextCheck):
        return with_task(say("failure-nothing", language), shown, language)
    parts = [_which(incident, last, conversation)]
    for match in conversation.matches[1:2]:
        record, share = cite(match.incident, language), percent(match.confidence)
        parts.append(say("failure-go-on", language, record=record, share=share))
    said = paragraphs(parts)
    answer = with_task(said, task, language) if task else Answer(said)
    return msgspec.structs.replace(answer, act=ReplyAct.ASK)


def _failed(
    step: FixStep, acted: Acted, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    """A step that is named is marked; what to look at comes before what is next."""
    language = conversation.language
    statement = combine(acted.text, [failed_steps([step], language)])
    if statement.asks:
        said = paragraphs([*statement.says, statement.asks.text])
        return Answer(said, statement=statement, act=ReplyAct.ASK)
    task = task_of(conversation.with_statement(statement), knowledge)
    said = paragraphs(statement.says)
    answer = with_task(said, task, language) if task else Answer(said)
    return msgspec.structs.replace(answer, statement=statement)


def _which(incident: Incident, last: FixStep | None, conversation: Conversation) -> str:
    language = conversation.language
    steps = [one for one in open_steps(incident, conversation) if not only_looks(one.step)]
    verify = prose(incident.body.verify, language)
    effect = say("failure-effect", language, verify=verify)
    if last:
        said = say("failure-step", language, number=last.number, id=last.incident.id)
        return sentences([said, effect])
    which = say("failure-which", language, number=steps[0].number) if steps else ""
    return sentences([which, effect])
