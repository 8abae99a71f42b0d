"""How many questions it takes to tell look-alikes apart: a simulated user who knows the record.

The user answers from the record alone: `yes` to its own observations, `no` to an observation that
tells another record from it, and what its environment says; everything else is "don't know".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

import msgspec

from kb.conversation import Conversation, begin, reply
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import DONT_KNOW, diagnose
from kb.evaluate.lookalikes import LookalikeGroup
from kb.incident import Incident, Topology
from kb.log import Log
from kb.questions import QuestionPlan, Topic, observations
from kb.questions.environment import families_of, systems_of
from kb.questions.picks import NONE_OF_THESE

SCHEMA = 1
"""Grows when a key is removed or changes its meaning."""

Choice = Callable[[Conversation], QuestionPlan | None]
"""Which question is asked next."""

MAX_QUESTIONS = 60
"""Per conversation; a conversation that is not over by then never ends."""


class SimulatedTalk(msgspec.Struct, frozen=True):
    """One conversation that began with the line that a group shares."""

    record: str
    """The true one."""
    questions: int | None
    """Number of questions after which the true record was first and stayed first; None if never."""
    asked: int
    """Questions until there was none left that would change the order."""
    candidate: bool
    """Whether the engine had the true record among its candidates."""


class Rates(msgspec.Struct, frozen=True):
    """How it went over all conversations."""

    mean: float
    """Questions until the true record was first, over the conversations that got there."""
    mean_by_group: float
    """The mean over the groups of each group's mean, likewise."""
    reached: float
    """Share of the conversations that got there."""
    at_start: float
    """Share of those that needed no question."""
    asked: float
    """Questions until there was none left, on average."""


class GroupReport(msgspec.Struct, frozen=True):
    """A group with its conversations."""

    group: LookalikeGroup
    chosen: tuple[SimulatedTalk, ...]
    fixed: tuple[SimulatedTalk, ...]


class ChatReport(msgspec.Struct, frozen=True):
    """What the evaluation found."""

    schema: int
    groups: int
    """Groups whose line brings up any candidate."""
    silent: int
    """Groups whose line alone brings up nothing, so that no conversation starts."""
    records: int
    conversations: int
    not_candidates: int
    """Conversations whose true record the engine did not have among its candidates."""
    chosen: Rates
    """Questions as the conversation chooses them."""
    fixed: Rates
    """Observations of the candidates in their order, one after the other."""
    outcomes: tuple[GroupReport, ...]


def talk(
    group: LookalikeGroup, incidents: Mapping[str, Incident], knowledge: KnowledgeBase
) -> GroupReport | None:
    """Every record of a group as the true one, in both ways; None where no conversation starts."""
    start = begin(diagnose(Log.from_text(group.line), knowledge))
    if not start.matches:
        return None
    return GroupReport(
        group,
        tuple(_talk(start, incidents[i], knowledge, _chosen) for i in group.records),
        tuple(_talk(start, incidents[i], knowledge, _in_fixed_order) for i in group.records),
    )


def _talk(
    start: Conversation, true: Incident, knowledge: KnowledgeBase, choice: Choice
) -> SimulatedTalk:
    first = []
    for conversation in _turns(start, true, knowledge, choice):
        first.append(conversation.matches[:1] and conversation.matches[0].incident.id == true.id)
    asked = len(first) - 1
    questions = len(first)
    while questions and first[questions - 1]:
        questions -= 1
    return SimulatedTalk(true.id, questions if first[-1] else None, asked, true.id in start.pool)


def _turns(
    start: Conversation, true: Incident, knowledge: KnowledgeBase, choice: Choice
) -> Iterator[Conversation]:
    conversation = start
    yield conversation
    for _ in range(MAX_QUESTIONS):
        inquiry = choice(conversation)
        if inquiry is None:
            return
        asking = msgspec.structs.replace(conversation, inquiry=inquiry, turns=())
        conversation = reply(asking, answer(true, inquiry), knowledge)
        yield conversation


def _chosen(conversation: Conversation) -> QuestionPlan | None:
    return conversation.inquiry


def _in_fixed_order(conversation: Conversation) -> QuestionPlan | None:
    """The next observation of the candidates, in the order in which the log had put them."""
    candidates = [match.incident for match in conversation.diagnosis.candidates]
    left = (
        question
        for question in observations(candidates)
        if question.key not in conversation.settled_questions
    )
    return next(left, None)


def answer(true: Incident, inquiry: QuestionPlan) -> str:
    """The answer of an honest user who knows only the true record."""
    return _ANSWERS[inquiry.topic](true, inquiry) or DONT_KNOW


def _observation(true: Incident, inquiry: QuestionPlan) -> str | None:
    owner, other = inquiry.records
    return "yes" if true.id == owner else "no" if true.id == other else None


def _systems(true: Incident, inquiry: QuestionPlan) -> str | None:
    """The one of its systems that the record names first."""
    header, mine = true.header, systems_of(true)
    order = [*header.systems, *header.environment.frameworks, *sorted(mine)]
    offered = {option.text for option in inquiry.options} & mine
    return min(offered, key=order.index, default=NONE_OF_THESE)


def _nodes(true: Incident, _inquiry: QuestionPlan) -> str | None:
    topology = true.header.environment.topology
    return {Topology.SINGLE_NODE: "one", Topology.MULTI_NODE: "several"}.get(topology)


def _hardware(true: Incident, _inquiry: QuestionPlan) -> str | None:
    families = families_of(true)
    return families[0].name if len(families) == 1 else None


def _version(true: Incident, inquiry: QuestionPlan) -> str | None:
    """A user with an incident that is fixed runs a version before the fix."""
    return "no" if true.id in inquiry.records else None


_ANSWERS: dict[Topic, Callable[[Incident, QuestionPlan], str | None]] = {
    Topic.OBSERVATION: _observation,
    Topic.SYSTEMS: _systems,
    Topic.NODES: _nodes,
    Topic.HARDWARE: _hardware,
    Topic.VERSION: _version,
}


def measure_chat(reports: Sequence[GroupReport | None]) -> ChatReport:
    """Count over all groups."""
    spoken = [report for report in reports if report]
    talks = [talk for report in spoken for talk in report.chosen]
    return ChatReport(
        schema=SCHEMA,
        groups=len(spoken),
        silent=len(reports) - len(spoken),
        records=len({talk.record for talk in talks}),
        conversations=len(talks),
        not_candidates=sum(not talk.candidate for talk in talks),
        chosen=_rates([report.chosen for report in spoken]),
        fixed=_rates([report.fixed for report in spoken]),
        outcomes=tuple(spoken),
    )


def _rates(groups: Sequence[Sequence[SimulatedTalk]]) -> Rates:
    talks = [talk for group in groups for talk in group]
    reached = [talk.questions for talk in talks if talk.questions is not None]
    by_group = [
        [talk.questions for talk in group if talk.questions is not None] for group in groups
    ]
    return Rates(
        mean=_mean(reached),
        mean_by_group=_mean([fmean(questions) for questions in by_group if questions]),
        reached=_mean([talk.questions is not None for talk in talks]),
        at_start=_mean([talk.questions == 0 for talk in talks]),
        asked=_mean([talk.asked for talk in talks]),
    )


def _mean(values: Sequence[float]) -> float:
    return round(fmean(values), 3) if values else 0.0
