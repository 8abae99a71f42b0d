"""A step that only looks is done when what it prints is pasted."""

from __future__ import annotations

from kb.conversation.done_steps import FixStep, only_looks
from kb.conversation.interpret import is_output
from kb.conversation.replies.meant import task_shown
from kb.conversation.state import Conversation, Statement
from kb.corpus.base import KnowledgeBase


def looked_now(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Statement | None:
    """That the step which was shown last was done; None for words of a person, and where it would
    change something."""
    shown = task_shown(conversation, knowledge)
    if not isinstance(shown, FixStep) or not only_looks(shown.step):
        return None
    if not is_output(text, knowledge):
        return None
    return Statement(text, done=((shown.incident.id, shown.number),))
