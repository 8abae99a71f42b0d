"""An answer to the question that is open: its number, its text, or another word for it."""

from __future__ import annotations

import re

from kb.conversation.interpret import interpret
from kb.conversation.language import Language, in_language, say
from kb.conversation.naming import position_of
from kb.conversation.state import Conversation, Statement, combine, statement_from_option
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import DONT_KNOW
from kb.numbers import read_int
from kb.questions import KnownEnvironment, Option, QuestionPlan, Topic

_OTHER_WORDS = {
    "yes": r"y|yep|yeah|yes|it does|it is|correct|right|是|是的|对|对的|有|会|嗯",
    "no": r"n|no|nope|it does(?:n't| not)|it is(?:n't| not)|不是|不|否|没有|不会|不对",
    DONT_KNOW: r"don'?t know|i do(?:n'?t| not) know|no idea|not sure|unsure|skip|dunno"
    r"|不知道|不清楚|不确定|跳过",
    "one": r"单机|单节点|一台(?:机器)?",
    "several": r"多机|多节点|多台(?:机器)?",
    "none of these": r"none|neither|none of (?:them|these)|no|nope|都不是|都没有|没有",
}
_FIRST_CLAUSE = re.compile(r"(?<!\s)\s*[,，;；。]\s*|\.\s+")


def match_answer(
    text: str, conversation: Conversation, knowledge: KnowledgeBase
) -> Statement | None:
    """The effect of the answer on the belief; None if the text is not an answer.

    Text after the answer counts as further evidence.
    """
    inquiry = conversation.inquiry
    if inquiry is None:
        return None
    head, *tail = _FIRST_CLAUSE.split(text.strip(), maxsplit=1)
    whole = _picked(text, inquiry)
    picked = _picked(head, inquiry) if whole is None else whole
    if picked is None or (whole is None and _is_loose_no(head, inquiry)):
        return None
    rest = tail[0] if tail and whole is None else ""
    more = interpret(rest, conversation, knowledge) if rest.strip() else None
    answer = _statement_from(inquiry, picked, conversation.language)
    return combine(text, [answer, more] if more else [answer], inquiry.text)


def _is_loose_no(head: str, inquiry: QuestionPlan) -> bool:
    """Whether a "no" with more behind it denies something else than all systems of a list."""
    is_no = re.fullmatch(_OTHER_WORDS["no"], head.strip().casefold()) is not None
    return is_no and inquiry.topic is Topic.SYSTEMS


def is_answer(text: str) -> bool:
    """Whether the text would answer some question."""
    said = text.strip().rstrip(".!。！").casefold()
    words = any(re.fullmatch(pattern, said) for pattern in _OTHER_WORDS.values())
    return words or said.isdecimal()


def _picked(text: str, inquiry: QuestionPlan) -> int | None:
    """The index of the answer, from 0; the one behind the options is "don't know"."""
    said = text.strip().rstrip(".!。！").casefold()
    texts = [*(option.text for option in inquiry.options), DONT_KNOW]
    number = read_int(said) if said.isdecimal() else position_of(said)
    if number is not None:
        return number - 1 if 0 < number <= len(texts) else None
    for index, answer in enumerate(texts):
        if said == answer.casefold() or re.fullmatch(_OTHER_WORDS.get(answer, r"(?!)"), said):
            return index
    return None


def _statement_from(inquiry: QuestionPlan, picked: int, language: Language) -> Statement:
    if picked == len(inquiry.options):
        return Statement(
            "",
            says=(_answered(inquiry, DONT_KNOW, language),),
            settled_questions=(inquiry.key,),
            environment=_known(inquiry, None),
        )
    option = inquiry.options[picked]
    return statement_from_option(
        option,
        _answered(inquiry, option.text, language),
        settled_questions=(inquiry.key,),
        environment=_known(inquiry, option),
    )


def _answered(inquiry: QuestionPlan, answer: str, language: Language) -> str:
    source = f" [{inquiry.records[0]}]" if inquiry.topic is Topic.OBSERVATION else ""
    return say(
        "answered",
        language,
        answer=in_language(answer, language),
        question=in_language(inquiry.text, language),
        source=source,
    )


def _known(inquiry: QuestionPlan, option: Option | None) -> KnownEnvironment:
    """Systems that were offered are not offered again, whatever was picked."""
    if inquiry.topic is Topic.SYSTEMS:
        return KnownEnvironment(systems=frozenset(option.text for option in inquiry.options[:-1]))
    if inquiry.topic is Topic.NODES and option:
        return KnownEnvironment(several_nodes=option is inquiry.options[1])
    return KnownEnvironment()
