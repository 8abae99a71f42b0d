"""What a reply to a part of a message comes to, before it is a turn."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kb.check import Check
from kb.conversation.language import Language, in_language, say
from kb.conversation.next_step import Task, name_of
from kb.conversation.speech import describe_step, described_check, prose
from kb.conversation.state import Statement
from kb.diagnosis import NextCheck
from kb.evidence import EvidenceLine
from kb.playbook import Cause, Playbook


class Answer(msgspec.Struct, frozen=True):
    """What to say to a part of a message."""

    text: str
    lines: tuple[EvidenceLine, ...] = ()
    """Those that it cites."""
    shows: tuple[str, ...] = ()
    """As in `Turn.shows`."""
    records: tuple[str, ...] = ()
    """Ids that it may cite although they are no candidates."""
    statement: Statement | None = None
    """What the part states."""


def paragraphs(parts: Iterable[str]) -> str:
    """Each part on a line of its own."""
    return "\n".join(filter(None, parts))


def sentences(parts: Iterable[str]) -> str:
    """One after the other on one line."""
    return " ".join(filter(None, parts))


def with_task(said: str, task: Task, language: Language) -> Answer:
    """Something said, and below it what to do, ready to copy."""
    text = described_task(task, language)
    records = () if isinstance(task, NextCheck) else (task.incident.id,)
    return Answer(paragraphs([said, text]), shows=(name_of(task),), records=records)


def described_task(task: Task, language: Language) -> str:
    """A check or a step, its command ready to copy."""
    if isinstance(task, NextCheck):
        return described_check(task, language)
    return describe_step(task.incident.id, task.number, task.step, language)


def in_short(task: Task, language: Language) -> str:
    """A check or a step in a line, without its command."""
    if isinstance(task, NextCheck):
        return cite_check(task.check, language)
    text = in_language(task.step.text, language).replace("\n", " ")
    return f"{task.number}. {text} [{task.incident.id}]"


def cite_check(check: Check, language: Language) -> str:
    """A check by its title and id."""
    return f"{in_language(check.title, language)} [{check.id}]"


def named_cause(playbook: Playbook, cause: Cause, key: str, language: Language) -> str:
    """A cause of a symptom, and its remedy, in the sentence of this key."""
    return say(
        key,
        language,
        title=in_language(playbook.title, language),
        id=playbook.id,
        cause=prose(cause.cause, language),
        remedy=in_language(cause.remedy, language).rstrip(".。"),
    )
