"""The turns: `begin` opens a conversation, `reply` takes what the user says."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kb.conversation.acts import MAX_TALK_CHARACTERS
from kb.conversation.answers import is_answer, match_answer
from kb.conversation.commands import Request, to_command
from kb.conversation.explain import answer
from kb.conversation.interpret import interpret, search_output
from kb.conversation.next_step import check_to_run
from kb.conversation.opening import opening
from kb.conversation.speech import describe_change, described_check, tool_turn
from kb.conversation.state import Conversation, Speaker, Statement, Turn, rank
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, Match, first_question
from kb.log.clean import replace_surrogates, strip_controls
from kb.questions import QuestionPlan, next_question

_NOT_UNDERSTOOD = (
    "I did not understand that, so nothing changes. Type `help` to see what I understand."
)


def begin(diagnosis: Diagnosis) -> Conversation:
    """State the findings and the most likely cause, and ask the best question. Does not search."""
    conversation = Conversation(diagnosis, (), (opening(diagnosis),), first_question(diagnosis))
    return msgspec.structs.replace(conversation, matches=rank(conversation))


def reply(conversation: Conversation, text: str, knowledge: KnowledgeBase) -> Conversation:
    """The conversation after the user said something: an answer, a request, or further evidence.

    The same arguments give the same value.
    """
    text = _cleaned(text).strip()
    if not text:
        return conversation
    current = _with_turns(conversation, [Turn(Speaker.USER, text)])
    if len(text) > MAX_TALK_CHARACTERS:
        return _told(current, search_output(text, conversation, knowledge), knowledge)
    statement = match_answer(text, conversation, knowledge)
    if statement:
        return _told(current, statement, knowledge)
    command = to_command(text)
    if command and command.request is Request.UNDO:
        return _undo(current)
    if command:
        return _with_turns(current, [answer(command, current, knowledge)])
    statement = interpret(text, conversation, knowledge)
    if statement is None and is_answer(text):
        return _with_turns(current, [tool_turn(_no_answer(current), ())])
    return _told(current, statement, knowledge)


def leave_out(conversation: Conversation, text: str, why: str) -> Conversation:
    """The conversation after a message that could not be read; `why` is a sentence."""
    return _with_turns(conversation, [Turn(Speaker.USER, _cleaned(text)), tool_turn(why, ())])


def _cleaned(text: str) -> str:
    """Without what a terminal interprets, and what UTF-8 cannot hold."""
    return strip_controls(replace_surrogates(text))


def _told(
    conversation: Conversation, statement: Statement | None, knowledge: KnowledgeBase
) -> Conversation:
    """Rank again, choose the next question and explain the changes; name the next check after the
    output of one."""
    if statement is None:
        return _with_turns(conversation, [tool_turn(_NOT_UNDERSTOOD, ())])
    after = _rerank(conversation, (*conversation.statements, statement))
    reason = " ".join(statement.says)
    text = f"{reason} {_effect(conversation.matches, after.matches)}".strip()
    step = check_to_run(after, knowledge) if statement.checks else None
    if step:
        text += f"\n{described_check(step)}"
    return _with_turns(after, [tool_turn(text, after.pool)])


def _no_answer(conversation: Conversation) -> str:
    question = conversation.question
    if question is None:
        return "No question is open."
    return f"Possible answers to the open question: {', '.join(question.answers)}."


def _undo(conversation: Conversation) -> Conversation:
    if not conversation.statements:
        return _with_turns(conversation, [tool_turn("There is nothing to undo.", ())])
    last = conversation.statements[-1]
    after = _rerank(conversation, conversation.statements[:-1])
    text = f"Undone: “{last.text}”. {_effect(conversation.matches, after.matches)}"
    return _with_turns(after, [tool_turn(text, conversation.pool)])


def _effect(before: tuple[Match, ...], after: tuple[Match, ...]) -> str:
    if before == after:
        return "The ranking stays the same."
    return describe_change(before, after)


def _rerank(conversation: Conversation, statements: tuple[Statement, ...]) -> Conversation:
    """Matches and question follow from the log and the statements, so both are made anew."""
    after = msgspec.structs.replace(conversation, statements=statements)
    return msgspec.structs.replace(after, matches=rank(after), inquiry=_inquiry(after))


def _inquiry(conversation: Conversation) -> QuestionPlan | None:
    if not conversation.statements:
        return first_question(conversation.diagnosis)
    return conversation.statements[-1].asks or next_question(
        conversation.belief,
        conversation.incidents,
        conversation.known,
        conversation.settled_questions,
    )


def _with_turns(conversation: Conversation, turns: Iterable[Turn]) -> Conversation:
    return msgspec.structs.replace(conversation, turns=(*conversation.turns, *turns))
