"""A command of the user's own: whether it may be run, what it does, and what is lost."""

from __future__ import annotations

from kb.conversation.acts import Acted
from kb.conversation.done_steps import FixStep, step_by_number
from kb.conversation.known_commands import KnownCommand, command_asked
from kb.conversation.language import say
from kb.conversation.next_step import Task, name_of
from kb.conversation.replies.answer import Answer, in_short, paragraphs, sentences
from kb.conversation.replies.meant import first_record, task_named
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck


def known_command(
    acted: Acted, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer | None:
    """The words of the table for it, and the step of the leading record that runs it. None where
    the message names a step or a check that does: these have an answer of their own."""
    command, language = command_asked(acted.text), conversation.language
    if command is None:
        return None
    task = task_named(acted.text, conversation, knowledge)
    if task and _runs(task, command) and _is_named(task, acted.text):
        return None
    words = command.words(language)
    step = _step_of(command, conversation)
    parts = [
        say(f"command-{command.leave}", language, name=command.name, when=words.when),
        sentences([words.does, words.lost, words.undo]),
        say("command-first", language, what=words.first) if words.first else "",
        say("command-step", language, what=in_short(step, language)) if step else "",
        say("term-source", language, source=command.source),
    ]
    shows = (name_of(step),) if step else ()
    return Answer(paragraphs(parts), shows=shows, records=(step.incident.id,) if step else ())


def _step_of(command: KnownCommand, conversation: Conversation) -> FixStep | None:
    """The first step of the leading record whose command it is."""
    incident = first_record(conversation)
    steps = enumerate(incident.body.fix, 1) if incident else ()
    found = (FixStep(incident, number, step) for number, step in steps if incident)
    return next((one for one in found if command.is_in(one.step.command or "")), None)


def _is_named(task: Task, text: str) -> bool:
    """Whether a message names it as such: a check, or a step by its number."""
    return isinstance(task, NextCheck) or bool(step_by_number(text, [task.incident]))


def _runs(task: Task, command: KnownCommand) -> bool:
    if isinstance(task, NextCheck):
        return command.is_in(task.command.run)
    return command.is_in(f"{task.step.text}\n{task.step.command or ''}")
