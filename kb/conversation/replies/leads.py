"""A report of the user's own backlog, opened by its number."""

from __future__ import annotations

import re

from kb.conversation.acts import Acted
from kb.conversation.language import say
from kb.conversation.leads import describe_lead
from kb.conversation.replies.answer import Answer
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase

_NUMBER = re.compile(r"\d+")


def lead(acted: Acted, conversation: Conversation, _knowledge: KnowledgeBase) -> Answer | None:
    """What it says; None where there are no leads."""
    leads, named = conversation.diagnosis.leads, _NUMBER.search(acted.text)
    if not leads:
        return None
    place = int(named[0]) if named else 1
    if not 1 <= place <= len(leads):
        return Answer(say("lead-unknown", conversation.language, number=len(leads)))
    return Answer(describe_lead(leads[place - 1], conversation.diagnosis, conversation.language))
