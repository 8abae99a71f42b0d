"""What is to be done, in the words of the screen: a check to run, or a step of a fix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.conversation.next_step import Task
    from tui.case import Case

_MAX_COMMAND_CHARACTERS = 30
"""Of a command in a suggestion, which is one line."""


def command_of(task: Task) -> str | None:
    """What is run; None for a step without a command."""
    from kb.diagnosis import NextCheck

    return task.command.run if isinstance(task, NextCheck) else task.step.command


def title_of(task: Task) -> str:
    """How it is called above a sentence about it."""
    from kb.diagnosis import NextCheck

    return "Check" if isinstance(task, NextCheck) else f"Step {task.number}"


def heading_of(task: Task) -> str:
    """What kind of thing is to be done first."""
    from kb.diagnosis import NextCheck

    return "Check next" if isinstance(task, NextCheck) else "Look first"


def overview_line(case: Case) -> str:
    """What stands above the candidates while none of them is sure."""
    from kb.diagnosis import NextCheck

    task = case.look
    if task is None:
        return "Which of these is it?"
    what = task.check.title if isinstance(task, NextCheck) else task.step.text
    return f"{heading_of(task)}: {' '.join(what.split())}"


def suggested(case: Case) -> list[str]:
    """What could be said next."""
    conversation = case.conversation
    why_not = ["why not 2?"] if len(case.matches) > 1 else []
    if conversation.solved:
        return ["thanks", "what did I tell you?"]
    if conversation.verdict == "match":
        return ["step 1 done", "is it safe?", "why?", *why_not, "it worked"]
    if conversation.verdict == "healthy":
        return ["what is wrong? tell it in a sentence"]
    return [*_asked(case), "what next?", "why?", *why_not]


def _asked(case: Case) -> Iterator[str]:
    """What would tell most: the answer to the question, or the output of the check."""
    question = case.conversation.question
    if question:
        yield f"answer 1-{len(question.answers)}, or in words"
    elif case.look and command_of(case.look):
        yield f"paste what {_short(case.look)} prints"


def _short(task: Task) -> str:
    first, *rest = (command_of(task) or "").split("\n")
    whole = first[:_MAX_COMMAND_CHARACTERS]
    return whole if whole == first and not rest else f"{whole} …"
