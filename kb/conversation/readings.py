"""What speaks for a record by itself: the output of a check that names it, and words that the
record uses for what is seen there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from index.tokens import tokenize
from kb.check import Check
from kb.checks import Observation
from kb.checks.recognise import is_prompt
from kb.conversation.done_steps import only_looks
from kb.conversation.language import Language, in_language, is_talk, say, translation
from kb.conversation.next_step import playbooks_of
from kb.conversation.scope import Scope, scope_of
from kb.conversation.search import STATEMENT_FILE, search_statement
from kb.conversation.speech import observed, prose, quote
from kb.conversation.state import Conversation, Statement
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import (
    UNSUPPORTED,
    OutputsRead,
    PlaybookMatch,
    ReadOutput,
    likelihood_ratios,
    named_incidents,
    read_text,
)
from kb.evidence import Evidence, collect
from kb.evidence.glossary import translate
from kb.incident import Incident, Step
from kb.log import Block
from kb.playbook import Playbook
from kb.questions import Belief
from kb.questions.observe import YES_IF_ANY, YES_IF_OWNER
from kb.verdict import SYMPTOM_AT

OWN_WORDS_RATIO = YES_IF_OWNER / YES_IF_ANY
"""How much likelier a statement is under a record that names what is stated: as likely as `yes` to
an observation that the record asks for."""

_DENIES = re.compile(
    r"\b(?:no|not|none|never|without|neither|nor|cannot)\b|n't\b|[没不无未]|[?？]",
    re.IGNORECASE,
)
"""A sentence that may say the opposite of what its words say, or asks."""
_SPOKEN = frozenset("show say print give return report output see read tell display".split())
"""Words for looking at something, which stand between the command and what it shows."""
_MIN_WORDS = 3
"""Fewer words are in too many records."""
_MIN_SHARE = 0.8
"""Minimum share of the words of a statement that one sentence of a record has, from 0 to 1; all
numbers must be among them."""
_LEAST = 0.0001
"""Share of a record that stands for none, from 0 to 1: confidences have four digits."""
_MAX_OBSERVATIONS_NAMED = 3
"""Of one message, abnormal ones first."""
_MAX_FAULTS_NAMED = 3
"""Of those that an output does not show."""
_QUOTES = re.compile(
    r"\b(?:shows?|says?|gives?|gave|prints?|reports?|returns?|reads?|outputs?|displays?)\s*[:：]\s*"
    r"|(?:显示|输出|返回|打印|结果)(?:是|为|了)?\s*[:：]\s*",
    re.IGNORECASE,
)
"""Behind these words a line is a program's: "df -h shows: shm 64M ..."."""
_IS_OVER = re.compile(
    r"\b(?:fixed|solved|repaired|replaced|was|were|used to|no longer|anymore)\b"
    r"|修好|解决了|之前|原来",
    re.IGNORECASE,
)
"""Tells of a value that is no longer there."""
_SENTENCES = re.compile(r"(?<=[.!?:])\s+")


def read_pasted(text: str, knowledge: KnowledgeBase) -> OutputsRead | None:
    """The outputs of checks in a message; None where there are none. Lines of the job's own log
    are searched where they state a failure, whoever reads them."""
    if "\n" in text or is_prompt(text):
        return _read_output(text, knowledge)
    _words, *quoted = _QUOTES.split(text, maxsplit=1)
    printed = (part for part in (text, *quoted) if not is_talk(part))
    return next(filter(None, (_read_output(part, knowledge) for part in printed)), None)


def _read_output(text: str, knowledge: KnowledgeBase) -> OutputsRead | None:
    read = read_text(text, STATEMENT_FILE, knowledge)
    outputs = tuple(one for one in read.outputs if one.output.lines)
    if any(one.check.header.in_log for one in outputs):
        states_failure = _evidence(text, knowledge).states_failure
        outputs = tuple(one for one in outputs if not (states_failure and one.check.header.in_log))
    names = {one.check.id for one in outputs}
    seen = tuple(one for one in read.observations if one.check in names)
    return OutputsRead(outputs, seen) if outputs else None


def told_values(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Statement | None:
    """What somebody tells in words of an output that is abnormal; None where that is nothing."""
    if "\n" in text or _IS_OVER.search(text) or scope_of(text) is not Scope.AFFIRMED:
        return None
    read = _read_output(text, knowledge)
    seen = tuple(one for one in read.observations if one.abnormal) if read else ()
    if not read or not seen:
        return None
    names = {one.check for one in seen}
    outputs = tuple(one for one in read.outputs if one.check.id in names)
    told = OutputsRead(outputs, seen)
    return _of_reading(Statement(""), told, conversation, knowledge, alone=False)


def _evidence(text: str, knowledge: KnowledgeBase) -> Evidence:
    block = Block(STATEMENT_FILE, 1, text.count("\n") + 1, text.encode())
    return collect([block], knowledge.signatures, knowledge.markers)


def _lines_left(text: str, read: OutputsRead, knowledge: KnowledgeBase) -> str:
    """What of a message is no output that was read, or bears the signature of a record."""
    signed = {hit.line.number for hit in _evidence(text, knowledge).hits}
    lines = enumerate(text.split("\n"), 1)
    return "\n".join(
        line for number, line in lines if number in signed or not _is_read(number, line, read)
    ).strip()


def _is_read(number: int, line: str, read: OutputsRead) -> bool:
    return is_prompt(line) or any(one.holds(STATEMENT_FILE, number) for one in read.outputs)


def of_outputs(
    text: str, read: OutputsRead, conversation: Conversation, knowledge: KnowledgeBase
) -> Statement:
    """What the outputs in a message say of the records, and the lines around them. Where there is
    nothing else in it, somebody ran the checks for sure."""
    left = _lines_left(text, read, knowledge)
    found = (
        search_statement(left, conversation, knowledge) if _is_telling(left, knowledge) else None
    )
    return _of_reading(found or Statement(""), read, conversation, knowledge, alone=not left)


def _is_telling(left: str, knowledge: KnowledgeBase) -> bool:
    """Whether what is left beside an output says something: the words of a log's healthy lines do
    not."""
    if not left or is_talk(left):
        return bool(left)
    evidence = _evidence(left, knowledge)
    return not evidence.is_log or evidence.states_failure or bool(evidence.hits)


def _of_reading(
    base: Statement,
    read: OutputsRead,
    conversation: Conversation,
    knowledge: KnowledgeBase,
    *,
    alone: bool,
) -> Statement:
    """A statement and what outputs show beside it."""
    ratios = _ratios(read, conversation, knowledge, alone=alone)
    brought = {match.incident.id: match for match in named_incidents(read.outputs, knowledge)}
    known = conversation.pool.keys() | {one.incident.id for one in base.found}
    least = UNSUPPORTED * conversation.belief.nothing
    new = [
        msgspec.structs.replace(match, confidence=least)
        for name, match in brought.items()
        if name not in known
    ]
    statement = msgspec.structs.replace(
        base,
        says=(*_said(read, conversation.language), *base.says),
        found=(*base.found, *new),
        checks=tuple(sorted(read.checks)),
        observations=read.observations,
        readings=ratios,
        symptoms=_symptoms_read(ratios, conversation, knowledge),
    )
    weighed = _weighing_symptoms(statement, conversation, knowledge)
    return speaking_for(weighed, ratios, conversation)


def _weighing_symptoms(
    statement: Statement, conversation: Conversation, knowledge: KnowledgeBase
) -> Statement:
    """The statement, by which the records fall as the symptoms rise whose causes were read: what
    the records leave is as much likelier as its symptoms are on average."""
    unread = msgspec.structs.replace(statement, readings={})
    told = msgspec.structs.replace(conversation, statements=(*conversation.statements, unread))
    rise = sum(
        match.share * (max(statement.readings.get(match.playbook.id, 1.0), 1.0) - 1.0)
        for match in playbooks_of(told, knowledge)
    )
    if not rise:
        return statement
    factors = dict.fromkeys(conversation.pool, statement.otherwise) | dict(statement.factors)
    return msgspec.structs.replace(
        statement, factors=factors, otherwise=statement.otherwise * (1.0 + rise)
    )


def _symptoms_read(
    ratios: Mapping[str, float], conversation: Conversation, knowledge: KnowledgeBase
) -> tuple[PlaybookMatch, ...]:
    """The symptoms that the outputs name, where all that is known so far is a guess at others."""
    guesses = {match.playbook.id: match.share for match in playbooks_of(conversation, knowledge)}
    guides = (knowledge.guides.by_id.get(name) for name, ratio in ratios.items() if ratio > 1)
    named = [guide for guide in guides if isinstance(guide, Playbook)]
    is_sure = max(guesses.values(), default=0.0) >= SYMPTOM_AT
    if is_sure or any(playbook.id in guesses for playbook in named):
        return ()
    return tuple(PlaybookMatch(playbook, 1 / len(named), 1 / len(named)) for playbook in named)


def _ratios(
    read: OutputsRead, conversation: Conversation, knowledge: KnowledgeBase, *, alone: bool
) -> dict[str, float]:
    """Those of the likelihoods of what the outputs show. What was read before counts once; what it
    names does not fall."""
    run = read.checks if alone else frozenset()
    fresh = [one for one in read.outputs if _is_news(one, conversation)]
    named = likelihood_ratios(read.outputs, knowledge.guides, run)
    unmoved = {name: 1.0 for name, ratio in named.items() if ratio > 1}
    return unmoved | likelihood_ratios(fresh, knowledge.guides, run)


def _is_news(output: ReadOutput, conversation: Conversation) -> bool:
    """Whether it is of another check, or shows what that check did not show before: of another
    file system, or now."""
    seen = {
        (one.check, one.finding)
        for statement in conversation.statements
        for one in statement.observations
    }
    seen |= {(one.check, one.finding) for one in conversation.diagnosis.observations}
    shown = {(one.check, one.finding) for one in output.observations if one.abnormal}
    return output.check.id not in conversation.checks or bool(shown - seen)


def _said(read: OutputsRead, language: Language) -> Iterator[str]:
    is_fault = any(one.abnormal for one in read.observations)
    for one in read.observations[:_MAX_OBSERVATIONS_NAMED]:
        yield from observed(one, language)
        then = one.then if language is Language.ENGLISH else translation(one.then or "", language)
        if then and (one.abnormal or not is_fault):
            yield say("points-then", language, what=then.rstrip(".。"))
    for output in read.outputs:
        if output.is_normal and not any(_is_of(one, output) for one in read.observations):
            body = output.check.body
            limits = [
                in_language(limit.text, language)
                for limit in (*body.cannot_see, *body.false_pass)[:1]
            ]
            yield " ".join([_none_of(output.check, language), *limits])


def _is_of(seen: Observation, output: ReadOutput) -> bool:
    """Whether something was seen in the lines of an output, by its check or another one."""
    return seen.check == output.check.id or output.holds(STATEMENT_FILE, seen.line)


def _none_of(check: Check, language: Language) -> str:
    """That an output is normal as far as its check can tell: what was looked for."""
    faults = [one.means for one in check.body.findings if one.abnormal][:_MAX_FAULTS_NAMED]
    named = [prose(means, language).rstrip(".。") for means in faults]
    return say("nothing-abnormal", language, check=quote(check.id), findings="; ".join(named))


def speaking_for(
    statement: Statement, ratios: Mapping[str, float], conversation: Conversation
) -> Statement:
    """The statement, which changes the odds of each record by its ratio, whatever its words do."""
    neutral = msgspec.structs.replace(statement, factors={}, otherwise=1.0)
    statements = (*conversation.statements, neutral)
    was = conversation.belief
    now = msgspec.structs.replace(conversation, statements=statements).belief
    likelihoods = {i: statement.factors.get(i, statement.otherwise) for i in now.shares}
    total = now.nothing * statement.otherwise + sum(
        share * likelihoods[name] for name, share in now.shares.items()
    )
    factors = dict(statement.factors)
    for name in now.shares.keys() & ratios.keys():
        ratio, likelihood, share = ratios[name], likelihoods[name], now.shares[name]
        least = ratio * _odds(name, was) * (total - share * likelihood) / max(share, _LEAST)
        factors[name] = max(likelihood, least) if ratio >= 1 else ratio * likelihood
    return msgspec.structs.replace(statement, factors=factors)


def _odds(name: str, belief: Belief) -> float:
    """Of a record that is no candidate yet, next to none."""
    share = belief.shares.get(name, _LEAST)
    return share / max(belief.total - share, _LEAST)


def named_by(clause: str, incidents: Sequence[Incident]) -> dict[str, float]:
    """The records that say themselves what a clause says, each with the ratio by which it is
    likelier: in a step that looks, in their symptom or in their evidence."""
    said = frozenset(tokenize(translate(clause))) - _SPOKEN
    if _DENIES.search(clause) or len(said) < _MIN_WORDS:
        return {}
    return {
        incident.id: OWN_WORDS_RATIO
        for incident in incidents
        if any(_holds(frozenset(tokenize(passage)), said) for passage in _passages(incident))
    }


def looked_at(clause: str, incidents: Sequence[Incident]) -> tuple[tuple[str, int], ...]:
    """The steps that look at what a clause says: id and number, from 1. They were done."""
    said = frozenset(tokenize(translate(clause))) - _SPOKEN
    if len(said) < _MIN_WORDS:
        return ()
    return tuple(
        (incident.id, number)
        for incident in incidents
        for number, step in enumerate(incident.body.fix, 1)
        if only_looks(step) and _holds(frozenset(tokenize(_of_step(step))), said)
    )


def _of_step(step: Step) -> str:
    return f"{step.text} {step.command or ''} {step.why or ''}"


def _holds(held: frozenset[str], said: frozenset[str]) -> bool:
    numbers = {word for word in said if any(letter.isdigit() for letter in word)}
    return numbers <= held and len(said & held) >= _MIN_SHARE * len(said)


def _passages(incident: Incident) -> Iterator[str]:
    for step in incident.body.fix:
        if only_looks(step):
            yield _of_step(step)
    yield from _SENTENCES.split(incident.body.symptom)
    yield from incident.body.evidence_text.split("\n")
