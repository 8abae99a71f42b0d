"""A chat that knows the case: state is a value, each turn a pure function of it. No model."""

from kb.conversation.cases import begin, greet
from kb.conversation.dialogue import (
    leave_empty,
    leave_out,
    leave_too_long,
    reply,
)
from kb.conversation.state import (
    MAX_CONVERSATION_MATCHES,
    Conversation,
    ReplyAct,
    Speaker,
    Statement,
    Turn,
)

__all__ = [
    "MAX_CONVERSATION_MATCHES",
    "Conversation",
    "ReplyAct",
    "Speaker",
    "Statement",
    "Turn",
    "begin",
    "greet",
    "leave_empty",
    "leave_out",
    "leave_too_long",
    "reply",
]
