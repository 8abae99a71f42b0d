"""Short answers to what people ask in between, whatever the case is: a file for each field."""

from kb.answers.table import KnownQuestion, known_questions

__all__ = ["KnownQuestion", "known_questions"]
