"""How a case begins, and how it begins again where more was told."""

from __future__ import annotations

from collections.abc import Sequence, Set

import msgspec

from index.tokens import tokenize
from kb.conversation.acts import COURTESIES, Act
from kb.conversation.clues import clue_in
from kb.conversation.language import Language, say
from kb.conversation.opening import opening
from kb.conversation.speech import tool_turn
from kb.conversation.state import Conversation, ReplyAct, Speaker, Statement, Turn, rank
from kb.conversation.subject import is_statement
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, diagnose, first_question
from kb.log import Log
from kb.outcome import Outcome
from kb.verdict import SYMPTOM_AT, Verdict

_WITHOUT_CASE = COURTESIES - {Act.OTHER} | {
    Act.WHO,
    Act.HOSTILE,
    Act.EXPLAIN_TERM,
    Act.SUMMARISE,
    Act.HAND_OVER,
    Act.SUCCESS,
    Act.DONT_KNOW,
}
"""Acts that tell no new case, whatever words are in them."""
_MIN_WORDS_OF_CASE = 3
"""Telling words of a question that begins a case; fewer are "what next?" or "is this fatal?"."""
_SYMPTOM_OF_COMPLAINT_AT = 0.3
"""Share of a playbook from which on a complaint names a symptom; "it does not work" names
none, and has a third of it."""
_MAX_LINES_AGAIN = 20
"""Of the input that are read once more, in the order of their weight."""


def begin(diagnosis: Diagnosis, earlier: Sequence[Outcome] = ()) -> Conversation:
    """State the findings and the most likely cause, and ask the best question. Does not search.

    `earlier` is how other cases on this machine ended, newest first.
    """
    language = _language_of_input(diagnosis)
    turn = opening(diagnosis, language, earlier)
    return _about(diagnosis, (turn,), language, earlier)


def greet(nothing: Diagnosis, earlier: Sequence[Outcome] = ()) -> Conversation:
    """Ask what is wrong: the first message that tells it is diagnosed.

    `nothing` is the diagnosis of an empty input; `earlier` as for `begin`.
    """
    turn = tool_turn(say("greeting", Language.ENGLISH), (), act=ReplyAct.GREET)
    return _about(nothing, (turn,), Language.ENGLISH, earlier)


def start_over(conversation: Conversation, knowledge: KnowledgeBase, key: str) -> Conversation:
    """Forget the case, and say so; what was said can still be read."""
    turn = tool_turn(say(key, conversation.language), (), act=ReplyAct.GREET)
    return _begun_again(conversation, diagnose(Log.from_text(""), knowledge), turn)


def is_bare(conversation: Conversation) -> bool:
    """Whether nothing is known so far: then what the user tells is the case itself."""
    return _finds_nothing(conversation.diagnosis) and not conversation.statements


def opened(conversation: Conversation, text: str, knowledge: KnowledgeBase) -> Conversation | None:
    """Begin with a text as the case; what was said stays. None where nothing is known about it, and
    it states no failure."""
    diagnosis = diagnose(Log.from_text(_all_told(conversation, text)), knowledge)
    if _finds_nothing(diagnosis) and not diagnosis.evidence.states_failure:
        return None
    return _begun_again(conversation, diagnosis)


def opened_by_question(
    conversation: Conversation, text: str, acts: Set[Act], knowledge: KnowledgeBase
) -> Conversation | None:
    """Begin with a question or a complaint as the case; None where it tells none that is known."""
    if not is_bare(conversation) or acts <= _WITHOUT_CASE:
        return None
    begun = opened(conversation, text, knowledge)
    return begun if begun and _is_told(text, acts, begun.diagnosis) else None


def diagnosed_again(
    conversation: Conversation,
    statement: Statement | None,
    text: str,
    knowledge: KnowledgeBase,
) -> Conversation | None:
    """A new beginning with all that was told, where so far everything is a guess, also with what
    was just stated, and that is none any more; None otherwise. What an output
    shows is said first."""
    diagnosis = conversation.diagnosis
    after = conversation.with_statement(statement) if statement else conversation
    is_read = statement is not None and bool(statement.observations)
    if not _is_guess(diagnosis) or after.matches or _was_read(after) or is_read:
        return None
    lines = [line.text for line in diagnosis.evidence.lines[:_MAX_LINES_AGAIN]]
    told = [one.text for one in conversation.statements]
    found = diagnose(Log.from_text("\n".join([*lines, *told, text])), knowledge)
    if _is_guess(found):
        return None
    turn = opening(found, conversation.language, conversation.earlier)
    clue = clue_in(text)
    if clue:
        meant = f"{clue.says(conversation.language)}\n{turn.text}"
        turn = msgspec.structs.replace(turn, text=meant)
    return _begun_again(conversation, found, turn)


def _was_read(conversation: Conversation) -> bool:
    """Whether an output that was pasted speaks for something."""
    return any(one.readings for one in conversation.statements)


def _begun_again(
    conversation: Conversation, diagnosis: Diagnosis, turn: Turn | None = None
) -> Conversation:
    """A case of its own in the same conversation: what was said stays, what was stated does not."""
    language, earlier = conversation.language, conversation.earlier
    turn = turn or opening(diagnosis, language, earlier)
    begun = _about(diagnosis, (*conversation.turns, turn), language, earlier)
    return msgspec.structs.replace(begun, before=conversation)


def _about(
    diagnosis: Diagnosis, turns: tuple[Turn, ...], language: Language, earlier: Sequence[Outcome]
) -> Conversation:
    question = first_question(diagnosis)
    conversation = Conversation(
        diagnosis, (), turns, question, language=language, earlier=tuple(earlier)
    )
    return msgspec.structs.replace(conversation, matches=rank(conversation))


def _finds_nothing(diagnosis: Diagnosis) -> bool:
    known = diagnosis.candidates or diagnosis.playbooks or diagnosis.notes
    return diagnosis.verdict is Verdict.UNKNOWN and not known


def _is_told(text: str, acts: Set[Act], diagnosis: Diagnosis) -> bool:
    """Whether a question tells a case that is known, or a complaint a symptom: "it hangs"."""
    best = diagnosis.playbooks[0].share if diagnosis.playbooks else 0.0
    if Act.FAILURE in acts and best >= _SYMPTOM_OF_COMPLAINT_AT:
        return True
    is_known = bool(diagnosis.matches) or best >= SYMPTOM_AT
    return is_known and len(set(tokenize(text))) >= _MIN_WORDS_OF_CASE


def _is_guess(diagnosis: Diagnosis) -> bool:
    """Whether no record leads, and no symptom is at all sure."""
    sure = any(match.share >= SYMPTOM_AT for match in diagnosis.playbooks)
    return diagnosis.verdict is Verdict.UNKNOWN and not sure


def _all_told(conversation: Conversation, text: str) -> str:
    """A message behind what was told in vain before it, since the tool forgot or greeted."""
    told: list[str] = []
    forgotten = {say(key, one) for key in ("start-over", "forgotten") for one in Language}
    for turn in conversation.turns:
        if turn.speaker is Speaker.USER:
            told.append(turn.text)
        elif turn.shows or turn.text in forgotten:
            told.clear()
    earlier = [one for one in told if one != text and is_statement(one)]
    return "\n".join([*earlier, text])


def _language_of_input(diagnosis: Diagnosis) -> Language:
    """That of the user's own words. A single line was typed, or pasted by who reads it."""
    if not diagnosis.evidence.told and diagnosis.evidence.total_lines > 1:
        return Language.ENGLISH
    return Language.CHINESE if diagnosis.evidence.has_chinese else Language.ENGLISH
