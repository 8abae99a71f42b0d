"""What a message is about: the record, the check or the step that it names, or means by "it"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from index.tokens import tokenize
from kb.check import Check, Place
from kb.conversation.acts import MAX_TALK_CHARACTERS
from kb.conversation.commands import to_command
from kb.conversation.done_steps import (
    FixStep,
    names_setting,
    only_looks,
    step_by_number,
    steps_alike,
)
from kb.conversation.naming import programs_of, record_by_name
from kb.conversation.next_step import Task, name_of, playbooks_of, symptom_of, task_of
from kb.conversation.scope import Scope, clauses_of
from kb.conversation.state import Conversation, Speaker
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck, PlaybookMatch
from kb.evidence.glossary import translate
from kb.incident import Incident
from kb.playbook import Cause

_POSITION = re.compile(
    r"(?:\b(?:number|no\.?|candidate|option|record|cause|match)\s*#?|#)(?P<number>\d{1,2})\b"
    r"|\b(?:the )?(?P<ordinal>first|second|third|fourth|fifth)\s+"
    r"(?:one|candidate|record|cause|option|match|suspect)\b"
    r"|(?P<zh>第\s*[一二三四五\d]{1,2}\s*(?:个|条|名|种))",
    re.IGNORECASE,
)
_ID = re.compile(r"(?<![\w.-])[A-Za-z0-9.]++(?:-[A-Za-z0-9.]++){2,20}")
_MAX_IDS_LOOKED_UP = 5
"""Words of a message that may be ids."""
_GENERIC = re.compile(
    r"\b(?:run|do|did|command|commands|step|steps|safe|risk|risky|dangerous|long|take|takes|cost"
    r"|costs|show|fix|check|checks|job|jobs|kill|exactly|execute|lose|disturb|it|that|this|again"
    r"|where|how|which|what|node|nodes|training|running|repeat|remedy|time|minutes|hours|still"
    r"|start|restart|break|anything|something|production|need|please|worked|works|helped|fixed"
    r"|solved|thanks|now|after|with|these|those|them|to|is|there|really)\b",
    re.IGNORECASE,
)
"""Words of requests, which name no step by themselves."""
_WORD = re.compile(r"[a-z][a-z0-9_.-]{2,40}")
_PLACES = (
    (Place.K8S, r"\bk8s\b|kubernetes|kubectl|\bpods?\b"),
    (Place.SLURM, r"\bslurm\b|\bsrun\b|\bsbatch\b"),
    (Place.DOCKER, r"\bdocker\b|\bpodman\b|\bcontainers?\b|容器"),
    (Place.CLUSTER, r"\b(?:all|every|each|whole)\b.{0,12}\b(?:nodes?|hosts?|machines?|cluster)\b"
     r"|\bclush\b|\bpdsh\b|(?:所有|每台|每个|全部).{0,4}(?:节点|机器)"),
    (Place.BARE, r"\bbare[ -]?metal\b|\bon the host\b|裸机|宿主机"),
)  # fmt: skip
"""Environments, and how a message names them."""
_SYSTEMS = {"kubernetes": Place.K8S, "docker": Place.DOCKER, "slurm": Place.SLURM}
_MIN_CAUSE_SHARE = 0.5
"""Minimum share of the words of a guess that a cause has, from 0 to 1."""
SETTING = re.compile(r"(?<![\w-])(?:--[a-z][\w-]{2,60}|[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+){1,8})")
"""The name of a flag, an option or a variable."""
_LOOKING = frozenset("check see find look show run set get know tell test line really don".split())
"""Words of questions, in the form of `tokenize`, that name no check."""
_OF_IT = re.compile(
    r"\b(?:run|do|execute|try|take|paste|read|start|set|apply|change|configure|put) "
    r"(?:that|this|it|these|those)\b"
    r"|\bthat command\b"
    r"|(?:这个|那个|它|这条|这一步|上面的).{0,6}(?:怎么|如何|在哪)|(?:怎么|如何|在哪).{0,3}(?:跑|执行|运行|做|贴)",
    re.IGNORECASE,
)
"""Asks about what was told to do."""
_MAX_TURNS_BACK = 6
"""Turns in which "it" is looked for; what was said before is forgotten."""


def record_meant(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Incident | None:
    """The record that a message names by its position or id; None where it names none."""
    command = to_command(text)
    if command and command.name:
        return record_by_name(command.name, conversation, knowledge)
    for word in _ID.findall(text)[:_MAX_IDS_LOOKED_UP]:
        found = knowledge.incident(word)
        if found:
            return found
    position = _POSITION.search(text)
    if not position:
        return None
    name = position["number"] or position["ordinal"] or position["zh"].replace(" ", "")
    return record_by_name(name.lower(), conversation, knowledge)


def first_record(conversation: Conversation) -> Incident | None:
    """The likeliest one."""
    return conversation.matches[0].incident if conversation.matches else None


def task_meant(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Task | None:
    """The check or step that a message names, the one that was shown last, or the one to do now."""
    return (
        task_named(text, conversation, knowledge)
        or task_shown(conversation, knowledge, text)
        or task_of(conversation, knowledge)
    )


def is_of_it(text: str) -> bool:
    """Whether a text asks about what was told to do, and names nothing."""
    return _OF_IT.search(text) is not None


def task_named(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Task | None:
    """The check or step that a message names, by its number, a program, or words of it."""
    named = record_meant(text, conversation, knowledge)
    incident = named or first_record(conversation)
    incidents = [incident] if incident else []
    numbered = step_by_number(text, incidents)
    if numbered:
        return numbered[0]
    setting = step_of_setting(text, incident)
    if setting and not only_looks(setting.step):
        return setting
    check = _check_named(text, conversation, knowledge)
    if check:
        return _as_task(check, text, conversation)
    if setting:
        return setting
    if named is None and symptom_of(conversation, knowledge):
        return None  # the first record is a guess, and its steps are like any words
    return next(steps_meant(text, incidents, knowledge), None)


def step_of_setting(text: str, incident: Incident | None) -> FixStep | None:
    """The step that sets what the message names, or else one that speaks of it."""
    settings = set(SETTING.findall(text))
    steps = [
        FixStep(incident, number, step)
        for number, step in enumerate(incident.body.fix if incident else (), 1)
        if incident and names_setting(step, settings)
    ]
    changing = (step for step in steps if not only_looks(step.step))
    return next(changing, next(iter(steps), None))


def task_shown(conversation: Conversation, knowledge: KnowledgeBase, text: str = "") -> Task | None:
    """The one thing that the last turns told to do, unless it is done or set aside."""
    for turn in reversed(conversation.turns[-_MAX_TURNS_BACK:]):
        if len(turn.shows) == 1:
            task = _by_name(turn.shows[0], text, conversation, knowledge)
            return task if task and _is_open(task, conversation) else None
    return None


def place_of(text: str, conversation: Conversation) -> Place:
    """Where a command is to be run: as the message says, or as the log and the user said."""
    named = place_named(text)
    spoken = (turn.text for turn in reversed(conversation.turns) if turn.speaker is Speaker.USER)
    for said in () if named else spoken:
        named = named or _place_told(said)
    running = conversation.diagnosis.evidence.facts.systems
    known = (place for system, place in _SYSTEMS.items() if system in running)
    return named or next(known, Place.BARE)


def _place_told(text: str) -> Place | None:
    """The environment that a message says the job runs in."""
    if len(text) > MAX_TALK_CHARACTERS:
        return None
    clauses = (one.text for one in clauses_of(text) if one.scope is Scope.AFFIRMED)
    return next(filter(None, map(place_named, clauses)), None)


def place_named(text: str) -> Place | None:
    """The environment that a message names."""
    found = (place for place, words in _PLACES if re.search(words, text, re.IGNORECASE))
    return next(found, None)


def _is_open(task: Task, conversation: Conversation) -> bool:
    if name_of(task) in conversation.set_aside:
        return False
    if isinstance(task, NextCheck):
        return task.check.id not in conversation.checks
    return (task.incident.id, task.number) not in conversation.done


def _by_name(
    name: str, text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Task | None:
    identifier, _hash, number = name.partition("#")
    if not number:
        guide = knowledge.guides.by_id.get(identifier)
        return _as_task(guide, text, conversation) if isinstance(guide, Check) else None
    incident = conversation.incidents.get(identifier) or knowledge.incident(identifier)
    steps = incident.body.fix if incident else ()
    place = int(number)
    return FixStep(incident, place, steps[place - 1]) if incident and place <= len(steps) else None


def _as_task(check: Check, text: str, conversation: Conversation) -> NextCheck:
    command = check.command(place_of(text, conversation))
    return NextCheck(check, command, check.header.question)


def _check_named(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Check | None:
    """The check whose id or program the text holds; of several, one of a leading playbook, then
    the one with the most words of the text in its id."""
    lower = text.lower()
    words = set(_WORD.findall(lower))
    leading = [
        step.check
        for match in playbooks_of(conversation, knowledge)
        for step in match.playbook.body.checks
    ]
    named = [
        guide
        for guide in knowledge.guides.by_id.values()
        if isinstance(guide, Check) and (guide.id in lower or words & programs_of(guide))
    ]

    def fits(check: Check) -> tuple[bool, int, bool]:
        parts = sum(part in words for part in check.id.split("-"))
        return check.id in lower, parts, check.id in leading

    return max(named, key=fits, default=None)


def check_about(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> NextCheck | None:
    """The check whose name, title or question has the rarest words of a text; None without any."""
    asked = set(tokenize(translate(text))) - _LOOKING
    best = knowledge.guides.check_names.nearest(asked)
    return _as_task(best, text, conversation) if best else None


def steps_meant(
    text: str, incidents: list[Incident], knowledge: KnowledgeBase
) -> Iterator[FixStep]:
    """The step of each record that the telling words of a message are like."""
    telling = " ".join(_GENERIC.sub(" ", translate(text)).split()).strip(" ?.!,")
    if telling:
        yield from steps_alike(telling, incidents, knowledge)


def cause_like(
    guess: str, conversation: Conversation, knowledge: KnowledgeBase, least: int = 1
) -> tuple[PlaybookMatch, Cause] | None:
    """The cause of a leading playbook that the guess names, with this many words at least."""
    said = set(tokenize(translate(guess)))
    best, found = _MIN_CAUSE_SHARE, None
    for match in playbooks_of(conversation, knowledge):
        for cause in match.playbook.body.causes:
            words = set(tokenize(f"{cause.key.replace('-', ' ')} {cause.cause} {cause.tell}"))
            shared = len(said & words)
            share = shared / max(len(said), 1) if shared >= least else 0.0
            if share > best or (found is None and share == best):
                best, found = share, (match, cause)
    return found
