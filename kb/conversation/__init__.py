"""A chat that knows the case: state is a value, each turn a pure function of it. No model."""

from kb.conversation.dialogue import begin, leave_out, reply
from kb.conversation.state import MAX_CONVERSATION_MATCHES, Conversation, Speaker, Statement, Turn

__all__ = [
    "MAX_CONVERSATION_MATCHES",
    "Conversation",
    "Speaker",
    "Statement",
    "Turn",
    "begin",
    "leave_out",
    "reply",
]
