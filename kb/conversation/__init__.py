"""A chat that knows the case: state is a value, each turn a pure function of it. No model."""

from kb.conversation.dialogue import begin, reply
from kb.conversation.state import CONVERSATION_MATCHES, Conversation, Speaker, Told, Turn

__all__ = [
    "CONVERSATION_MATCHES",
    "Conversation",
    "Speaker",
    "Told",
    "Turn",
    "begin",
    "reply",
]
