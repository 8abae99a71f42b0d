"""The turns: `begin` opens a conversation, `reply` takes what the user says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

import msgspec

from index.tokens import tokenize
from kb.conversation.acts import COURTESIES, MAX_TALK_CHARACTERS, Act, Acted, acts_of
from kb.conversation.answers import is_answer, match_answer
from kb.conversation.commands import to_command
from kb.conversation.interpret import (
    bears_signature,
    interpret,
    is_output,
    read_remark,
    search_output,
)
from kb.conversation.language import Language, language_of, say
from kb.conversation.looking import looked_now
from kb.conversation.next_step import cause_shown, name_of, shown_lately, task_of
from kb.conversation.opening import opening
from kb.conversation.readings import read_pasted
from kb.conversation.replies import Answer, answer_to, not_understood, paragraphs
from kb.conversation.replies.answer import described_task, named_cause
from kb.conversation.replies.light import in_its_light
from kb.conversation.scope import Scope, scope_of
from kb.conversation.speech import beginning, describe_change, tool_turn
from kb.conversation.state import (
    Conversation,
    ReplyAct,
    Speaker,
    Statement,
    Turn,
    combine,
    rank,
)
from kb.conversation.subject import is_of_the_field, is_question, is_statement
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import Diagnosis, Match, diagnose, first_question
from kb.evidence.nature import is_human_written
from kb.log import Log
from kb.log.clean import replace_surrogates, strip_controls
from kb.outcome import Outcome
from kb.questions import QuestionPlan, Topic, next_question
from kb.questions.observe import NO, YES
from kb.verdict import SYMPTOM_AT, Verdict

_MAX_ANSWERS = 2
"""Requests of one message that are answered; a longer reply is not read."""

_TOLD = frozenset({Act.PROBLEM, Act.OBSERVATION, Act.ENVIRONMENT, Act.TRIED, Act.CORRECTION})
"""Acts that are evidence."""
_NOT_ASKED = frozenset({Act.CANNOT, Act.OFF_TOPIC})
"""Acts that a question about the field is not."""
_ASKED_AFTER_SUCCESS = frozenset(
    {
        Act.SUMMARISE,
        Act.HAND_OVER,
        Act.COST,
        Act.SAFE,
        Act.HOW,
        Act.SHOW_FIX,
        Act.PREVENT,
        Act.EXPLAIN_TERM,
    }
)
"""Requests that the answer to a success does not answer."""
_MAY_STATE = frozenset({Act.OTHER, Act.NO, Act.FAILURE, Act.OFF_TOPIC})
"""Acts whose words may state a fact that a rule understands: "not in docker", "no Xid"."""
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
"""Confidence of a playbook from which on a complaint names a symptom; "it does not work" names
none, and has a third of it."""
_NAMES_STEP = re.compile(r"\bstep \d{1,2}\b(?!\s*[:/])", re.IGNORECASE)
"""A step of a fix, not of a training: "step 2 fixed it" is no line of a log."""
_MAX_LINES_AGAIN = 20
"""Of the input that are read once more, in the order of their weight."""
_ASKS_WHY = re.compile(
    r"\b(?:why|what about|how come|how about|instead|not it)\b"
    r"|[?？]|为什么|为啥|怎么|难道|会不会|呢|吗",
    re.IGNORECASE,
)

_ONCE = re.compile(
    r"\b(?:yesterday|last (?:week|month|night|year|time)|used to|until|before|earlier|previously"
    r"|originally|this morning|(?:days?|weeks?|months?) ago)\b"
    r"|昨[天晚日]|前天|上(?:个)?[周月]|之前|以前|原来|原先|本来|早上|上午|一直(?:都)?(?:是)?(?:好|正常)",
    re.IGNORECASE,
)
"""A time that is over."""
_NOW = re.compile(
    r"\b(?:now|again|finally|since then|as before)\b|现在|终于|已经|恢复|又", re.IGNORECASE
)


def begin(diagnosis: Diagnosis, earlier: Sequence[Outcome] = ()) -> Conversation:
    """State the findings and the most likely cause, and ask the best question. Does not search.

    `earlier` is how other cases on this machine ended, newest first.
    """
    language = _language_of_input(diagnosis)
    turn = opening(diagnosis, language, earlier)
    question = first_question(diagnosis)
    conversation = Conversation(
        diagnosis, (), (turn,), question, language=language, earlier=tuple(earlier)
    )
    return msgspec.structs.replace(conversation, matches=rank(conversation))


def greet(nothing: Diagnosis, earlier: Sequence[Outcome] = ()) -> Conversation:
    """Ask what is wrong: the first message that tells it is diagnosed.

    `nothing` is the diagnosis of an empty input; `earlier` as for `begin`.
    """
    turn = tool_turn(say("greeting", Language.ENGLISH), (), act=ReplyAct.GREET)
    return msgspec.structs.replace(begin(nothing, earlier), turns=(turn,))


def reply(conversation: Conversation, text: str, knowledge: KnowledgeBase) -> Conversation:
    """The conversation after the user said something: an answer, a request, or further evidence.

    The same arguments give the same value.
    """
    text = _cleaned(text).strip()
    if not text:
        return conversation
    language = language_of(text, conversation.language)
    said = msgspec.structs.replace(conversation, language=language)
    current = _with_turns(said, [Turn(Speaker.USER, text)])
    if len(text) > MAX_TALK_CHARACTERS:
        return _heard(current, text, search_output(text, current, knowledge), knowledge)
    statement = match_answer(text, current, knowledge)
    if statement:
        return _heard(current, text, statement, knowledge)
    return _acted(current, text, _parts(text, knowledge), knowledge)


def leave_out(conversation: Conversation, text: str, why: str) -> Conversation:
    """The conversation after a message that could not be read; `why` is a sentence."""
    turn = tool_turn(why, (), act=ReplyAct.DECLINE)
    return _with_turns(conversation, [Turn(Speaker.USER, _cleaned(text)), turn])


def leave_empty(conversation: Conversation) -> Conversation:
    """The conversation after an empty message."""
    return leave_out(conversation, "", say("empty-message", conversation.language))


def leave_too_long(conversation: Conversation, most: int) -> Conversation:
    """The conversation after a message of more than `most` bytes, of which nothing was kept."""
    return leave_out(conversation, "", say("too-long", conversation.language, bytes=f"{most:,}"))


def _cleaned(text: str) -> str:
    """Without what a terminal interprets, and what UTF-8 cannot hold."""
    return strip_controls(replace_surrogates(text))


def _language_of_input(diagnosis: Diagnosis) -> Language:
    """That of the user's own words."""
    if not diagnosis.evidence.told:
        return Language.ENGLISH
    return language_of("\n".join(line.text for line in diagnosis.evidence.lines))


def _parts(text: str, knowledge: KnowledgeBase) -> tuple[Acted, ...]:
    """The acts of a message. A line that a record knows is evidence, whatever else it may say, and
    so are lines that a check knows."""
    is_line = "\n" not in text and not to_command(text) and is_output(text, knowledge)
    if is_line and not _NAMES_STEP.search(text):
        return (Acted(Act.PROBLEM, text),)
    if _is_output_of_check(text, knowledge):
        return (Acted(Act.OBSERVATION, text),)
    acts = acts_of(text)
    if is_line and all(part.act is not Act.SUCCESS for part in acts):
        return (Acted(Act.PROBLEM, text),)
    return tuple(
        _as_output(_as_history(_as_question(_as_denial(part))), knowledge) for part in acts
    )


def _is_output_of_check(text: str, knowledge: KnowledgeBase) -> bool:
    """Whether several lines hold the output of a check, and no words of a person."""
    lines = text.split("\n")
    is_pasted = len(lines) > 1 and not any(map(is_human_written, lines))
    return is_pasted and read_pasted(text, knowledge) is not None


def _as_denial(part: Acted) -> Acted:
    """Who says that it is not the driver, and does not ask why, states something."""
    states = scope_of(part.text) is Scope.NEGATED and not _ASKS_WHY.search(part.text)
    is_denial = part.act is Act.WHY_NOT and states
    return Acted(Act.OBSERVATION, part.text) if is_denial else part


def _as_question(part: Acted) -> Acted:
    """Who asks about the field refuses nothing, and is not off the topic."""
    asks = part.act in _NOT_ASKED and is_question(part.text) and is_statement(part.text)
    is_strange = part.act is Act.OFF_TOPIC and not is_of_the_field(part.text)
    return Acted(Act.OTHER, part.text) if asks and not is_strange else part


def _as_history(part: Acted) -> Acted:
    """What worked until something changed tells how the failure began."""
    is_history = part.act is Act.SUCCESS and _ONCE.search(part.text) and not _NOW.search(part.text)
    return Acted(Act.OBSERVATION, part.text) if is_history else part


def _as_output(part: Acted, knowledge: KnowledgeBase) -> Acted:
    """Lines of a paste that are no words to anybody, but output of a program to a record."""
    is_known = part.act is Act.OTHER and "\n" in part.text and bears_signature(part.text, knowledge)
    return Acted(Act.PROBLEM, part.text) if is_known else part


def _acted(
    conversation: Conversation, text: str, parts: Sequence[Acted], knowledge: KnowledgeBase
) -> Conversation:
    acts = {part.act for part in parts}
    if Act.UNDO in acts and Act.START_OVER not in acts:
        return _undo(conversation)
    if Act.START_OVER in acts:
        case = _evidence("", [part for part in parts if part.act is not Act.START_OVER])
        fresh = _start_over(conversation, knowledge, "forgotten" if case else "start-over")
        return _diagnosed(fresh, case, knowledge) if case else fresh
    if acts == {Act.OTHER} and is_answer(text):
        return _answered(conversation, [Answer(_no_answer(conversation))], ReplyAct.DECLINE)
    return _told_or_asked(conversation, text, parts, knowledge)


def _told_or_asked(
    conversation: Conversation, text: str, parts: Sequence[Acted], knowledge: KnowledgeBase
) -> Conversation:
    """What was told is evidence, and what was asked is answered."""
    acts = {part.act for part in parts}
    evidence = _evidence(text, parts)
    requests = _requests(parts)
    if _is_bare(conversation) and (evidence or acts <= _MAY_STATE):
        return _diagnosed(conversation, evidence or text, knowledge)
    if evidence is None:
        taken = _taken(conversation, text, acts, knowledge)
        return taken or _answers(conversation, requests, knowledge)
    # Words that a set-up shares with records are no evidence.
    understand = read_remark if acts & _TOLD == {Act.ENVIRONMENT} else interpret
    statement = understand(evidence, conversation, knowledge)
    again = _diagnosed_again(conversation, statement, evidence, knowledge)
    if again and not requests:
        return again
    if Act.CORRECTION in acts and statement:
        conversation = _corrected(conversation, statement)
    if not requests:
        return _heard(conversation, text, statement, knowledge)
    if statement is None:
        return _answers(conversation, requests, knowledge)
    after = _rerank(conversation, statement)
    effect = Answer(_reason(conversation, after, statement), act=ReplyAct.UPDATE)
    return _answers(after, requests, knowledge, effect)


def _taken(
    conversation: Conversation, text: str, acts: Set[Act], knowledge: KnowledgeBase
) -> Conversation | None:
    """With what a message tells though none of its acts does; None where that is nothing. A case
    may begin with a question: "why does it hang at init?"."""
    if _is_bare(conversation) and not acts <= _WITHOUT_CASE:
        opened = _opened(conversation, text, knowledge)
        if opened and _is_told(text, acts, opened.diagnosis):
            return opened
    remark = read_remark(text, conversation, knowledge) if acts <= _MAY_STATE else None
    return _heard(conversation, text, remark, knowledge) if remark else None


def _is_told(text: str, acts: Set[Act], diagnosis: Diagnosis) -> bool:
    """Whether a question tells a case that is known, or a complaint a symptom: "it hangs"."""
    best = diagnosis.playbooks[0].confidence if diagnosis.playbooks else 0.0
    if Act.FAILURE in acts and best >= _SYMPTOM_OF_COMPLAINT_AT:
        return True
    is_known = bool(diagnosis.matches) or best >= SYMPTOM_AT
    return is_known and len(set(tokenize(text))) >= _MIN_WORDS_OF_CASE


def _evidence(text: str, parts: Sequence[Acted]) -> str | None:
    """What of a message is evidence: all of it where it has no other acts, and nothing of one
    that tells of a success, whose words must not lower what helped."""
    told_parts = [part.text for part in parts if part.act in _TOLD]
    if text and len(told_parts) == len(parts):
        return text
    if not told_parts or any(part.act is Act.SUCCESS for part in parts):
        return None
    return _put_together(told_parts)


def _put_together(parts: Sequence[str]) -> str:
    """Parts of a message; lines of a program stay lines."""
    return ("\n" if any("\n" in part for part in parts) else ". ").join(parts)


def _requests(parts: Sequence[Acted]) -> list[Acted]:
    """What is to be answered: each act once, courtesies only where there is nothing else."""
    others = {part.act: part for part in reversed(parts) if part.act not in _TOLD}
    if Act.SUCCESS in others:
        whole = _put_together([one.text for one in parts if one.act in _TOLD | {Act.SUCCESS}])
        asked = [part for act, part in others.items() if act in _ASKED_AFTER_SUCCESS]
        return [Acted(Act.SUCCESS, whole), *asked[:1]]
    if any(part.act is Act.TRIED for part in parts):
        others.pop(Act.FAILURE, None)  # what was tried is said to have failed
    if Act.NEXT in others and len(others) > 1:
        others.pop(Act.FAILURE, None)
    serious = [part for part in others.values() if part.act not in COURTESIES]
    has_evidence = any(part.act in _TOLD for part in parts)
    asked = serious or ([] if has_evidence else list(others.values()))
    return sorted(asked, key=parts.index)[:_MAX_ANSWERS]


def _answers(
    conversation: Conversation,
    requests: Sequence[Acted],
    knowledge: KnowledgeBase,
    *before: Answer,
) -> Conversation:
    """One turn that answers all requests, after what is to be said `before` it."""
    answers = list(before)
    for acted in requests:
        chosen = _chosen(acted, conversation, knowledge)
        if chosen:
            return _heard(conversation, acted.text, chosen, knowledge)
        answer = answer_to(acted, conversation, knowledge)
        answers.append(answer)
        if answer.statement:
            conversation = _rerank(conversation, answer.statement)
    return _answered(conversation, answers)


def _chosen(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Statement | None:
    """A yes or no in other words is an answer where the question takes it."""
    words = {Act.YES: YES, Act.NO: NO}.get(acted.act)
    statement = match_answer(words, conversation, knowledge) if words else None
    return msgspec.structs.replace(statement, text=acted.text) if statement else None


def _answered(
    conversation: Conversation, answers: Sequence[Answer], act: ReplyAct | None = None
) -> Conversation:
    """With a turn of these answers, which does what the last of them does unless `act` says it."""
    known = {*conversation.pool, *(name for answer in answers for name in answer.records)}
    turn = tool_turn(
        paragraphs(answer.text for answer in answers),
        known,
        (line for answer in answers for line in answer.lines),
        tuple(dict.fromkeys(name for answer in answers for name in answer.shows)),
        act or answers[-1].act,
    )
    return _with_turns(conversation, [turn])


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
        if _is_bare(conversation):
            return _diagnosed(conversation, text, knowledge)
        noted = not_understood("noted", conversation, knowledge)
        kept = conversation.with_statement(Statement(text))
        light = in_its_light(text, conversation, conversation, knowledge)
        return _answered(kept, [noted, *light])
    after = _rerank(conversation, statement)
    answers = [Answer(_reason(conversation, after, statement))]
    shown = cause_shown(after, knowledge) if statement.readings else None
    if shown:
        answers.append(Answer(named_cause(*shown, "cause-shown", after.language)))
    if after.inquiry and after.inquiry.topic is Topic.EFFECT:
        answers.append(Answer(after.inquiry.text))
        return _answered(after, answers, ReplyAct.ASK)
    task = task_of(after, knowledge)
    if task and name_of(task) not in shown_lately(conversation):
        todo = described_task(task, after.language)
        answers.append(Answer(todo, shows=(name_of(task),)))
    answers += in_its_light(text, conversation, after, knowledge)
    return _answered(after, answers, ReplyAct.UPDATE)


def _reason(before: Conversation, after: Conversation, statement: Statement) -> str:
    effect = _effect(before.matches, after.matches, after.language)
    if not before.matches and not after.matches:
        effect = ""
    return " ".join(filter(None, [*statement.says, effect])) or effect


def _is_bare(conversation: Conversation) -> bool:
    """Whether nothing is known so far: then what the user tells is the case itself."""
    diagnosis = conversation.diagnosis
    known = diagnosis.candidates or diagnosis.playbooks or diagnosis.notes
    return diagnosis.verdict is Verdict.UNKNOWN and not known and not conversation.statements


def _diagnosed(conversation: Conversation, text: str, knowledge: KnowledgeBase) -> Conversation:
    """The same with what the user tells as the case."""
    said = Answer(say("other", conversation.language))
    return _opened(conversation, text, knowledge) or _answered(
        conversation, [said], ReplyAct.DECLINE
    )


def _opened(conversation: Conversation, text: str, knowledge: KnowledgeBase) -> Conversation | None:
    """Begin with a text as the case; what was said stays. None where nothing is known about it, and
    it states no failure."""
    language, earlier = conversation.language, conversation.earlier
    diagnosis = diagnose(Log.from_text(_all_told(conversation, text)), knowledge)
    begun = begin(diagnosis, earlier)
    if _is_bare(begun) and not diagnosis.evidence.states_failure:
        return None
    turns = (*conversation.turns, opening(diagnosis, language, earlier))
    return msgspec.structs.replace(begun, turns=turns, language=language)


def _diagnosed_again(
    conversation: Conversation,
    statement: Statement | None,
    text: str,
    knowledge: KnowledgeBase,
) -> Conversation | None:
    """A new beginning with all that was told, where so far everything is a guess, also with what
    was just stated, and that is none any more; None otherwise."""
    diagnosis = conversation.diagnosis
    after = conversation.with_statement(statement) if statement else conversation
    if not _is_guess(diagnosis) or after.matches or after.readings:
        return None
    lines = [line.text for line in diagnosis.evidence.lines[:_MAX_LINES_AGAIN]]
    told = [one.text for one in conversation.statements]
    found = diagnose(Log.from_text("\n".join([*lines, *told, text])), knowledge)
    if _is_guess(found):
        return None
    language, earlier = conversation.language, conversation.earlier
    turns = (*conversation.turns, opening(found, language, earlier))
    return msgspec.structs.replace(begin(found, earlier), turns=turns, language=language)


def _is_guess(diagnosis: Diagnosis) -> bool:
    """Whether no record leads, and no symptom is at all sure."""
    sure = any(match.confidence >= SYMPTOM_AT for match in diagnosis.playbooks)
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


def _start_over(conversation: Conversation, knowledge: KnowledgeBase, key: str) -> Conversation:
    """Forget the case, and say so; what was said can still be read."""
    language = conversation.language
    empty = begin(diagnose(Log.from_text(""), knowledge), conversation.earlier)
    turn = tool_turn(say(key, language), (), act=ReplyAct.GREET)
    turns = (*conversation.turns, turn)
    return msgspec.structs.replace(empty, turns=turns, language=language)


def _no_answer(conversation: Conversation) -> str:
    language, question = conversation.language, conversation.question
    if question is None:
        return say("no-question", language)
    return say("possible-answers", language, answers=", ".join(question.answers))


def _undo(conversation: Conversation) -> Conversation:
    language = conversation.language
    if not conversation.statements:
        said = Answer(say("nothing-to-undo", language))
        return _answered(conversation, [said], ReplyAct.DECLINE)
    last = conversation.statements[-1]
    after = _with_statements(conversation, conversation.statements[:-1])
    effect = _effect(conversation.matches, after.matches, language)
    text = say("undone", language, text=beginning(last.text), effect=effect)
    return _with_turns(after, [tool_turn(text, conversation.pool, act=ReplyAct.UPDATE)])


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


def _with_turns(conversation: Conversation, turns: Iterable[Turn]) -> Conversation:
    return msgspec.structs.replace(conversation, turns=(*conversation.turns, *turns))
