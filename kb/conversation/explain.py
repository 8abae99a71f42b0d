"""Answers to requests, by rule: each is made of a record, of the log, or of what was stated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kb.conversation.commands import Command, Request
from kb.conversation.naming import record_by_name
from kb.conversation.next_step import check_to_run
from kb.conversation.speech import (
    cite,
    described_check,
    numbered_step,
    quote,
    quote_with_location,
    tool_turn,
)
from kb.conversation.state import Conversation, Turn
from kb.corpus.base import KnowledgeBase
from kb.corpus.document import declared_pattern
from kb.diagnosis import Match
from kb.evidence import EvidenceLine
from kb.incident import Incident, Strength
from kb.questions import QuestionPlan, Topic
from kb.soft_breaks import join_soft_breaks
from kb.verdict import percent

_MAX_PATTERNS_NAMED = 3
"""Missing signatures that are quoted, strong ones first; the others are counted."""
_MAX_LIKELIHOOD_RATIO = 0.5
"""Ratio of likelihoods: a statement contradicts a record that fits it less than half as well as
the others."""

_HELP = """\
Answer the question with its number or in words, or tell me more:
- "only with 2 nodes", "we run NCCL 2.18", "it also happens with gloo", "no Xid in dmesg"
- "I already raised the timeout": marks that step of the fix as done
- any other sentence or log line: searched together with the log
Ask me: "why?", "why not 2?", "show the fix again", "what should I check next?", \
"what did I tell you?", "undo"."""


def answer(command: Command, conversation: Conversation, knowledge: KnowledgeBase) -> Turn:
    """What the tool says to a request that changes nothing."""
    if command.request is Request.HELP:
        return tool_turn(_HELP, ())
    if command.request is Request.STATEMENTS:
        return _list_statements(conversation)
    incident = record_by_name(command.name, conversation, knowledge)
    if incident is None:
        return tool_turn(_without_record(command, conversation, knowledge), ())
    return _ANSWERS[command.request](incident, conversation, knowledge)


def _without_record(command: Command, conversation: Conversation, knowledge: KnowledgeBase) -> str:
    """Where a request is about no record, there may be a check to run."""
    step = check_to_run(conversation, knowledge) if command.request is Request.NEXT else None
    if step:
        return described_check(step)
    if not command.name:
        return "There is no candidate yet; tell me more, or paste the first error."
    return (
        f"No record matches {quote(command.name)}; use its position, its id or words of its title."
    )


def _list_statements(conversation: Conversation) -> Turn:
    if not conversation.statements:
        return tool_turn("Nothing yet; I only have the log.", ())
    lines = []
    for number, statement in enumerate(conversation.statements, 1):
        question = f" (asked: {statement.question})" if statement.question else ""
        understood = (
            f": {' '.join(statement.says)}" if statement.says and not statement.question else ""
        )
        lines.append(f"{number}. “{statement.text}”{question}{understood}")
    return tool_turn("\n".join(lines), conversation.pool)


def _fix(incident: Incident, conversation: Conversation, _knowledge: KnowledgeBase) -> Turn:
    steps = []
    for number, step in enumerate(incident.body.fix, 1):
        done = " (done)" if (incident.id, number) in conversation.done else ""
        steps.append(numbered_step(number, step).replace(f"{number}. ", f"{number}.{done} ", 1))
    text = "\n".join(
        [
            f"Fix for {cite(incident)}:",
            *steps,
            f"Then verify: {join_soft_breaks(incident.body.verify)}",
        ]
    )
    return tool_turn(text, [incident.id])


def _next(incident: Incident, conversation: Conversation, knowledge: KnowledgeBase) -> Turn:
    """The first step of the fix that was not taken, or the check of a symptom that is likelier; a
    question that is open comes with it."""
    leads = conversation.diagnosis.with_matches(conversation.matches).symptom_leads
    step_of_symptom = check_to_run(conversation, knowledge) if leads else None
    open_steps = [
        (number, step)
        for number, step in enumerate(incident.body.fix, 1)
        if (incident.id, number) not in conversation.done
    ]
    parts = []
    if conversation.inquiry:
        parts.append(_open_question(conversation.inquiry))
    if step_of_symptom:
        parts.append(described_check(step_of_symptom))
    elif open_steps:
        number, step = open_steps[0]
        parts.append(f"Step {number} for [{incident.id}]:\n{numbered_step(number, step)}")
    else:
        verify = join_soft_breaks(incident.body.verify)
        parts.append(f"All steps for [{incident.id}] are done. To verify: {verify}")
    return tool_turn("\n\n".join(parts), conversation.pool)


def _open_question(inquiry: QuestionPlan) -> str:
    if inquiry.topic is Topic.EFFECT:
        return inquiry.text
    return f"To tell the candidates apart, check this: {inquiry.text}"


def _why(incident: Incident, conversation: Conversation, _knowledge: KnowledgeBase) -> Turn:
    match = _match(incident, conversation)
    text = " ".join([_standing(incident, conversation), *_speaks_for(match)])
    for words in _about(incident, conversation, speaks_for=True):
        text += f" You said {words}, which supports it."
    if incident.header.caution:
        text += f" Caution: {incident.header.caution}"
    return tool_turn(text, [incident.id], _lines(match))


def _why_not(incident: Incident, conversation: Conversation, _knowledge: KnowledgeBase) -> Turn:
    """What speaks for the record, what is missing, what contradicts it, what would bring it up."""
    match = _match(incident, conversation)
    parts = [_standing(incident, conversation), *_speaks_for(match)]
    parts += _missing(incident, conversation)
    parts += (
        f"You said {words}, which contradicts it."
        for words in _about(incident, conversation, speaks_for=False)
    )
    parts += _would_tell(incident, conversation)
    known = [incident.id, *(shown.incident.id for shown in conversation.matches)]
    return tool_turn(" ".join(parts), known, _lines(match))


def _match(incident: Incident, conversation: Conversation) -> Match | None:
    return conversation.pool.get(incident.id)


def _standing(incident: Incident, conversation: Conversation) -> str:
    for number, match in enumerate(conversation.matches, 1):
        if match.incident.id == incident.id:
            return f"{cite(incident)} is number {number}, at {percent(match.confidence)}."
    return f"{cite(incident)} is not among the candidates shown."


def _speaks_for(match: Match | None) -> list[str]:
    lines = _lines(match)
    if not lines:
        return ["No line of the log supports it."]
    return [f"Evidence: {' and '.join(quote_with_location(line) for line in lines[:2])}."]


def _lines(match: Match | None) -> list[EvidenceLine]:
    return [why.line for why in match.why] if match else []


def _missing(incident: Incident, conversation: Conversation) -> Iterator[str]:
    """Its signatures that the log does not have, the strong ones before the weak."""
    seen = {hit.pattern for hit in conversation.diagnosis.evidence.hits}
    absent = [sign for sign in incident.header.signatures if declared_pattern(sign) not in seen]
    absent.sort(key=lambda sign: sign.strength is not Strength.STRONG)
    if absent:
        patterns = ", ".join(quote(sign.pattern) for sign in absent[:_MAX_PATTERNS_NAMED])
        total = len(incident.header.signatures)
        yield f"{len(absent)} of its {total} signatures are not in the log: {patterns}."


def _about(incident: Incident, conversation: Conversation, *, speaks_for: bool) -> Iterator[str]:
    """Statements that fit the record clearly better, or clearly worse, than other records."""
    for statement in conversation.statements:
        fits = statement.factors.get(incident.id, statement.otherwise)
        if speaks_for and statement.otherwise < fits * _MAX_LIKELIHOOD_RATIO:
            yield _words(statement.text, statement.question)
        if not speaks_for and fits < statement.otherwise * _MAX_LIKELIHOOD_RATIO:
            yield _words(statement.text, statement.question)


def _words(text: str, question: str | None) -> str:
    return f"“{text}” to “{question}”" if question else f"“{text}”"


def _would_tell(incident: Incident, conversation: Conversation) -> Iterator[str]:
    """The observation in either record that tells it apart from the first one."""
    first = conversation.matches[0].incident if conversation.matches else incident
    for owner, other in ((incident, first), (first, incident)):
        for item in owner.body.distinguish:
            if item.other == other.id:
                question = join_soft_breaks(item.question)
                yield f"To tell it apart from [{first.id}]: {question} Yes points to [{owner.id}]."
                return


_ANSWERS: dict[Request, Callable[[Incident, Conversation, KnowledgeBase], Turn]] = {
    Request.FIX: _fix,
    Request.NEXT: _next,
    Request.WHY: _why,
    Request.WHY_NOT: _why_not,
}
