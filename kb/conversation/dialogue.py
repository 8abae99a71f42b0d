"""The turns: `reply` takes what the user says."""

from __future__ import annotations

from collections.abc import Sequence, Set

import msgspec

from kb.conversation.acts import COURTESIES, MAX_TALK_CHARACTERS, Act, Acted
from kb.conversation.answers import is_answer, match_answer
from kb.conversation.asked import Asked, asked_in
from kb.conversation.cases import diagnosed_again, is_bare, opened, opened_by_question, start_over
from kb.conversation.interpret import interpret, is_output, persists, read_remark, search_output
from kb.conversation.language import Language, language_of, say
from kb.conversation.looking import looked_now
from kb.conversation.message import TOLD, evidence_of, parts_of, requests_of, told_in
from kb.conversation.next_step import name_of, playbooks_of, shown_lately, task_of
from kb.conversation.phrases import harm_of
from kb.conversation.replies import Answer, answer_to, not_understood
from kb.conversation.replies.another import another_failure
from kb.conversation.replies.answer import (
    described_task,
    like_question,
    what_leads,
    where_we_are,
    with_answers,
)
from kb.conversation.replies.light import clue_of, in_its_light
from kb.conversation.speech import beginning, describe_change, named_cause, tool_turn
from kb.conversation.state import Conversation, ReplyAct, Speaker, Statement, Turn, combine, rank
from kb.conversation.subject import asks, is_question
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Match, cause_pointed_to, first_question
from kb.log.clean import replace_surrogates, strip_controls
from kb.questions import QuestionPlan, Topic, next_question
from kb.questions.observe import NO, YES

_MAY_STATE = frozenset({Act.OTHER, Act.NO, Act.FAILURE, Act.OFF_TOPIC})
"""Acts whose words may state a fact that a rule understands: "not in docker", "no Xid"."""
_MAY_ADD = frozenset(
    {Act.OTHER, Act.WHY, Act.WHY_NOT, Act.SAFE, Act.COST, Act.HOW, Act.PREVENT, Act.CANNOT}
)
"""Requests that a question of the table may answer better than a general reply."""
_MAY_TELL = frozenset(
    {
        Act.OTHER,
        Act.WHY,
        Act.WHY_NOT,
        Act.FAILURE,
        Act.FRUSTRATION,
        Act.MOST_LIKELY,
        Act.SAFE,
        Act.CANNOT,
        Act.DONT_KNOW,
    }
)
"""Requests whose words may tell an observation as well: "why now, nobody touched it"."""


def reply(conversation: Conversation, text: str, knowledge: KnowledgeBase) -> Conversation:
    """The conversation after the user said something: an answer, a request, or further evidence.

    The same arguments give the same value.
    """
    text = _cleaned(text).strip()
    if not text:
        return conversation
    language = language_of(text, conversation.language)
    said = msgspec.structs.replace(conversation, language=language)
    current = said.with_turns(Turn(Speaker.USER, text))
    if len(text) > MAX_TALK_CHARACTERS:
        return _heard(current, text, search_output(text, current, knowledge), knowledge)
    statement = match_answer(text, current, knowledge)
    if statement:
        return _heard(current, text, statement, knowledge)
    return _acted(current, text, parts_of(text, knowledge), knowledge)


def leave_out(conversation: Conversation, text: str, why: str) -> Conversation:
    """The conversation after a message that could not be read; `why` is a sentence."""
    turn = tool_turn(why, (), act=ReplyAct.DECLINE)
    return conversation.with_turns(Turn(Speaker.USER, _cleaned(text)), turn)


def leave_empty(conversation: Conversation) -> Conversation:
    """The conversation after an empty message."""
    return leave_out(conversation, "", say("empty-message", conversation.language))


def leave_too_long(conversation: Conversation, most: int) -> Conversation:
    """The conversation after a message of more than `most` bytes, of which nothing was kept."""
    return leave_out(conversation, "", say("too-long", conversation.language, bytes=f"{most:,}"))


def _cleaned(text: str) -> str:
    """Without what a terminal interprets, and what UTF-8 cannot hold."""
    return strip_controls(replace_surrogates(text))


def _acted(
    conversation: Conversation, text: str, parts: Sequence[Acted], knowledge: KnowledgeBase
) -> Conversation:
    if conversation.solved and asked_in(text) is Asked.RELAPSE:
        return _answers(conversation, [Acted(Act.FAILURE, text)], knowledge)
    acts = {part.act for part in parts}
    if Act.UNDO in acts and Act.START_OVER not in acts:
        rest = [part for part in parts if part.act not in COURTESIES | {Act.UNDO}]
        undone = _undo(conversation, knowledge)
        return _told_or_asked(undone, text, rest, knowledge) if rest else undone
    if Act.START_OVER in acts:
        case = told_in([part for part in parts if part.act is not Act.START_OVER])
        fresh = start_over(conversation, knowledge, "forgotten" if case else "start-over")
        return _diagnosed(fresh, case, knowledge) if case else fresh
    if acts == {Act.OTHER} and is_answer(text):
        return with_answers(conversation, [Answer(_no_answer(conversation))], ReplyAct.DECLINE)
    return _told_or_asked(conversation, text, parts, knowledge)


def _told_or_asked(
    conversation: Conversation, text: str, parts: Sequence[Acted], knowledge: KnowledgeBase
) -> Conversation:
    """What was told is evidence, and what was asked is answered."""
    acts = {part.act for part in parts}
    evidence = evidence_of(text, parts)
    requests = requests_of(text, parts)
    is_asked = any(asked_in(part.text) not in (None, Asked.RELAPSE) for part in parts)
    is_asked = is_asked or (acts == {Act.OTHER} and is_question(text) and bool(harm_of(text)))
    if is_bare(conversation) and (evidence or (acts <= _MAY_STATE and not is_asked)):
        return _diagnosed(conversation, evidence or text, knowledge)
    if evidence is None:
        taken = None if is_asked else _taken(conversation, text, acts, knowledge)
        return taken or _answers(conversation, requests, knowledge)
    # Words that a set-up shares with records are no evidence.
    understand = read_remark if acts & TOLD == {Act.ENVIRONMENT} else interpret
    statement = understand(evidence, conversation, knowledge)
    again = diagnosed_again(conversation, statement, evidence, knowledge)
    if again and not requests:
        return again
    if Act.CORRECTION in acts and statement:
        conversation = _corrected(conversation, statement)
        noted = say("corrected", conversation.language, text=beginning(evidence))
        statement = msgspec.structs.replace(statement, says=(noted, *statement.says))
    if acts == {Act.TRIED} and persists(text) and (statement is None or statement.changes_nothing):
        kept = conversation.with_statement(statement or Statement(text))
        return _answers(kept, [Acted(Act.FAILURE, text)], knowledge)
    if not requests:
        return _heard(conversation, text, statement, knowledge)
    if statement is None:
        return _answers(conversation, requests, knowledge)
    after = _rerank(conversation, statement)
    another = another_failure(statement, conversation, after, knowledge)
    effect = _effect_told(conversation, after, statement, _only(another))
    return _answers(after, requests, knowledge, *effect, *_only(another))


def _taken(
    conversation: Conversation, text: str, acts: Set[Act], knowledge: KnowledgeBase
) -> Conversation | None:
    """With what a message tells though none of its acts does; None where that is nothing. A case
    may begin with a question: "why does it hang at init?"."""
    begun = opened_by_question(conversation, text, acts, knowledge)
    if begun:
        return begun
    remark = read_remark(text, conversation, knowledge) if acts <= _MAY_STATE else None
    if remark and remark.changes_nothing and is_question(text):
        return None
    return _heard(conversation, text, remark, knowledge) if remark else None


def _diagnosed(conversation: Conversation, text: str, knowledge: KnowledgeBase) -> Conversation:
    """The same with what the user tells as the case."""
    said = Answer(say("other", conversation.language))
    return opened(conversation, text, knowledge) or with_answers(
        conversation, [said], ReplyAct.DECLINE
    )


def _answers(
    conversation: Conversation,
    requests: Sequence[Acted],
    knowledge: KnowledgeBase,
    *before: Answer,
) -> Conversation:
    """One turn that answers all requests, after what is to be said `before` it."""
    answers = list(before)
    for acted in requests:
        may_tell = acted.act in _MAY_TELL
        clue = clue_of(acted.text, conversation, knowledge) if may_tell else None
        answers += _only(clue)
        chosen = _chosen(acted, conversation, knowledge)
        if chosen:
            return _heard(conversation, acted.text, chosen, knowledge)
        answer = answer_to(acted, conversation, knowledge)
        if clue and answer.act is ReplyAct.DECLINE:
            answer = where_we_are(conversation, knowledge)
        answers.append(answer)
        if _may_add(acted, answer) and asks(acted.text):
            answers += _only(like_question(acted.text, conversation, knowledge))
        if answer.statement:
            conversation = _rerank(conversation, answer.statement)
    if conversation.solved:  # what nobody can say beside it is left out
        answers = [one for one in answers if one.act is not ReplyAct.DECLINE] or answers
    return with_answers(conversation, answers)


def _is_only_heard(statement: Statement) -> bool:
    """Whether a text was searched with and brought up nothing, and says nothing by a rule."""
    is_searched = bool(statement.searched_text) and len(statement.says) == 1
    return statement.changes_nothing and is_searched


def _may_add(acted: Acted, answer: Answer) -> bool:
    """Whether the nearest question of the table may add to an answer: one to a guess, or one that
    neither shows a check or step nor names a source."""
    is_general = not answer.shows and "://" not in answer.text
    return (acted.act in _MAY_ADD and is_general) or asked_in(acted.text) is Asked.GUESS


def _chosen(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Statement | None:
    """A yes or no in other words is an answer where the question takes it."""
    words = {Act.YES: YES, Act.NO: NO}.get(acted.act)
    statement = match_answer(words, conversation, knowledge) if words else None
    return msgspec.structs.replace(statement, text=acted.text) if statement else None


def _heard(
    conversation: Conversation,
    text: str,
    statement: Statement | None,
    knowledge: KnowledgeBase,
) -> Conversation:
    """Rank again, choose the next question, explain the changes, and go on with what is to do now
    where that is new."""
    looked = looked_now(text, conversation, knowledge)
    if looked:
        statement = combine(text, [*([statement] if statement else []), looked])
    if statement is None:
        if is_bare(conversation):
            return _diagnosed(conversation, text, knowledge)
        clue = clue_of(text, conversation, knowledge)
        near = None if clue else like_question(text, conversation, knowledge)
        noted = near or not_understood("noted-clue" if clue else "noted", conversation, knowledge)
        kept = conversation.with_statement(Statement(text))
        light = in_its_light(text, conversation, conversation, knowledge)
        return with_answers(kept, [*_only(clue), noted, *light])
    after = _rerank(conversation, statement)
    another = another_failure(statement, conversation, after, knowledge)
    pointed = another or _cause_pointed_to(statement, after, knowledge)
    meant = [*_only(clue_of(text, after, knowledge)), *_only(pointed)]
    if not meant and _is_only_heard(statement) and not is_output(text, knowledge):
        meant = _only(like_question(text, after, knowledge))
    answers = [*_effect_told(conversation, after, statement, meant), *meant]
    if another:  # what is to do for the first does not help here
        return with_answers(after, answers, ReplyAct.UPDATE)
    if after.inquiry and after.inquiry.topic is Topic.EFFECT:
        answers.append(Answer(after.inquiry.text))
        return with_answers(after, answers, ReplyAct.ASK)
    task = task_of(after, knowledge)
    if task and name_of(task) not in shown_lately(conversation):
        todo = described_task(task, after.language)
        answers.append(Answer(todo, shows=(name_of(task),)))
    answers += in_its_light(text, conversation, after, knowledge)
    return with_answers(after, answers, ReplyAct.UPDATE)


def _only(answer: Answer | None) -> list[Answer]:
    """It, where there is one."""
    return [answer] if answer else []


def _cause_pointed_to(
    statement: Statement, after: Conversation, knowledge: KnowledgeBase
) -> Answer | None:
    """The cause for which a line or an output that was just told speaks."""
    symptoms = statement.symptoms or playbooks_of(after, knowledge)
    found = cause_pointed_to(symptoms, after.matches, statement.readings)
    return Answer(named_cause(*found, "cause-shown", after.language)) if found else None


def _effect_told(
    before: Conversation, after: Conversation, statement: Statement, meant: Sequence[Answer]
) -> list[Answer]:
    """What a statement does to the belief; nothing where it does none, and has a meaning all the
    same."""
    says_more = statement.observations or statement.done
    if meant and before.matches == after.matches and not says_more:
        return []
    return [Answer(_reason(before, after, statement), act=ReplyAct.UPDATE)]


def _reason(before: Conversation, after: Conversation, statement: Statement) -> str:
    effect = _effect(before.matches, after.matches, after.language)
    if not before.matches and not after.matches:
        effect = ""
    return " ".join(filter(None, [*statement.says, effect])) or effect


def _no_answer(conversation: Conversation) -> str:
    language, question = conversation.language, conversation.question
    if question is None:
        return say("no-question", language)
    return say("possible-answers", language, answers=", ".join(question.answers))


def _undo(conversation: Conversation, knowledge: KnowledgeBase) -> Conversation:
    language = conversation.language
    before = conversation.before
    if not conversation.statements and before and not is_bare(before):
        return _back_to(before, conversation, knowledge)
    if not conversation.statements:
        said = Answer(say("nothing-to-undo", language))
        return with_answers(conversation, [said], ReplyAct.DECLINE)
    last = conversation.statements[-1]
    after = _with_statements(conversation, conversation.statements[:-1])
    effect = _effect(conversation.matches, after.matches, language)
    text = say("undone", language, text=beginning(last.text), effect=effect)
    return after.with_turns(tool_turn(text, conversation.pool, act=ReplyAct.UPDATE))


def _back_to(
    before: Conversation, conversation: Conversation, knowledge: KnowledgeBase
) -> Conversation:
    """The case that another took the place of. Its last turn is the message that did so."""
    language = conversation.language
    case = msgspec.structs.replace(before, turns=conversation.turns, language=language)
    leads = what_leads(case, knowledge)
    said = say("undone-case", language, text=beginning(before.turns[-1].text), leads=leads)
    return with_answers(case, [Answer(said.strip())], ReplyAct.UPDATE)


def _corrected(conversation: Conversation, statement: Statement) -> Conversation:
    """Without the earlier statements about the same thing."""
    kept = tuple(one for one in conversation.statements if not _same_thing(one, statement))
    return _with_statements(conversation, kept)


def _same_thing(old: Statement, new: Statement) -> bool:
    """Whether both settle the same question, or speak of the same system."""
    settled = set(old.settled_questions) & set(new.settled_questions)
    versions = old.environment.versions.keys() & new.environment.versions.keys()
    systems = old.environment.systems & new.environment.systems
    return bool(settled or versions or systems)


def _effect(before: tuple[Match, ...], after: tuple[Match, ...], language: Language) -> str:
    if before == after:
        return say("same-ranking", language)
    return describe_change(before, after, language)


def _rerank(conversation: Conversation, statement: Statement) -> Conversation:
    return _with_statements(conversation, (*conversation.statements, statement))


def _with_statements(conversation: Conversation, statements: tuple[Statement, ...]) -> Conversation:
    """Matches and question follow from the log and the statements, so both are made anew."""
    after = msgspec.structs.replace(conversation, statements=statements)
    return msgspec.structs.replace(after, matches=rank(after), inquiry=_inquiry(after))


def _inquiry(conversation: Conversation) -> QuestionPlan | None:
    if not conversation.statements:
        return first_question(conversation.diagnosis)
    if conversation.solved:
        return None
    return conversation.statements[-1].asks or next_question(
        conversation.belief,
        conversation.incidents,
        conversation.known,
        conversation.settled_questions,
    )
