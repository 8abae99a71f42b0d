"""The acts of a message: what each part of it does, told from examples in both languages."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from index.encoder import Encoder


class Act(StrEnum):
    """What a part of a message does."""

    PROBLEM = "problem"
    OBSERVATION = "observation"
    ENVIRONMENT = "environment"
    TRIED = "tried"
    CORRECTION = "correction"
    NEXT = "next"
    WHY = "why"
    WHY_NOT = "why_not"
    EXPLAIN_TERM = "explain_term"
    HOW = "how"
    SAFE = "safe"
    COST = "cost"
    MOST_LIKELY = "most_likely"
    OTHERS = "others"
    SHOW_FIX = "show_fix"
    SUMMARISE = "summarise"
    HAND_OVER = "hand_over"
    START_OVER = "start_over"
    UNDO = "undo"
    SUCCESS = "success"
    FAILURE = "failure"
    THANKS = "thanks"
    FRUSTRATION = "frustration"
    GREETING = "greeting"
    CANNOT = "cannot"
    DONT_KNOW = "dont_know"
    YES = "yes"
    NO = "no"
    WHO = "who"
    OFF_TOPIC = "off_topic"
    HOSTILE = "hostile"
    OTHER = "other"


class Acted(msgspec.Struct, frozen=True):
    """A part of a message, and what it does."""

    act: Act
    text: str


def acts_of(_text: str, _encoder: Encoder) -> tuple[Acted, ...]:
    """The parts of a message in their order; empty where all of it is evidence."""
    return ()
