"""What to do next, after all that was said and pasted: a check to run, or a step of a fix."""

from __future__ import annotations

from collections.abc import Iterator

from kb.check import Check, JobState
from kb.conversation.done_steps import FixStep, only_looks
from kb.conversation.state import Conversation, Speaker
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import (
    NextCheck,
    PlaybookMatch,
    Standing,
    cause_pointed_to,
    command_for,
    next_check,
    symptom_leads,
    weighed_playbooks,
)
from kb.incident import Incident
from kb.playbook import Cause, Playbook
from kb.verdict import Verdict

_TURNS_REMEMBERED = 3
"""Of the tool, in which the user still sees what to do."""
Task = NextCheck | FixStep
"""Something to do."""


def name_of(task: Task) -> str:
    """How `Turn.shows` and `Statement.set_aside` name it."""
    if isinstance(task, NextCheck):
        return task.check.id
    return f"{task.incident.id}#{task.number}"


def shown_lately(conversation: Conversation) -> frozenset[str]:
    """What the last turns of the tool told to do: said again, it would only be longer."""
    tools = [turn for turn in conversation.turns if turn.speaker is Speaker.TOOL]
    return frozenset(name for turn in tools[-_TURNS_REMEMBERED:] for name in turn.shows)


def playbooks_of(conversation: Conversation, knowledge: KnowledgeBase) -> tuple[PlaybookMatch, ...]:
    """What the symptom may be, best first, after all that was said."""
    before = Standing(conversation.diagnosis.candidates, _symptoms_told(conversation))
    after, ratios = conversation.matches, conversation.readings
    return weighed_playbooks(before, after, ratios, knowledge.guides)


def _symptoms_told(conversation: Conversation) -> tuple[PlaybookMatch, ...]:
    """The symptoms of the log and of what was told behind it. Words that name one clearly count as
    much as all before them: people repair one thing and meet the next."""
    told = conversation.diagnosis.playbooks
    for statement in conversation.statements:
        if statement.symptoms:
            told = _in_equal_parts(told, statement.symptoms)
    return told


def _in_equal_parts(
    one: tuple[PlaybookMatch, ...], other: tuple[PlaybookMatch, ...]
) -> tuple[PlaybookMatch, ...]:
    """Either list, with half of its shares; what the incidents leave of them comes later."""
    books = {match.playbook.id: match.playbook for match in (*one, *other)}
    shares = dict.fromkeys(books, 0.0)
    for match in (*one, *other):
        shares[match.playbook.id] += match.share / 2
    return tuple(PlaybookMatch(books[name], share, share) for name, share in shares.items())


def symptom_of(conversation: Conversation, knowledge: KnowledgeBase) -> PlaybookMatch | None:
    """The symptom, where it is known better than its cause."""
    if conversation.verdict is Verdict.MATCH:
        return None
    playbooks = playbooks_of(conversation, knowledge)
    only_words = not (conversation.diagnosis.evidence.is_log or conversation.statements)
    leads = symptom_leads(playbooks, conversation.matches, in_words=only_words)
    return playbooks[0] if leads else None


def cause_shown(
    conversation: Conversation, knowledge: KnowledgeBase
) -> tuple[Playbook, Cause] | None:
    """The likeliest cause of a leading symptom for which a line or an output speaks."""
    playbooks = playbooks_of(conversation, knowledge)
    return cause_pointed_to(playbooks, conversation.matches, conversation.readings)


def check_to_run(conversation: Conversation, knowledge: KnowledgeBase) -> NextCheck | None:
    """The one that the last output asks for, or else the one that tells most. None for a match,
    whose fix is the way, for what is solved, and where no outcome would change what to do."""
    if conversation.verdict is Verdict.MATCH or conversation.solved:
        return None
    followed = _followed(conversation, knowledge)
    if followed:
        return followed
    playbooks = playbooks_of(conversation, knowledge)
    return next_check(
        Standing(conversation.matches, playbooks, conversation.readings),
        conversation.diagnosis.evidence,
        knowledge,
        read=conversation.checks | conversation.set_aside,
        job_ended=conversation.job_ended,
    )


def _followed(conversation: Conversation, knowledge: KnowledgeBase) -> NextCheck | None:
    """The check to which what was read last leads: a trail is followed to its end."""
    read = (one.observations for one in reversed(conversation.statements) if one.observations)
    for seen in next(read, ()):
        guide = knowledge.guides.by_id.get(seen.next or "") if seen.abnormal else None
        if isinstance(guide, Check) and _can_run(guide, conversation):
            command = command_for(guide, conversation.diagnosis.evidence)
            return NextCheck(guide, command, guide.header.question)
    return None


def _can_run(check: Check, conversation: Conversation) -> bool:
    """Whether it was not run, was not set aside, and does not need a job that is gone."""
    is_gone = check.header.needs_job is JobState.RUNNING and conversation.job_ended
    return check.id not in conversation.checks | conversation.set_aside and not is_gone


def open_steps(incident: Incident, conversation: Conversation) -> Iterator[FixStep]:
    """The steps of its fix that were neither done nor set aside."""
    for number, step in enumerate(incident.body.fix, 1):
        task = FixStep(incident, number, step)
        if (incident.id, number) not in conversation.done and (
            name_of(task) not in conversation.set_aside
        ):
            yield task


def task_of(conversation: Conversation, knowledge: KnowledgeBase) -> Task | None:
    """What to do now. Below a match, look before anything is changed: the check to which an output
    leads, that of a symptom that is likelier than any record, or the one that is there where the
    record's first step changes something."""
    is_open = conversation.verdict is not Verdict.MATCH and not conversation.solved
    followed = _followed(conversation, knowledge) if is_open else None
    if followed:
        return followed
    incident = conversation.matches[0].incident if conversation.matches else None
    step = next(open_steps(incident, conversation), None) if incident else None
    if step and not symptom_of(conversation, knowledge):
        begun = any(name == step.incident.id for name, _number in conversation.done)
        if begun or only_looks(step.step):
            return step
    return check_to_run(conversation, knowledge) or step
