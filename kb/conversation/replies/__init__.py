"""What a good colleague answers to each act of a message. A module for each family of acts."""

from kb.conversation.replies.answer import Answer, not_understood, paragraphs
from kb.conversation.replies.table import answer_to

__all__ = ["Answer", "answer_to", "not_understood", "paragraphs"]
