"""The command of a check or step for all hosts at once. It is written, and never run."""

from __future__ import annotations

import re
import shlex

from kb.check import Place, Risk
from kb.conversation.acts import Acted
from kb.conversation.done_steps import FixStep, only_looks
from kb.conversation.language import say
from kb.conversation.next_step import Task, name_of, open_steps
from kb.conversation.replies.answer import Answer, in_short, paragraphs
from kb.conversation.replies.how import placeholders
from kb.conversation.replies.meant import (
    check_about,
    is_of_it,
    place_of,
    task_meant,
    task_named,
)
from kb.conversation.speech import risk_in_words
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck

_FORMS = {
    "srun": "srun --jobid=JOBID --overlap --ntasks-per-node=1 --label bash -c {command} | sort -n",
    "kubectl": "for p in $(kubectl get pods -n NS -l JOBLABEL -o name); do\n"
    '    echo "== $p"; kubectl exec -n NS "$p" -- bash -c {command}\ndone',
    "pdsh": "pdsh -w NODES {command} | dshbak -c",
    "ansible": "ansible -i NODES, all -m shell -a {command}",
    "clush": "clush -bw NODES {command}",
}
"""Programs that run a command on all hosts of a job, and how."""
_OF_PLACE = {Place.SLURM: "srun", Place.K8S: "kubectl"}
_ALREADY = re.compile(r"\b(?:srun|clush|pdsh|kubectl|mpirun|ansible|squeue|sinfo|scontrol|sacct)\b")
"""A command with these reaches all hosts, or needs none of them."""
_ANY_COMMAND = "COMMAND"
_LOADS = frozenset({Risk.LOADS_GPU, Risk.LOADS_FABRIC, Risk.RESTARTS})


def everywhere(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """The form for all hosts of what was told to do; where that cannot be, of any command. None for
    a check that is code of the training: it runs on all ranks as it is."""
    language = conversation.language
    program = _program(acted.text, conversation)
    task = _meant(acted.text, conversation, knowledge)
    if isinstance(task, FixStep) and not only_looks(task.step):
        what = in_short(task, language)
        caution = say("everywhere-changes", language, what=what)
        looking = (one for one in open_steps(task.incident, conversation) if only_looks(one.step))
        task = next(looking, None)
    else:
        caution = ""
    command = _shell_command(task, program)
    if command is None and isinstance(task, NextCheck):
        return None
    if command is None or task is None:
        said = caution or say("everywhere-any", language)
        return Answer(paragraphs([said, *_form(program, _ANY_COMMAND, conversation)]))
    names, records = (name_of(task),), _records(task)
    if command.startswith("clush"):
        hint = say("everywhere-read", language)
        head = say("everywhere", language, what=in_short(task, language))
        text = paragraphs(
            [caution or head, _fenced(command), placeholders(command, language), hint]
        )
        return Answer(text, shows=names, records=records)
    if _ALREADY.search(command):
        what = in_short(task, language)
        text = paragraphs([caution, say("everywhere-once", language, what=what), _fenced(command)])
        return Answer(text, shows=names, records=records)
    parts = [caution or say("everywhere", language, what=in_short(task, language))]
    if isinstance(task, NextCheck) and task.check.header.cost.risk in _LOADS:
        risk = risk_in_words(task.check.header, language)
        parts.append(say("everywhere-loads", language, risk=risk))
    return Answer(
        paragraphs([*parts, *_form(program, command, conversation)]), shows=names, records=records
    )


def command_for_all(task: Task, conversation: Conversation) -> str | None:
    """The command of a check or step for all hosts, by the scheduler of the job; None for what
    changes something, and for what is no command for each host."""
    if isinstance(task, FixStep) and not only_looks(task.step):
        return None
    program = _program("", conversation)
    command = _shell_command(task, program)
    if command is None or _ALREADY.search(command):
        return command
    return _FORMS[program].format(command=shlex.quote(command))


def _meant(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Task | None:
    """What is named, or asked about; of "it" what was shown."""
    named = task_named(text, conversation, knowledge)
    about = None if is_of_it(text) else check_about(text, conversation, knowledge)
    return named or about or task_meant(text, conversation, knowledge)


def _program(text: str, conversation: Conversation) -> str:
    """The one that the message names, or that of the scheduler of the job."""
    named = (name for name in _FORMS if name in text.lower())
    return next(named, _OF_PLACE.get(place_of("", conversation), "clush"))


def _shell_command(task: Task | None, program: str) -> str | None:
    """What is run on one host, or the form of the check for all; None for what is no shell
    command."""
    if isinstance(task, NextCheck):
        place = Place.CLUSTER if program == "clush" else Place.BARE
        command = task.check.command(place)
        return command.run if command.language == "sh" else None
    if task is None or task.step.language not in ("sh", "bash"):
        return None
    return task.step.command


def _form(program: str, command: str, conversation: Conversation) -> list[str]:
    language = conversation.language
    whole = _FORMS[program].format(command=shlex.quote(command))
    hint = say("everywhere-read" if command != _ANY_COMMAND else "everywhere-put", language)
    return [_fenced(whole), placeholders(whole, language), hint]


def _fenced(command: str) -> str:
    return f"```sh\n{command}\n```"


def _records(task: Task) -> tuple[str, ...]:
    return (task.incident.id,) if isinstance(task, FixStep) else ()
