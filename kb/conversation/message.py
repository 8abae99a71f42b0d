"""What the parts of a message do: what of it is evidence, and what is to be answered."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.check import Check
from kb.conversation.acts import COURTESIES, Act, Acted, acts_of
from kb.conversation.asked import Asked, asked_in
from kb.conversation.clues import clue_in
from kb.conversation.commands import to_command
from kb.conversation.interpret import bears_signature, is_output
from kb.conversation.known_commands import command_asked, command_named
from kb.conversation.known_options import option_asked
from kb.conversation.naming import programs_of
from kb.conversation.phrases import act_by_phrase
from kb.conversation.readings import read_pasted
from kb.conversation.scope import Scope, scope_of
from kb.conversation.subject import (
    is_of_the_field,
    is_question,
    is_statement,
    without_question,
)
from kb.corpus.base import KnowledgeBase
from kb.evidence.nature import is_human_written
from kb.evidence.paces import slowness_in

_MAX_ANSWERS = 2
"""Requests of one message that are answered; a longer reply is not read."""
TOLD = frozenset({Act.PROBLEM, Act.OBSERVATION, Act.ENVIRONMENT, Act.TRIED, Act.CORRECTION})
"""Acts that are evidence."""
_TAKEN_FOR = frozenset({Act.SUCCESS, Act.OFF_TOPIC})
"""Acts for which a request is taken that a turn of phrase tells."""
_NOT_ASKED = frozenset({Act.CANNOT, Act.OFF_TOPIC, Act.CORRECTION})
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
_OF_AN_END = frozenset({Act.SUCCESS, Act.SUMMARISE, Act.HAND_OVER, Act.PREVENT})
_ASKS_LEAVE = frozenset({Act.SAFE, Act.COST})
_NAMES_STEP = re.compile(r"\bstep \d{1,2}\b(?!\s*[:/])", re.IGNORECASE)
"""A step of a fix, not of a training: "step 2 fixed it" is no line of a log."""
_ASKS_WHY = re.compile(
    r"\b(?:why|what about|how come|how about|instead|not it)\b"
    r"|[?？]|为什么|为啥|怎么|难道|会不会|呢|吗|对吧|是吧|对不对|对么",
    re.IGNORECASE,
)
_LACKS = re.compile(
    r"\bno (?P<en>[a-z][\w-]{1,30})\b(?: (?:on|in|at|here|there|installed|available)\b|\s*[,.;]|$)"
    r"|没(?:有|装|安装)(?:了|过)?\s*(?P<zh>[a-z][\w-]{1,30})",
    re.IGNORECASE,
)
"""A tool that is not there."""
_TELLS = frozenset({None, Asked.RELAPSE})
"""What a turn of phrase asks for where it may tell something."""
_ONCE = re.compile(
    r"\b(?:yesterday|last (?:week|month|night|year|time)|used to|until|before|earlier|previously"
    r"|originally|this morning|(?:days?|weeks?|months?) ago)\b"
    r"|昨[天晚日]|前天|上(?:个)?[周月]|之前|以前|原来|原先|本来|早上|上午|一直(?:都)?(?:是)?(?:好|正常)",
    re.IGNORECASE,
)
"""A time that is over."""
_IN_ONE_PLACE = re.compile(
    r"\b(?:on|with|in|for) (?:just |only )?(?:(?:one|1|a single|single)[ -]"
    r"(?:node|host|machine|gpu|card|rank|process|server|box|pod)"
    r"|(?:node|host|machine|gpu|rank|server|box|pod)[ -]?[\w-]{0,12}\d)"
    r"|(?:在|用)?(?:单[机卡节]|一[台张个](?:机器|卡|节点|GPU)|\d+ ?号(?:机器|卡|节点))",
    re.IGNORECASE,
)
"""It works there, which says nothing of the job."""
_ENDS = re.compile(
    r"\b(?:work\w*|fix\w*|solv\w*|resolv\w*|run(?:s|ning)?|pass\w*|fine|gone|good|great|up|stable"
    r"|clean|success\w*|healthy|train\w*|smooth\w*|perfect\w*|better|cured?|did (?:it|the trick)"
    r"|disappear\w*|vanish\w*|no more|no longer|recover\w*|start(?:s|ed)|resum\w*|helped|that was"
    r"|converg\w*|again|sorted|loads?"
    r"|launches|normal|without|restored|unlimited|back|through|it (?:is|was)|serv(?:es|ing))\b"
    r"|\bno (?:errors?|hangs?|crash\w*|nans?|ooms?|time-?outs?)\b"
    r"|好|起来|正常|通|成功|解决|恢复|不再|没再|稳|过了|回来|降到|平了|行了|搞定|不报|没问题|对了|顺|不卡"
    r"|不掉|消失|没了|没有[^，。]{1,8}了|修|收敛|灵|有效|管用|不崩|不挂|活|绿|齐|动了|连上|存下来|认到|满速",
    re.IGNORECASE,
)
"""Words of an end that is good."""
_NOW = re.compile(
    r"\b(?:now|again|finally|since then|as before|fixed|solved|resolved|helped|did it)\b"
    r"|现在|终于|已经|恢复|又|解决|修好",
    re.IGNORECASE,
)
"""The end of the case, whatever is compared with it."""


def parts_of(text: str, knowledge: KnowledgeBase) -> tuple[Acted, ...]:
    """The acts of a message. A line that a record knows is evidence, whatever else it may say, and
    so are lines that a check knows."""
    is_asked = to_command(text) or command_asked(text) or option_asked(text)
    may_be_line = "\n" not in text and not is_asked
    is_line = may_be_line and is_output(text, knowledge)
    may_be_end = _NAMES_STEP.search(text) or act_by_phrase(text) == Act.SUCCESS
    if is_line and not may_be_end:
        return (Acted(Act.PROBLEM, text),)
    if _is_output_of_check(text, knowledge):
        return (Acted(Act.OBSERVATION, text),)
    acts = _with_asked(acts_of(text), text)
    clue = clue_in(text)
    if clue and (clue.whole or all(part.act is Act.OFF_TOPIC for part in acts)):
        return (Acted(Act.OBSERVATION, text),)
    if is_line and all(part.act is not Act.SUCCESS for part in acts):
        return (Acted(Act.PROBLEM, text),)
    told = (
        _as_comparison(_as_question(_as_denial(_as_asked(_as_end(part, acts))))) for part in acts
    )
    return tuple(
        _as_lack(_as_output(_as_slowness(part, text), knowledge), knowledge) for part in told
    )


def _as_end(part: Acted, parts: Sequence[Acted]) -> Acted:
    """Who asks on beside what sounds like a success ends the case only with words of an end."""
    asks_on = any(one.act not in TOLD | COURTESIES | _OF_AN_END for one in parts)
    if part.act is Act.SUCCESS and asks_on and not _ENDS.search(part.text):
        return Acted(Act.OBSERVATION, part.text)
    return part


def _as_lack(part: Acted, knowledge: KnowledgeBase) -> Acted:
    """Who says that a program of a check is not there cannot run the check."""
    match = _LACKS.search(part.text) if part.act is not Act.SUCCESS else None
    tool = (match["en"] or match["zh"]).lower() if match else ""
    checks = (guide for guide in knowledge.guides.by_id.values() if isinstance(guide, Check))
    is_known = bool(tool) and any(tool in programs_of(check) for check in checks)
    return Acted(Act.CANNOT, part.text) if is_known else part


def evidence_of(text: str, parts: Sequence[Acted]) -> str | None:
    """What of a message is evidence: all of it where it has no other acts, else what is told."""
    return text if all(part.act in TOLD for part in parts) else told_in(parts)


def told_in(parts: Sequence[Acted]) -> str | None:
    """What parts tell, without the other ones; None where they tell nothing, or of a success, whose
    words must not lower what helped."""
    told = [part.text for part in parts if part.act in TOLD]
    if not told or any(part.act is Act.SUCCESS for part in parts):
        return None
    return _put_together(told)


def requests_of(text: str, parts: Sequence[Acted]) -> list[Acted]:
    """What is to be answered of a message: each act once, courtesies only where there is nothing
    else. A success is told by all that asks for nothing."""
    asked = [part for part in parts if part.act not in TOLD]
    questions = [part for part in asked if is_question(part.text)]
    others = {part.act: part for part in (*reversed(asked), *reversed(questions))}
    if Act.SUCCESS in others:
        asked = [part for act, part in others.items() if act in _ASKED_AFTER_SUCCESS]
        told, question = without_question(text)
        if not asked and told and question and (asked_in(question) or is_of_the_field(question)):
            return [Acted(Act.SUCCESS, told), Acted(Act.OTHER, question)]
        for part in asked:
            text = text.replace(part.text, "")
        return [Acted(Act.SUCCESS, text.strip()), *asked[:1]]
    if any(part.act is Act.TRIED for part in parts):
        others.pop(Act.FAILURE, None)  # what was tried is said to have failed
    if Act.CANNOT in others:
        others.pop(Act.NEXT, None)  # what cannot be done is answered with something else
    if Act.NEXT in others and len(others) > 1:
        others.pop(Act.FAILURE, None)
    serious = [part for part in others.values() if _is_serious(part)]
    has_evidence = any(part.act in TOLD for part in parts)
    asked = serious or ([] if has_evidence else list(others.values()))
    return sorted(asked, key=parts.index)[:_MAX_ANSWERS]


def _is_serious(part: Acted) -> bool:
    """Whether it is answered beside what the message tells: no courtesy, and no mere remark."""
    asks = part.act is Act.OTHER and is_question(part.text)
    return asks or part.act not in COURTESIES


def _is_output_of_check(text: str, knowledge: KnowledgeBase) -> bool:
    """Whether several lines hold the output of a check, and no words of a person."""
    lines = text.split("\n")
    is_pasted = len(lines) > 1 and not any(map(is_human_written, lines))
    return is_pasted and read_pasted(text, knowledge) is not None


def _with_asked(parts: tuple[Acted, ...], text: str) -> tuple[Acted, ...]:
    """Where only the whole message asks for something by a turn of phrase, it does, beside what its
    parts tell."""
    if command_asked(text):
        return (*(part for part in parts if not _is_of_command(part)), Acted(Act.SAFE, text))
    if asked_in(text) in _TELLS or any(asked_in(part.text) for part in parts):
        return parts
    return (
        *(part for part in parts if part.act in TOLD and part.text != text),
        Acted(Act.OTHER, text),
    )


def _is_of_command(part: Acted) -> bool:
    """Whether it names a command, or asks leave for one in a sentence of its own."""
    return part.act in _ASKS_LEAVE or command_named(part.text) is not None


def _as_asked(part: Acted) -> Acted:
    """What a turn of phrase asks for is no evidence, and no success."""
    asked = asked_in(part.text)
    if asked is Asked.COMMAND:
        return Acted(Act.SAFE, part.text)
    is_taken = part.act in TOLD | _TAKEN_FOR and asked not in _TELLS
    is_line = part.act is Act.UNDO and asked is Asked.MATTERS  # "can I ignore that line?"
    return Acted(Act.OTHER, part.text) if is_taken or is_line else part


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


def _as_comparison(part: Acted) -> Acted:
    """What worked until something changed tells how the failure began, and what works in another
    place tells what differs: neither ends the case."""
    if part.act is not Act.SUCCESS or _NOW.search(part.text):
        return part
    is_elsewhere = scope_of(part.text) is Scope.ELSEWHERE or _IN_ONE_PLACE.search(part.text)
    is_compared = is_elsewhere or _ONCE.search(part.text)
    return Acted(Act.OBSERVATION, part.text) if is_compared else part


def _as_slowness(part: Acted, message: str) -> Acted:
    """Two numbers that say that something is slower ask nothing, and no part of a message with them
    tells of a success: "3200 tok/s last week, now 1900"."""
    is_told = slowness_in(part.text) and not is_question(part.text)
    if is_told or (part.act is Act.SUCCESS and slowness_in(message)):
        return Acted(Act.OBSERVATION, part.text if is_told else message)
    return part


def _as_output(part: Acted, knowledge: KnowledgeBase) -> Acted:
    """Lines of a paste that are no words to anybody, but output of a program to a record."""
    is_known = part.act is Act.OTHER and "\n" in part.text and bears_signature(part.text, knowledge)
    return Acted(Act.PROBLEM, part.text) if is_known else part


def _put_together(parts: Sequence[str]) -> str:
    """Parts of a message; lines of a program stay lines."""
    return ("\n" if any("\n" in part for part in parts) else ". ").join(parts)
