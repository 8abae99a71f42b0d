"""Which record the user means: by position, id or words of the title."""

from __future__ import annotations

import re

from index.tokens import tokenize
from kb.check import Check
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.incident import Incident

_POSITION = re.compile(
    r"(?:number|no\.?|position|the|第)?\s*#?(\d{1,2})(?:st|nd|rd|th|个|号)?(?: one)?"
)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_ORDINALS |= {"第一个": 1, "第二个": 2, "第三个": 3, "第四个": 4, "第五个": 5}
_MIN_NAME_SHARE = 0.6
"""Minimum share of the words of a name that id and title of its record contain, from 0 to 1: people
add a word or two of their own."""

_PROGRAM = re.compile(r"(?m)(?:^|[|;&(`]|\bsudo|\bexec|--|\bdo)\s*([a-z][a-z0-9_.-]{2,30})")


def record_by_name(
    name: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Incident | None:
    """The record that a name stands for; the first one in order where the name is empty."""
    order = [match.incident for match in conversation.matches]
    position = position_of(name)
    if not name or position:
        number = position or 1
        return order[number - 1] if 0 < number <= len(order) else None
    rest = [i for i in conversation.incidents.values() if i not in order]
    near = _best([*order, *rest], name)
    return near or _best(knowledge.incidents(), name)


def position_of(name: str) -> int | None:
    """The position that a name is, from 1; None where it is none."""
    match = _POSITION.fullmatch(name)
    ordinal = name.lower().removeprefix("the ").removesuffix(" one")
    return int(match[1]) if match else _ORDINALS.get(ordinal)


def _best(incidents: list[Incident], name: str) -> Incident | None:
    """The record whose id and title hold most of the name's words."""
    words = set(tokenize(name))
    shares = [(_share(words, incident, name), incident) for incident in incidents]
    share, best = max(shares, key=lambda pair: pair[0], default=(0.0, None))
    return best if share >= _MIN_NAME_SHARE else None


def _share(words: set[str], incident: Incident, name: str) -> float:
    if incident.id == name.strip("[]"):
        return 2.0
    held = set(tokenize(f"{incident.id.replace('-', ' ')} {incident.title}"))
    return len(words & held) / len(words) if words else 0.0


def programs_of(check: Check) -> set[str]:
    """The programs of its command that its id begins with: `py-spy` of py-spy-dump."""
    return {
        program
        for program in _PROGRAM.findall(check.body.commands[0].run)
        if check.id == program or check.id.startswith(f"{program}-")
    }
