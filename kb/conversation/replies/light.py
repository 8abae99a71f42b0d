"""What is known of the case in the light of what was just told, where it was not said before."""

from __future__ import annotations

from collections.abc import Iterator

from kb.conversation.clues import clue_in
from kb.conversation.language import say
from kb.conversation.next_step import cause_shown, name_of, shown_lately, symptom_of, task_of
from kb.conversation.passages import Passage, passage_about
from kb.conversation.replies.answer import (
    Answer,
    described_passage,
    in_short,
    sentences,
    steps_ahead,
)
from kb.conversation.replies.candidates import alternatives, causes_by_now
from kb.conversation.replies.remedies import ways_of
from kb.conversation.speech import cause_with_remedy, first_sentence
from kb.conversation.state import Conversation
from kb.corpus.base import KnowledgeBase

_CLEARLY = 0.1
"""A fall of a confidence after which people ask what else it can be."""
_MUCH_ABOUT = 0.9
"""Rarities of the words that a passage shares with what was told, so that it is shown unasked."""
_MAX_REMEDIES = 3
"""Other causes whose remedies are named."""
_MAX_CAUSES = 2
"""Of a symptom, with their remedies."""


def in_its_light(
    text: str, before: Conversation, after: Conversation, knowledge: KnowledgeBase
) -> Iterator[Answer]:
    """What the leading pages say of what was told, or else what is behind it; what else it can be
    where that speaks against the first; and what is still to do where it was said before."""
    language = after.language
    said = _of_it(text, after, knowledge) or _behind_it(after, knowledge)
    if said:
        yield said
    if _fell(before, after):
        yield alternatives(after, knowledge)
    task = task_of(after, knowledge)
    if task and after is not before and name_of(task) in shown_lately(before):
        still = say("still-next", language, what=in_short(task, language))
        yield Answer(sentences([still, steps_ahead(task, after)]))


def clue_of(text: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """What an observation means whatever the case is, unless it was said before."""
    clue = clue_in(text)
    said = _unless_said(clue.says(conversation.language), conversation) if clue else None
    if clue is None or said is None or not clue.remedies:
        return said
    return Answer("\n".join([said.text, *_remedies(conversation, knowledge)]))


def _remedies(conversation: Conversation, knowledge: KnowledgeBase) -> Iterator[str]:
    """Those of the causes of a leading symptom, and the ways to get the job going."""
    symptom, language = symptom_of(conversation, knowledge), conversation.language
    if symptom:
        yield from ways_of(symptom.playbook, language)
        for one in causes_by_now(symptom, conversation)[:_MAX_REMEDIES]:
            yield cause_with_remedy(one, language)


def _fell(before: Conversation, after: Conversation) -> bool:
    """Whether the record that led is clearly less likely now."""
    now = {match.incident.id: match.confidence for match in after.matches}
    return any(
        match.confidence - now.get(match.incident.id, 0.0) > _CLEARLY
        for match in before.matches[:1]
    )


def _of_it(text: str, after: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """The passage that is most about what was told. A check whose output was read has said what it
    shows; its page also tells what it does not."""
    passage = passage_about(text, after, knowledge, _MUCH_ABOUT)
    task = task_of(after, knowledge)
    known = shown_lately(after) | ({name_of(task)} if task else frozenset())
    if (
        passage is None
        or passage.page in after.checks
        or _is_cause_shown(passage, after, knowledge)
    ):
        return None
    step = (passage.page, passage.number)
    if passage.step and (step in after.done or f"{passage.page}#{passage.number}" in known):
        return None
    return _unless_said(described_passage(passage, after.language), after, passage.page)


def _is_cause_shown(passage: Passage, after: Conversation, knowledge: KnowledgeBase) -> bool:
    """Whether it is the cause that an output showed, which is named with its remedy already."""
    shown = cause_shown(after, knowledge)
    return shown is not None and shown[1].cause in passage.texts


def _behind_it(after: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """The likeliest causes of a symptom with their remedies, or the cause of the first record."""
    language = after.language
    symptom = symptom_of(after, knowledge)
    if symptom:
        causes = causes_by_now(symptom, after)[:_MAX_CAUSES]
        lines = [cause_with_remedy(one, language) for one in causes]
        return _unless_said("\n".join(lines), after)
    for match in after.matches[:1]:
        cause = say("cause", language, text=first_sentence(match.incident.body.cause, language))
        return _unless_said(cause, after)
    return None


def _unless_said(text: str, conversation: Conversation, page: str = "") -> Answer | None:
    if any(text in turn.text for turn in conversation.turns):
        return None
    return Answer(text, records=(page,) if page else ())
