"""A step that only looks is done when what it prints is pasted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.checks.recognise import is_prompt
from kb.conversation.done_steps import FixStep, only_looks
from kb.conversation.interpret import is_output
from kb.conversation.language import Language, in_language, say
from kb.conversation.next_step import open_steps
from kb.conversation.replies.meant import task_shown
from kb.conversation.state import Conversation, Statement
from kb.corpus.base import KnowledgeBase

_PROGRAM = re.compile(r"(?:^|[|;&(`#$%>]|\bsudo|\bexec|--|\bdo)\s*([a-z][a-z0-9_.-]{2,30})", re.M)
_EVERYWHERE = frozenset(
    "cat grep egrep echo head tail sort awk sed for while python python3 bash sudo srun docker"
    " kubectl ssh dmesg journalctl tee xargs wc cut find true false".split()
)
"""Programs that stand in commands of every kind."""
_PATH = re.compile(r"(?<![\w.])(?:/[\w.*-]+){3,}")
"""A file or directory that few commands look at."""


def looked_now(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Statement | None:
    """That the steps whose output is pasted were done: the one that was shown last, and those of
    the first record with a program or file of the prompts, and how to read what they print; None
    for words of a person."""
    is_paste = "\n" in text or is_prompt(text)
    if not is_paste or not is_output(text, knowledge):
        return None
    shown = task_shown(conversation, knowledge)
    run = list(_run(text, conversation))
    taken = {(one.incident.id, one.number) for one in run}
    if isinstance(shown, FixStep) and only_looks(shown.step):
        taken.add((shown.incident.id, shown.number))
    if not taken:
        return None
    says = (_meaning(one, conversation.language) for one in run if one.step.why)
    return Statement(text, done=tuple(sorted(taken)), says=tuple(says))


def _meaning(step: FixStep, language: Language) -> str:
    """What a step says of its output."""
    why = in_language(step.step.why or "", language)
    return say("step-reads", language, number=step.number, id=step.incident.id, why=why)


def _run(text: str, conversation: Conversation) -> Iterator[FixStep]:
    """The open steps of the first record that only look, with a program or file of the prompts."""
    prompts = "\n".join(line for line in text.split("\n") if is_prompt(line))
    run = _names(prompts)
    for match in conversation.matches[:1] if run else ():
        for task in open_steps(match.incident, conversation):
            if only_looks(task.step) and run & _names(task.step.command or ""):
                yield task


def _names(commands: str) -> set[str]:
    """Programs and files that tell which commands these are."""
    return set(_PROGRAM.findall(commands)) - _EVERYWHERE | set(_PATH.findall(commands))
