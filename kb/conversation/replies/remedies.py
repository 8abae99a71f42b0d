"""What helps: the fix, what gets the job going until then, and what keeps the failure away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.conversation.acts import Acted
from kb.conversation.done_steps import FixStep, step_by_number
from kb.conversation.language import Language, in_language, say
from kb.conversation.next_step import cause_shown, name_of, playbooks_of, symptom_of, task_of
from kb.conversation.passages import passage_about
from kb.conversation.replies.answer import (
    Answer,
    nothing_to_do,
    paragraphs,
    with_leader,
    with_passage,
    with_task,
)
from kb.conversation.replies.meant import first_record, record_meant
from kb.conversation.speech import cite, named_cause, numbered_step, prose
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import PlaybookMatch
from kb.incident import Incident
from kb.playbook import Cause, Playbook
from kb.verdict import Verdict

_UNDOES = re.compile(
    r"\b(?:undo|roll\w*[ -]?(?:\w+ ){0,3}back|revert|back out|go back)\b|回退|回滚|撤回|还原|改回",
    re.IGNORECASE,
)
_STOPGAP = re.compile(
    r"\b(?:tonight|stop-?gap|work(?:s|ing)? ?around|for now|to get (?:going|running|started)"
    r"|temporar\w+|meantime|fall back|until (?:then|it|the|you|a))\b",
    re.IGNORECASE,
)
"""In a step that gets the job going and leaves the cause."""
_MAX_WAYS = 2
"""Of a symptom, to get the job going."""


def show_fix(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """The steps of the record's fix, or the one that is named; for a symptom what gets the job
    going, and the remedy of each frequent cause."""
    language = conversation.language
    named = record_meant(acted.text, conversation, knowledge)
    symptom = symptom_of(conversation, knowledge)
    incident = named or first_record(conversation)
    numbered = step_by_number(acted.text, [incident] if incident else [])
    if numbered:
        return with_task("", numbered[0], language)
    if _UNDOES.search(acted.text):
        return with_leader(say("undo-fix", language), conversation, knowledge)
    if named is None and symptom:
        return _remedies(symptom, conversation, knowledge)
    if incident:
        return Answer(_fix(incident, conversation), records=(incident.id,))
    return Answer(nothing_to_do(conversation))


def workaround(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What gets the job going though the cause stays: the step of the record that is meant for it,
    or else the ways of the symptom and the whole fix."""
    symptom = symptom_of(conversation, knowledge)
    if symptom:
        return _remedies(symptom, conversation, knowledge)
    incident = record_meant(acted.text, conversation, knowledge) or first_record(conversation)
    if incident is None:
        return Answer(nothing_to_do(conversation))
    shown = cause_shown(conversation, knowledge)
    if shown and conversation.verdict is not Verdict.MATCH:
        return _way_of_cause(*shown, conversation, knowledge)
    for number, step in enumerate(incident.body.fix, 1):
        if _STOPGAP.search(f"{step.text} {step.why or ''}"):
            return with_task("", FixStep(incident, number, step), conversation.language)
    leading = [one.playbook for one in playbooks_of(conversation, knowledge)[:1]]
    ways = [way for one in leading for way in ways_of(one, conversation.language)]
    text = "\n".join([*ways, _fix(incident, conversation)])
    return Answer(text, records=(incident.id,))


def _way_of_cause(
    playbook: Playbook, cause: Cause, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    """The remedy of a cause that an output showed, and what gets the job going meanwhile."""
    known = named_cause(playbook, cause, "cause-shown", conversation.language)
    text = "\n".join([known, *ways_of(playbook, conversation.language)])
    return with_leader(text, conversation, knowledge)


def prevent(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """How it stays away: the remedy of the cause that an output showed, the words of the record, or
    what holds in general."""
    language = conversation.language
    incident = record_meant(acted.text, conversation, knowledge) or first_record(conversation)
    prevention = incident.body.prevention if incident else None
    everywhere = say("prevent-everywhere", language)
    shown = cause_shown(conversation, knowledge)
    if shown and symptom_of(conversation, knowledge):
        return Answer(paragraphs([named_cause(*shown, "cause-shown", language), everywhere]))
    if prevention:
        said = say("success-prevent", language, text=prose(prevention, language))
        return Answer(paragraphs([said, everywhere]))
    passage = passage_about(acted.text, conversation, knowledge)
    if passage:
        return with_passage(passage, everywhere, conversation, knowledge)
    return with_leader(everywhere, conversation, knowledge)


def _fix(incident: Incident, conversation: Conversation) -> str:
    """All steps, with those that are done or set aside."""
    language = conversation.language
    parts = [say("fix-for", language, record=cite(incident, language))]
    for number, step in enumerate(incident.body.fix, 1):
        mark = ""
        if (incident.id, number) in conversation.done:
            mark = say("step-done", language)
        elif name_of(FixStep(incident, number, step)) in conversation.set_aside:
            mark = say("step-aside", language)
        text = numbered_step(number, step, language)
        parts.append(text.replace(f"{number}.", f"{number}.{mark}", 1))
    parts.append(say("then-verify", language, verify=prose(incident.body.verify, language)))
    return "\n".join(parts)


def _remedies(
    symptom: PlaybookMatch, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    language, body = conversation.language, symptom.playbook.body
    shown = cause_shown(conversation, knowledge)
    known = named_cause(*shown, "cause-shown", language) if shown else ""
    parts = [known or say("symptom-only", language), *ways_of(symptom.playbook, language)]
    for one in body.causes[:3]:
        cause = prose(one.cause, language).rstrip(".。")
        remedy = in_language(one.remedy, language).rstrip(".。")
        parts.append(say("remedy-of", language, cause=cause, remedy=remedy))
    task = task_of(conversation, knowledge)
    return with_task("\n".join(parts), task, language) if task else Answer("\n".join(parts))


def ways_of(playbook: Playbook, language: Language) -> Iterator[str]:
    """What gets the job going tonight, each with its cost and its risk."""
    for way in playbook.body.tonight[:_MAX_WAYS]:
        do, cost, risk = (in_language(text, language) for text in (way.do, way.cost, way.risk))
        yield say("tonight", language, do=do, cost=cost, risk=risk)
