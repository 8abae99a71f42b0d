"""What needs no knowledge: greetings, thanks, anger, and what is none of the tool's business."""

from __future__ import annotations

import re

from kb.conversation.acts import Acted
from kb.conversation.language import say
from kb.conversation.next_step import task_of
from kb.conversation.replies.answer import Answer, in_short, sentences, with_task
from kb.conversation.replies.candidates import alternatives
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase

_ASKS_FOR_OTHERS = re.compile(
    r"\b(?:any|what|are there|is there|which|the)\b.{0,12}\b(?:other|else|alternative)s?\b.{0,12}"
    r"\b(?:possib|option|cause|candidate|reason|suspect|could)\w*"
    r"|(?:还有|其他|别的).{0,6}(?:可能|原因|候选)",
    re.IGNORECASE,
)


def thanks(_acted: Acted, conversation: Conversation, _knowledge: KnowledgeBase) -> Answer:
    """One line."""
    key = "thanks-solved" if conversation.solved else "thanks"
    return Answer(say(key, conversation.language))


def greeting(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """One line: what to say first, or where we are."""
    language = conversation.language
    task = task_of(conversation, knowledge)
    if task is None:
        return Answer(say("greeting", language))
    return Answer(say("greeting-on", language, what=in_short(task, language)))


def frustration(_acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """One line of sympathy, and the one thing to do."""
    language = conversation.language
    task = task_of(conversation, knowledge)
    said = say("frustration", language)
    return (
        with_task(said, task, language) if task else Answer(f"{said} {say('greeting', language)}")
    )


def fixed(key: str, conversation: Conversation) -> Answer:
    """A sentence that is always the same."""
    return Answer(say(key, conversation.language))


def not_understood(key: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """One line, with what is still to do."""
    language = conversation.language
    task = task_of(conversation, knowledge)
    still = say("still-next", language, what=in_short(task, language)) if task else ""
    return Answer(sentences([say(key, language), still]))


def other(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What is none of the acts changes nothing; who asks for other causes is told them."""
    if _ASKS_FOR_OTHERS.search(acted.text):
        return alternatives(conversation, knowledge)
    return not_understood("other", conversation, knowledge)
