"""What a ticket, a manager, an upstream report or the next shift needs: known, seen, tried, open.

Secrets are masked in all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.conversation.acts import Acted
from kb.conversation.commands import Request, to_command
from kb.conversation.done_steps import taken_steps
from kb.conversation.language import in_language, joined, say
from kb.conversation.next_step import cause_shown, playbooks_of, symptom_of, task_of
from kb.conversation.replies.answer import Answer, described_task, in_short, paragraphs
from kb.conversation.replies.meant import first_record
from kb.conversation.replies.own_remedy import remedy_told, tells_remedy
from kb.conversation.speech import (
    beginning,
    cause_and_sign,
    cite,
    first_sentence,
    in_a_row,
    named_cause,
    quote,
    quote_with_location,
)
from kb.conversation.state import Conversation
from kb.conversation.suspects import suspect_named
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import By, NextCheck
from kb.evidence import EvidenceLine
from kb.evidence.markers import Grade
from kb.evidence.secrets import mask_secrets
from kb.verdict import percent

_MANAGER = re.compile(
    r"\b(?:manager|managers|management|boss|director|vp|exec|execs|executive|leadership|lead"
    r"|stakeholders?|customers?|non[- ]technical|plain english|layman)\b"
    r"|领导|老板|经理|主管|上级|汇报|客户",
    re.IGNORECASE,
)
_UPSTREAM = re.compile(
    r"\b(?:upstream|github|issue|bug report|maintainers?|vendor|nvidia|file a bug)\b"
    r"|上游|厂商|社区|提\s?issue|提\s?bug|开\s?issue",
    re.IGNORECASE,
)
_MAX_LINES = 4
"""Lines of the log in a note of a conversation."""
_MAX_STATEMENTS = 8
"""The last ones of the user."""
_MAX_TOLD_IN_SHORT = 3
"""For who reads two sentences."""
_MAX_LINKS = 3
_MAX_CAUSES_OF_TEAM = 2
"""Causes of the symptom that are the business of a team."""


def summarise(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """For whom it is said: a manager, an upstream project, or a ticket; or what the user stated."""
    command = to_command(acted.text)
    if command and command.request is Request.STATEMENTS:
        return _statements(conversation)
    if _MANAGER.search(acted.text):
        return _note(_for_manager(conversation, knowledge), conversation)
    if _UPSTREAM.search(acted.text):
        return _note(_for_upstream(conversation), conversation)
    title = say("note-title", conversation.language)
    return _note(_for_ticket(title, conversation, knowledge), conversation)


def hand_over(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What the next shift needs: also what to save, and what the next expert will ask for."""
    title = say("handover-title", conversation.language)
    parts = [*_for_ticket(title, conversation, knowledge), *_to_secure(conversation, knowledge)]
    return _note(iter(parts), conversation)


def team(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What those whose business it is need: what is known and seen, what of it may be theirs, and
    what they will ask for."""
    language = conversation.language
    suspect = suspect_named(acted.text)
    causes = [
        cause
        for match in playbooks_of(conversation, knowledge)
        for cause in match.playbook.body.causes
        if suspect and suspect.is_in(f"{cause.cause} {cause.tell}")
    ]
    what = suspect.name(language) if suspect else say("team-any", language)
    parts = [
        say("team-note", language, what=what),
        *_for_ticket(say("note-title", language), conversation, knowledge),
        *(cause_and_sign(one, language) for one in causes[:_MAX_CAUSES_OF_TEAM]),
        *_to_secure(conversation, knowledge),
    ]
    return _note(iter(parts), conversation)


def _statements(conversation: Conversation) -> Answer:
    """The statements of the user, and how each was understood."""
    language = conversation.language
    if not conversation.statements:
        return Answer(say("nothing-told", language))
    lines = []
    for number, statement in enumerate(conversation.statements, 1):
        question = statement.question
        asked = say("asked", language, question=question) if question else ""
        understood = f": {' '.join(statement.says)}" if statement.says and not question else ""
        lines.append(f"{number}. “{beginning(statement.text)}”{asked}{understood}")
    return Answer("\n".join(lines))


def _note(parts: Iterator[str], conversation: Conversation) -> Answer:
    text = mask_secrets(paragraphs(parts))
    return Answer(text, lines=tuple(_lines(conversation)))


def _for_ticket(title: str, conversation: Conversation, knowledge: KnowledgeBase) -> Iterator[str]:
    language = conversation.language
    yield f"**{title}**"
    yield _state(conversation)
    yield _cause(conversation, knowledge)
    others = [
        f"{cite(match.incident, language)} ({percent(match.confidence)})"
        for match in conversation.matches[1:3]
    ]
    if others:
        yield say("note-others", language, others="; ".join(others))
    yield from _environment(conversation)
    yield from _seen(conversation)
    yield from _told(conversation)
    yield from _tried(conversation)
    task = None if conversation.solved else task_of(conversation, knowledge)
    if isinstance(task, NextCheck):
        yield described_task(task, language)
    elif task:
        yield say("note-next", language, what=in_short(task, language))
    if conversation.inquiry and not conversation.solved:
        yield say("note-question", language, question=conversation.question_in_words)
    yield from _links(conversation)


def _for_manager(conversation: Conversation, knowledge: KnowledgeBase) -> Iterator[str]:
    """Plain sentences, without commands."""
    language = conversation.language
    symptom = symptom_of(conversation, knowledge)
    incident = first_record(conversation)
    if conversation.solved:
        named = incident.title if incident else ""
        title = symptom.playbook.title if symptom else named
        yield say("manager-solved", language, title=in_language(title, language))
        return
    if symptom:
        title = in_language(symptom.playbook.title, language)
        yield say("manager-symptom", language, title=title)
    elif incident:
        share = percent(conversation.matches[0].confidence)
        title = in_language(incident.title, language)
        yield say("manager-cause", language, share=share, title=title)
    else:
        yield say("manager-no-cause", language)
    shown = cause_shown(conversation, knowledge) if symptom else None
    if shown:
        yield named_cause(*shown, "cause-shown", language)
    elif incident and not symptom:
        yield say("cause", language, text=first_sentence(incident.body.cause, language))
    yield from _told_in_short(conversation)
    yield say("manager-tried", language, count=len(conversation.done))
    task = None if conversation.solved else task_of(conversation, knowledge)
    if task:
        yield say("manager-next", language, what=in_short(task, language))


def _told_in_short(conversation: Conversation) -> Iterator[str]:
    """The last things that people found out, in their words."""
    said = [one.text for one in conversation.statements if "\n" not in one.text and not one.solved]
    if said:
        quoted = joined(map(quote, said[-_MAX_TOLD_IN_SHORT:]), conversation.language)
        yield say("manager-told", conversation.language, told=quoted)


def _for_upstream(conversation: Conversation) -> Iterator[str]:
    """What maintainers ask for first."""
    language = conversation.language
    incident = first_record(conversation)
    title = say("upstream-title", language)
    yield f"**{title}**"
    yield from _environment(conversation)
    yield from _seen(conversation)
    yield from _told(conversation)
    yield from _tried(conversation)
    if incident:
        links = " ".join(incident.header.references[:_MAX_LINKS])
        yield say("upstream-related", language, links=links)


def _state(conversation: Conversation) -> str:
    language, solved = conversation.language, conversation.solved
    if solved is None:
        return say("note-open", language)
    if solved.step:
        return say("note-solved-step", language, number=solved.step, id=solved.record)
    told = next(one.text for one in reversed(conversation.statements) if one.solved)
    if not solved.record and tells_remedy(told):
        return say("note-solved-own", language, text=quote(remedy_told(told)))
    return say("note-solved", language)


def _cause(conversation: Conversation, knowledge: KnowledgeBase) -> str:
    language = conversation.language
    symptom = symptom_of(conversation, knowledge)
    incident = first_record(conversation)
    if symptom:
        playbook, share = symptom.playbook, percent(symptom.share)
        title = in_language(playbook.title, language)
        known = say("note-symptom", language, share=share, title=title, id=playbook.id)
        return f"{known} {say('note-no-cause', language)}"
    if incident:
        share = percent(conversation.matches[0].confidence)
        return say("note-cause", language, share=share, record=cite(incident, language))
    return say("note-no-cause", language)


def _environment(conversation: Conversation) -> Iterator[str]:
    facts, known = conversation.diagnosis.evidence.facts, conversation.known
    versions = {**facts.versions, **known.versions}
    systems = set(facts.systems) - versions.keys()
    names = [*(f"{name} {version}" for name, version in versions.items()), *sorted(systems)]
    names += facts.accelerators
    if facts.world_size:
        names.append(f"world size {facts.world_size}")
    if names:
        language = conversation.language
        yield say("note-environment", language, facts=joined(names, language))


def _lines(conversation: Conversation) -> list[EvidenceLine]:
    lines = [
        reason.line
        for match in conversation.matches[:1]
        for reason in match.why
        if reason.by is not By.MEANING
    ]
    evidence = conversation.diagnosis.evidence.lines
    lines += [line for line in evidence if line.grade >= Grade.HINT]
    return list({(line.file, line.number): line for line in lines}.values())[:_MAX_LINES]


def _seen(conversation: Conversation) -> Iterator[str]:
    lines = _lines(conversation)
    read = (one for told in conversation.statements for one in told.observations)
    seen = sorted(
        dict.fromkeys((*conversation.diagnosis.observations, *read)),
        key=lambda one: one.abnormal is not True,
    )
    if lines or seen:
        yield say("note-seen", conversation.language)
        yield from (f"- {quote_with_location(line)}" for line in lines)
        yield from (f"- {quote(one.check)}: {one.text}" for one in seen[:_MAX_LINES])


def _told(conversation: Conversation) -> Iterator[str]:
    statements = [one for one in conversation.statements if not (one.done or one.solved)]
    if statements:
        yield say("note-told", conversation.language)
        for one in statements[-_MAX_STATEMENTS:]:
            asked = f" ({one.question})" if one.question else ""
            yield f"- {quote(one.text.replace(chr(10), ' '))}{asked}"


def _tried(conversation: Conversation) -> Iterator[str]:
    taken = list(taken_steps(conversation))
    if not taken:
        yield say("note-tried-none", conversation.language)
        return
    yield say("note-tried", conversation.language)
    yield from (f"- {in_short(task, conversation.language)}" for task in taken)


def _links(conversation: Conversation) -> Iterator[str]:
    incident = first_record(conversation)
    if incident:
        links = " ".join(incident.header.references[:_MAX_LINKS])
        yield say("note-links", conversation.language, links=links)


def _to_secure(conversation: Conversation, knowledge: KnowledgeBase) -> Iterator[str]:
    language = conversation.language
    for match in playbooks_of(conversation, knowledge)[:1]:
        body = match.playbook.body
        yield say("note-secure", language, what=in_a_row(body.secure, language))
        if body.escalate:
            yield say("note-escalate", language, what=in_a_row(body.escalate, language))
