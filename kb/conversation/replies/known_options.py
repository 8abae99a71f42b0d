"""A setting that is asked about or proposed: what it does, whether it helps, and where and when it
has to be set."""

from __future__ import annotations

import re

from kb.conversation.acts import Acted
from kb.conversation.known_options import (
    KnownOption,
    asks_of_it,
    asks_when,
    asks_where,
    option_asked,
    options_in,
)
from kb.conversation.language import say
from kb.conversation.next_step import name_of
from kb.conversation.replies.answer import Answer, in_short, paragraphs, sentences, subject_of
from kb.conversation.replies.meant import first_record, step_of_setting
from kb.conversation.state import Conversation, Speaker
from kb.corpus.base import KnowledgeBase

_HOW_TO = re.compile(
    r"\bhow (?:do|can|should|would|to)\b|\bwhere (?:do|does|can|to|should)\b|\bshow me\b"
    r"|怎么(?:设|加|改|配|写|用|开)|如何|在哪|哪里",
    re.IGNORECASE,
)
_MEANING = re.compile(
    r"\bwhat(?:.s| is| does| do| are)?\b|\bexplain\b|\bmean|是什么|是啥|什么意思|干[什嘛啥]|作用",
    re.IGNORECASE,
)
_MAX_TURNS_BACK = 2
"""Messages of the user in which "it" is looked for."""


def known_option(
    acted: Acted, conversation: Conversation, _knowledge: KnowledgeBase
) -> Answer | None:
    """The words of the table, what is asked first. None where the message asks how to do what a
    step of the leading record does: this has the command."""
    option = _meant(acted.text, conversation)
    step = step_of_setting(acted.text, first_record(conversation))
    if option is None or (step and _HOW_TO.search(acted.text)):
        return None
    language = conversation.language
    words = option.words(language)
    where = say(f"option-scope-{option.scope}", language)
    when = say(f"option-takes-{option.takes}", language)
    what = say("option-is", language, name=option.name, does=words.does)
    if _MEANING.search(acted.text):
        said = [what, words.helps, sentences([where, when])]
    elif asks_where(acted.text):
        said = [where, sentences([when, words.helps]), what]
    elif asks_when(acted.text):
        said = [when, sentences([where, words.helps]), what]
    else:
        said = [words.helps, what, sentences([where, when])]
    in_record = say("command-step", language, what=in_short(step, language)) if step else ""
    parts = [*said, in_record, say("term-source", language, source=option.source)]
    shows = (name_of(step),) if step else ()
    records = (step.incident.id,) if step else ()
    return Answer(paragraphs(parts), shows=shows, records=records)


def _meant(text: str, conversation: Conversation) -> KnownOption | None:
    """The option that a message names, or means by "it" where it asks where or when to set it."""
    if option_asked(text):
        return options_in(text, subject_of(conversation))[0]
    if not asks_of_it(text):
        return None
    told = [turn.text for turn in conversation.turns if turn.speaker is Speaker.USER]
    for text_before in reversed(told[:-1][-_MAX_TURNS_BACK:]):
        named = [option for line in text_before.split("\n") for option in options_in(line)]
        if named:
            return named[0]
    return None
