"""Free text as further evidence: rules first, and what no rule takes is searched with the log."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kb.conversation.done_steps import STEP_DONE, parse_done_step
from kb.conversation.facts import extract_facts
from kb.conversation.language import say
from kb.conversation.readings import (
    looked_at,
    named_by,
    of_outputs,
    read_pasted,
    speaking_for,
    told_values,
)
from kb.conversation.scope import Scope, scope_of
from kb.conversation.search import likeliest_by_words, search_statement, symptoms_named
from kb.conversation.speech import quote
from kb.conversation.state import Conversation, Statement, combine
from kb.conversation.told_causes import pointed_causes, told_causes
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import OutputsRead
from kb.evidence import Evidence, collect
from kb.evidence.nature import printed_part
from kb.log import Block

_CLAUSES = re.compile(r"(?<!\s)\s*[,;，；。]\s*|\.\s+|(?<!\s)\s+but\s+|但是?|不过")

_PERSISTS = re.compile(
    r"(?:and |but |it )?(?:is )?(?:still|same|again|no (?:change|difference|luck|effect)"
    r"|nothing changed|还是|仍然?|依然|照样|一样|没用|没变化|没效果).{0,30}",
    re.IGNORECASE,
)
"""Says behind what was done that it did not help: no line of a log."""
_IN_VAIN = re.compile(
    r"\bstill (?!up|alive|there|holds|works|running|ok|fine|healthy|good)"
    r"|\b(?:the )?same (?:error|thing|hang|crash|result|again|as before)\b"
    r"|\bno (?:change|difference|luck|effect|help)\b|\bnothing changed\b|\b(?:did|does)n.?t help\b"
    r"|还是|仍然?|依然|照样|没用|没变化|没效果|没好|不行",
    re.IGNORECASE,
)
"""Says anywhere that what was done did not help."""
_SO_NOW = re.compile(
    r"\b(?:is|are|at|to|set|has|have)\b.{0,60}\bnow\b|现在|已经|改成|调到", re.IGNORECASE
)
"""A state that was brought about: with `_PERSISTS` behind it, a remedy that did not help."""


def interpret(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Statement | None:
    """What the text states; None where nothing of it was understood."""
    read = read_pasted(text, knowledge)
    if not STEP_DONE.fullmatch(text) and (read or _is_printed(text, knowledge)):
        return _of_lines(text, read, conversation, knowledge)
    parts, rest = _by_rule(text, conversation, knowledge)
    if found := _told(text, rest, conversation, knowledge):
        parts.append(found)
    if value := told_values(text, conversation, knowledge):
        parts.append(value)
    if scope_of(text) is Scope.AFFIRMED and (named := symptoms_named(text, knowledge)):
        parts.append(named)
    return combine(text, parts) if parts else None


def read_remark(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Statement | None:
    """What a message states that nobody may have meant as a statement: only what rules understand,
    and words that name a record by themselves; None where that is nothing."""
    if scope_of(text) is Scope.HYPOTHETICAL:
        return None
    parts, rest = _by_rule(text, conversation, knowledge)
    pool = frozenset(conversation.pool)
    telling = [clause for clause in rest if likeliest_by_words(clause, knowledge, pool)]
    if found := _told(text, rest, conversation, knowledge, telling):
        parts.append(found)
    if value := told_values(text, conversation, knowledge):
        parts.append(value)
    return combine(text, parts) if parts else None


def search_output(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Statement | None:
    """What the text states as output of a program, not as words; None where it says nothing."""
    return _of_lines(text, read_pasted(text, knowledge), conversation, knowledge)


def persists(text: str) -> bool:
    """Whether a text says that what was done did not help."""
    return _IN_VAIN.search(text) is not None


def is_output(text: str, knowledge: KnowledgeBase) -> bool:
    """Lines of a program are not taken apart."""
    return bool(read_pasted(text, knowledge)) or _is_printed(text, knowledge)


def _of_lines(
    text: str, read: OutputsRead | None, conversation: Conversation, knowledge: KnowledgeBase
) -> Statement | None:
    found = (
        of_outputs(text, read, conversation, knowledge)
        if read
        else search_statement(text, conversation, knowledge)
    )
    named = None if read else symptoms_named(text, knowledge)
    parts = [part for part in (found, named) if part]
    return combine(text, parts) if parts else None


def _is_printed(text: str, knowledge: KnowledgeBase) -> bool:
    """Whether a text has the look of a program's lines, or a signature that it does not deny. What
    a program denies, as in "could not load", is its error."""
    evidence = _collected(text, knowledge)
    if "\n" in text:
        return True
    quoted = printed_part(text)
    said = text.removesuffix(quoted) if quoted else text
    if (quoted or evidence.human_written) and scope_of(said) is not Scope.AFFIRMED:
        return False
    if evidence.human_written:
        return bool(evidence.hits)
    return bool(evidence.hits or quoted) or evidence.is_log


def bears_signature(text: str, knowledge: KnowledgeBase) -> bool:
    """Whether a record knows a line of it."""
    return bool(_collected(text, knowledge).hits)


def _collected(text: str, knowledge: KnowledgeBase) -> Evidence:
    block = Block(None, 1, text.count("\n") + 1, text.encode())
    return collect([block], knowledge.signatures, knowledge.markers)


def _by_rule(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> tuple[list[Statement], list[str]]:
    """What rules understand of it, and the clauses that are left to be searched."""
    parts: list[Statement] = []
    rest: list[str] = []
    candidates = list(conversation.incidents.values())
    clauses = list(filter(None, _CLAUSES.split(text.strip(" .。!！"))))
    persists = any(map(_PERSISTS.fullmatch, clauses))
    for clause in clauses:
        is_done = persists and _SO_NOW.search(clause) is not None
        taken = parse_done_step(clause, conversation, knowledge, is_done=is_done)
        if taken:
            parts.append(taken)
            continue
        if parts and _PERSISTS.fullmatch(clause):
            continue
        aside = _not_now(clause, conversation)
        if aside:
            parts.append(aside)
            continue
        facts = extract_facts(clause, candidates, conversation.known, conversation.language)
        parts.extend(facts.parts)
        if facts.left:
            rest.append(clause)
    return parts, rest


def _not_now(clause: str, conversation: Conversation) -> Statement | None:
    """What is asked, supposed, past or elsewhere is heard, and changes no belief."""
    scope = scope_of(clause)
    if scope in (Scope.AFFIRMED, Scope.NEGATED):
        return None
    said = say(f"scope-{scope}", conversation.language, text=quote(clause))
    return Statement("", says=(said,))


def _told(
    text: str,
    clauses: Sequence[str],
    conversation: Conversation,
    knowledge: KnowledgeBase,
    telling: Sequence[str] | None = None,
) -> Statement | None:
    """What a message and its clauses say of the causes of the symptom, and what the words of those
    that are `telling` bring up; all are, where it is not given."""
    found = _searched(clauses if telling is None else telling, conversation, knowledge)
    ratios = dict(pointed_causes(text, conversation, knowledge))
    for clause in clauses:
        ratios |= told_causes(clause, conversation, knowledge)
    if not ratios:
        return found
    base = msgspec.structs.replace(found or Statement(""), readings=ratios)
    return speaking_for(base, ratios, conversation)


def _searched(
    clauses: Sequence[str], conversation: Conversation, knowledge: KnowledgeBase
) -> Statement | None:
    """What the words bring up; a record that says the same itself does not fall beside it."""
    text = ", ".join(clauses)
    found = search_statement(text, conversation, knowledge) if text else None
    incidents = [match.incident for match in conversation.matches]
    owners = {name: ratio for one in clauses for name, ratio in named_by(one, incidents).items()}
    if not owners:
        return found
    said = tuple(say("describes-itself", conversation.language, id=name) for name in owners)
    base = found or Statement("")
    done = tuple(step for one in clauses for step in looked_at(one, incidents))
    base = msgspec.structs.replace(base, says=said, done=done)
    return speaking_for(base, owners, conversation)
