"""A failure that was told behind the first and is another one: people repair one thing and meet the
next."""

from __future__ import annotations

import re

from kb.conversation.language import in_language, say
from kb.conversation.next_step import playbooks_of, symptom_of
from kb.conversation.replies.answer import Answer, paragraphs
from kb.conversation.speech import cause_with_remedy
from kb.conversation.state import Conversation, Statement
from kb.conversation.told_causes import causes_told
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import PlaybookMatch, likeliest_causes
from kb.evidence.nature import is_log, printed_part

_REPAIRED = re.compile(
    r"\b(?:fixed|works?|worked|gone|starts?|started|solved|compiles?|loads?|passes|past (?:that|it)"
    r"|runs?)\b.{0,40}\b(?:but|now|then|except|only|however)\b|\bnow\b.{0,30}\b(?:instead|another|new|different)\b"
    r"|(?:好了|起来了|过了|解决了|没了|能跑了|装上了|不报了).{0,20}(?:但|不过|可是|结果|现在|又|却|一上来)"
    r"|(?:现在|又)(?:换成|变成|是另|报(?:了)?(?:另|新|别))",
    re.IGNORECASE | re.DOTALL,
)
"""Says that the first failure is gone and what came then."""
_MAX_CAUSES = 2
"""Of the other failure, with their remedies."""


def another_failure(
    statement: Statement, before: Conversation, after: Conversation, knowledge: KnowledgeBase
) -> Answer | None:
    """Its symptom, and the causes that its words name, or else the likeliest ones; None where what
    was told belongs to what leads."""
    told = next(iter(statement.symptoms), None)
    if told is None:
        return None
    if not (_REPAIRED.search(statement.text) or _is_printed(statement.text, told, knowledge)):
        return None  # who only tells of a symptom describes the first failure in other words
    if told.playbook.id in _own_symptoms(before, knowledge):
        return None
    now = symptom_of(after, knowledge)
    if now and now.playbook.id == told.playbook.id:
        return None  # it leads from here on, and is told as that
    language = after.language
    title = in_language(told.playbook.title, language)
    named = causes_told(statement.text, told.playbook)
    causes = named or likeliest_causes(told.playbook, (), statement.readings)
    lines = (cause_with_remedy(cause, language) for cause in causes[:_MAX_CAUSES])
    said = say("another-failure", language, title=title, id=told.playbook.id)
    return Answer(paragraphs([said, *lines]))


def _is_printed(text: str, symptom: PlaybookMatch, knowledge: KnowledgeBase) -> bool:
    """Whether a text holds a line of a program with the symptom."""
    printed = printed_part(text) or (text if is_log(text.split("\n")) else "")
    return bool(knowledge.guides.lines_of_symptom(symptom.playbook, printed))


def _own_symptoms(conversation: Conversation, knowledge: KnowledgeBase) -> frozenset[str]:
    """Those of the record that leads, or the symptom that does."""
    if symptom_of(conversation, knowledge) is None:
        for match in conversation.matches[:1]:
            return knowledge.guides.symptoms_of(match.incident)
    return frozenset(match.playbook.id for match in playbooks_of(conversation, knowledge)[:1])
