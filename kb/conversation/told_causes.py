"""What somebody tells of a check without pasting its output: the cause that it speaks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from index.tokens import tokenize
from kb.check import Check
from kb.conversation.clues import clue_in
from kb.conversation.next_step import playbooks_of, symptom_of
from kb.conversation.scope import Scope, scope_of
from kb.conversation.state import Conversation, Speaker
from kb.corpus.base import KnowledgeBase
from kb.diagnosis.observed import CASE_RATIO, NAMED_RATIO
from kb.evidence.glossary import translate
from kb.playbook import Cause, Playbook

_MIN_WORDS = 2
"""Of what a playbook says would be seen; one word alone is in many sentences."""
_MIN_SHARE = 0.75
"""Share of the words of what would be seen that the sentence has, from 0 to 1."""
_MAX_WORDS_OF_ANSWER = 3
"""Telling words of a short answer to a check: "64M", "full of old files"."""
_ANSWERING = frozenset("yes no it say show see there only about exactly around ok okay".split())
"""Words of an answer beside what was seen."""


def told_causes(
    clause: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Mapping[str, float]:
    """Ratios of the likelihoods of the causes that a clause speaks for, as `playbook:cause`, and of
    the incidents that are cases of them; empty where it speaks for none."""
    if scope_of(clause) is not Scope.AFFIRMED:
        return {}
    said = frozenset(tokenize(translate(clause))) - _ANSWERING
    ratios: dict[str, float] = {}
    symptom = symptom_of(conversation, knowledge)
    for match in [symptom] if symptom else []:
        for key in _causes_seen(said, match.playbook, _open_check(conversation, knowledge)):
            ratios[f"{match.playbook.id}:{key}"] = NAMED_RATIO
            cases = next(one.incidents for one in match.playbook.body.causes if one.key == key)
            ratios |= dict.fromkeys(cases, CASE_RATIO)
    return ratios


def causes_told(text: str, playbook: Playbook) -> list[Cause]:
    """The causes of a symptom that the words of a text speak for, in the order of the playbook."""
    said = frozenset(tokenize(translate(text))) - _ANSWERING
    keys = set(_causes_seen(said, playbook, ""))
    return [cause for cause in playbook.body.causes if cause.key in keys]


def pointed_causes(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Mapping[str, float]:
    """The same for the causes that the clue of a message points to, of the playbooks that lead."""
    clue = clue_in(text)
    leading = {match.playbook.id for match in playbooks_of(conversation, knowledge)}
    ratios: dict[str, float] = {}
    for target in clue.points_to if clue else ():
        if target.partition(":")[0] in leading:
            ratios[target] = NAMED_RATIO
            ratios |= dict.fromkeys(knowledge.guides.cases.get(target, ()), CASE_RATIO)
    return ratios


def _causes_seen(said: frozenset[str], playbook: Playbook, check: str) -> Iterator[str]:
    """The keys of the causes whose sign is in the words, as a sentence or as an answer to the check
    that is open."""
    for step in playbook.body.checks:
        for outcome in step.outcomes:
            kind, _colon, key = outcome.then.partition(":")
            words = frozenset(tokenize(outcome.sees))
            if kind == "cause" and (
                _holds(said, words) or (step.check == check and _answers(said, words))
            ):
                yield key
    for cause in playbook.body.causes:
        if any(_holds(said, frozenset(tokenize(sign))) for sign in cause.tell.split(",")):
            yield cause.key


def _holds(said: frozenset[str], words: frozenset[str]) -> bool:
    return len(words) >= _MIN_WORDS and len(said & words) >= _MIN_SHARE * len(words)


def _answers(said: frozenset[str], words: frozenset[str]) -> bool:
    return 0 < len(said) <= _MAX_WORDS_OF_ANSWER and said <= words


def _open_check(conversation: Conversation, knowledge: KnowledgeBase) -> str:
    """The check that the tool told to run last, unless its output was pasted; empty without."""
    shown = (turn.shows for turn in reversed(conversation.turns) if turn.speaker is Speaker.TOOL)
    names = next(filter(None, shown), ())
    guides = knowledge.guides.by_id
    found = (name for name in names if isinstance(guides.get(name), Check))
    return next((name for name in found if name not in conversation.checks), "")
