"""What needs no knowledge: greetings, thanks, anger, and what is none of the tool's business."""

from __future__ import annotations

import re

from kb.conversation.acts import Act, Acted
from kb.conversation.language import say
from kb.conversation.next_step import task_of
from kb.conversation.phrases import harm_of
from kb.conversation.replies.answer import (
    Answer,
    from_pages,
    in_short,
    not_understood,
    with_task,
)
from kb.conversation.replies.how import how
from kb.conversation.replies.safety import safe
from kb.conversation.state import Conversation
from kb.conversation.subject import is_question, is_statement
from kb.corpus.base import KnowledgeBase

_ASKS_HOW = re.compile(
    r"^(?:and |so |but )?how (?:do|can|to|would)\b"
    r"|怎么(?!会|就|还|又|是|这么|那么|回事|不|没)|如何|怎样",
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


def other(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """What is none of the acts changes nothing. A question is answered with what the leading pages
    say about it; words of the field are noted."""
    if _ASKS_HOW.search(acted.text):
        return how(Acted(Act.HOW, acted.text), conversation, knowledge)
    if is_question(acted.text) and harm_of(acted.text):
        return safe(Acted(Act.SAFE, acted.text), conversation, knowledge)
    if is_question(acted.text):
        told = from_pages(acted.text, conversation, knowledge)
        return told or not_understood("no-passage", conversation, knowledge)
    key = "noted" if is_statement(acted.text) else "other"
    return not_understood(key, conversation, knowledge)
