"""What a term means, and what holds for every case."""

from __future__ import annotations

import re

import msgspec

from kb.conversation.acts import Act, Acted
from kb.conversation.known_questions import question_known
from kb.conversation.language import Language, in_language, say
from kb.conversation.next_step import symptom_of, task_of
from kb.conversation.phrases import act_by_phrase
from kb.conversation.replies.answer import (
    Answer,
    from_pages,
    of_table,
    paragraphs,
    sentences,
    subject_of,
    what_leads,
    with_task,
)
from kb.conversation.replies.meant import check_about, first_record, task_named
from kb.conversation.speech import cause_and_sign, first_sentence, quote, quote_with_location
from kb.conversation.state import Conversation, Speaker
from kb.conversation.terms import Term, asked_name, compared_terms, find_term
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck
from kb.evidence import EvidenceLine

_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?![\w.])")
_NAMES_NUMBER = r"\b(?P<name>exit ?code|errno|signal|status|xid|rc|code|error)"
_MAX_COMPARED = 3
"""Terms of which the difference is asked."""


def explain_term(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """The glossary's words for it, and the first line of the log that names it."""
    language = conversation.language
    compared = compared_terms(acted.text)[:_MAX_COMPARED]
    if compared:
        return Answer(paragraphs(meaning(term, language) for term in compared))
    about = _subject(conversation, knowledge)
    term = find_term(acted.text, about) or find_term(_number_named(acted.text, conversation), about)
    if term is None and act_by_phrase(acted.text) == acted.act:
        return _in_plain_words(conversation, knowledge)
    if term is None:
        return _check_or_nothing(acted, conversation, knowledge)
    lines = tuple(_lines_with(term, conversation))[:1]
    parts = [meaning(term, language)]
    parts += [say("term-in-log", language, quoted=quote_with_location(line)) for line in lines]
    parts.append(say("term-source", language, source=term.source))
    return Answer(paragraphs(parts), lines=lines)


def known_question(
    acted: Acted, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer | None:
    """The answer to a question that is surely one of the table. None where it names a check or a
    step: these have an answer of their own."""
    if names_check_or_step(acted, conversation, knowledge):
        return None
    question = question_known(acted.text, subject_of(conversation))
    return of_table(question, conversation.language)


def names_check_or_step(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> bool:
    """Whether a question is about a check or a step, which say more of the case."""
    return bool(
        task_named(acted.text, conversation, knowledge)
        or (acted.act is Act.HOW and check_about(acted.text, conversation, knowledge))
    )


def _number_named(text: str, conversation: Conversation) -> str:
    """The number of a message behind the word that stood before it in the case: of "137 means?"
    "exit code 137"; empty without one."""
    told = [turn.text for turn in conversation.turns[:-1] if turn.speaker is Speaker.USER]
    told += [line.text for line in conversation.diagnosis.evidence.lines]
    for number in _NUMBER.findall(text):
        for said in reversed(told):
            found = re.search(rf"{_NAMES_NUMBER}\W{{0,12}}{number}(?!\d)", said, re.IGNORECASE)
            if found:
                return f"{found['name']} {number}"
    return ""


def meaning(term: Term, language: Language) -> str:
    """The glossary's words for a term."""
    text = term.zh if language is Language.CHINESE else term.en
    return say("term", language, name=term.name, text=text)


def _subject(conversation: Conversation, knowledge: KnowledgeBase) -> str:
    """What leads, in the English that the terms are compared in, and the systems of the case."""
    english = msgspec.structs.replace(conversation, language=Language.ENGLISH)
    systems = conversation.diagnosis.evidence.facts.systems
    return " ".join([what_leads(english, knowledge), *systems])


def _in_plain_words(conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What is wrong, what it means, and what to do first."""
    language = conversation.language
    incident, symptom = first_record(conversation), symptom_of(conversation, knowledge)
    parts = [what_leads(conversation, knowledge)]
    if symptom:
        cause = cause_and_sign(symptom.playbook.body.causes[0], language)
        parts.append(say("often-behind", language, causes=cause))
    elif incident:
        parts.append(say("cause", language, text=first_sentence(incident.body.cause, language)))
    task = task_of(conversation, knowledge)
    if task is None:
        return Answer(paragraphs(parts) or say("nothing-known", language))
    return with_task(paragraphs(parts), task, language)


def _check_or_nothing(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """A program is explained by the check that runs it."""
    language = conversation.language
    task = task_named(acted.text, conversation, knowledge)
    if isinstance(task, NextCheck):
        header = task.check.header
        question = say("answers", language, question=in_language(header.question, language))
        title = in_language(header.title, language)
        named = say("term", language, name=task.check.id, text=f"{title}.")
        return Answer(sentences([named, question]), shows=(task.check.id,))
    told = from_pages(acted.text, conversation, knowledge)
    if told:
        return told
    name = asked_name(acted.text)
    if name:
        return Answer(say("term-named-unknown", language, name=quote(name)))
    return Answer(sentences([say("term-unknown", language), say("term-which", language)]))


def _lines_with(term: Term, conversation: Conversation) -> list[EvidenceLine]:
    names = [name.lower() for name in term.names]
    return [
        line
        for line in conversation.diagnosis.evidence.lines
        if any(name in line.text.lower() for name in names) and not _is_asked(line, conversation)
    ]


def _is_asked(line: EvidenceLine, conversation: Conversation) -> bool:
    """Whether the user wrote the line: then it is no news."""
    return conversation.diagnosis.evidence.human_written and line.file is None
