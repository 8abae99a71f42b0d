"""What tests of the conversation share."""

from __future__ import annotations

from kb.conversation import Conversation, begin, reply
from kb.conversation.state import Speaker
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log


def talk(knowledge: KnowledgeBase, opening: str, *texts: str) -> Conversation:
    """The conversation about an opening after some messages."""
    conversation = begin(diagnose(Log.from_text(opening), knowledge))
    for text in texts:
        conversation = reply(conversation, text, knowledge)
    return conversation


def said(conversation: Conversation) -> str:
    """The last answer."""
    assert conversation.turns[-1].speaker is Speaker.TOOL
    return conversation.turns[-1].text
