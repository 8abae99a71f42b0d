"""What people do with the parts of a message: state a problem, ask why, say thanks.

Fixed short phrases are read by rule (`commands.py`, `_FIXED`), all else by a classifier that learnt
from example sentences (`act_model.py`). What a program printed is never classified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from operator import itemgetter

import msgspec

from kb.checks.recognise import is_prompt
from kb.conversation.act_model import load_act_model
from kb.conversation.commands import Request, to_command
from kb.conversation.phrases import act_by_phrase
from kb.conversation.simplified import simplified
from kb.conversation.subject import is_of_the_field, is_question
from kb.conversation.terms import asked_term
from kb.evidence.nature import is_human_written, is_log
from kb.log.clean import replace_surrogates, strip_controls

MAX_TALK_CHARACTERS = 1_000
"""A message that is longer was pasted: it is the output of a program, whatever words are in it.
Ten lines of a terminal, more than people type."""


class Act(StrEnum):
    """What somebody does by saying something."""

    PROBLEM = "problem"
    OBSERVATION = "observation"
    ENVIRONMENT = "environment"
    TRIED = "tried"
    CORRECTION = "correction"
    NEXT = "next"
    WHY = "why"
    WHY_NOT = "why_not"
    EXPLAIN_TERM = "explain_term"
    HOW = "how"
    SAFE = "safe"
    COST = "cost"
    MOST_LIKELY = "most_likely"
    OTHERS = "others"
    SHOW_FIX = "show_fix"
    WORKAROUND = "workaround"
    PREVENT = "prevent"
    SUMMARISE = "summarise"
    HAND_OVER = "hand_over"
    START_OVER = "start_over"
    UNDO = "undo"
    SUCCESS = "success"
    FAILURE = "failure"
    THANKS = "thanks"
    FRUSTRATION = "frustration"
    GREETING = "greeting"
    CANNOT = "cannot"
    DONT_KNOW = "dont_know"
    YES = "yes"
    NO = "no"
    WHO = "who"
    OFF_TOPIC = "off_topic"
    HOSTILE = "hostile"
    OTHER = "other"


class Acted(msgspec.Struct, frozen=True):
    """A part of a message, and what is done by it."""

    act: Act
    text: str


class _Reading(msgspec.Struct, frozen=True):
    """How a text was understood, and how surely, from 0 to 1."""

    act: Act
    share: float


_PARTS = re.compile(
    r"(?<=[.!?])\s+|(?<=[。！？；])|(?<!\s)\s*\n\s*|(?<!\s)\s*[,，;]\s*(?=but\b|但|不过|可是)"
    r"|(?<!\s)\s*,?\s+and\s+(?=(?:what|how|why|where|when|which|is|are|does|do|will|can|should)\b)"
)
"""Between two parts of a message: sentences, lines, two questions, and what `but` sets against each
other."""
_CLAUSES = re.compile(r"(?<!\s)\s*(?:[，;；。!！?？]|,(?!\d)|\.(?![\w/]))\s*")
"""Not within a number, a version or a path."""
_CLAUSES_AND_COLONS = re.compile(r"[,，;；。.!！:：]+(?=\s|[\u4e00-\u9fff])\s*")
_LAST_CLAUSE = re.compile(
    r"(?<!\s)\s*[,，;；]\s*(?:and |but |so |那|还)?([^,，;；。.!！?？\n]{3,80}[?？]?)\s*$"
)
_OWN_QUESTION = re.compile(
    r"(?:how|where|which|what|whats|why) (?:do|does|did|can|could|should|would|is|are|was)"
    r" (?:\S+ ?){2,}"
    r"|(?:can|could|should|do|does|is|are|will|would) (?:i|we|it|that|this|they|the) (?:\S+ ?){2,}"
    r"|.{0,12}(?:怎么|如何|要不要|会不会|能不能|可不可以|哪些|是不是|用不用).{2,}",
    re.IGNORECASE,
)
"""A question that needs nothing of the sentence before it."""
_REQUESTS = frozenset(
    {
        Act.NEXT,
        Act.SHOW_FIX,
        Act.WORKAROUND,
        Act.PREVENT,
        Act.HOW,
        Act.WHY,
        Act.SAFE,
        Act.SUMMARISE,
    }
)
_NOT_WELL = frozenset({Act.PROBLEM, Act.OBSERVATION, Act.FAILURE, Act.TRIED, Act.CANNOT})
"""Acts beside which a part that went well is not the end of the case."""
COURTESIES = frozenset(
    {Act.THANKS, Act.GREETING, Act.FRUSTRATION, Act.OTHER, Act.YES, Act.NO, Act.OFF_TOPIC}
)
"""Acts that are not answered where the message holds another one."""
_UNSURE_ALONE = COURTESIES | {
    Act.HOSTILE,
    Act.START_OVER,
    Act.UNDO,
    Act.PROBLEM,
    Act.OBSERVATION,
    Act.ENVIRONMENT,
    Act.TRIED,
    Act.CORRECTION,
    Act.CANNOT,
}
"""Acts that a clause beside a courtesy is not read as: out of its sentence it says too little."""
_NOTES = frozenset({Act.SUMMARISE, Act.HAND_OVER})
"""What is asked for when a case is over: "it works now, write me a summary"."""
_SURE_ALONE = 0.6
"""Least share of the act of such a clause."""
_MAX_PARTS = 8
"""Sentences of a message that are read one by one; one with more is read as a whole."""

_LEAST_SHARES = {
    Act.HOSTILE: 0.75,
    Act.OFF_TOPIC: 0.6,
    Act.UNDO: 0.7,
    Act.START_OVER: 0.7,
    Act.OTHERS: 0.6,
}
"""Acts that turn somebody away or forget what was told are taken only where that is rather sure."""

_LOOSE = frozenset({Act.OTHER, Act.PROBLEM, Act.OBSERVATION, Act.ENVIRONMENT, Act.TRIED, Act.NEXT})
"""Acts beside which a turn of phrase decides, however sure the classifier is."""
_LIKE_IT = {(Act.HOW, Act.WORKAROUND), (Act.COST, Act.WORKAROUND)}
"""Acts, and those of a turn of phrase that decides beside them, likewise: "how do we go on until
then" asks for a way round."""
_SURE = 0.8
"""Share of another act from which on a turn of phrase does not decide."""

_STILL = re.compile(
    r"\b(?:still|but|though)\b|\b(?:crash|fail|hang|hung|died|broke|stuck)\w* again\b|\bno wait\b"
    r"|\b(?:sometimes|occasionally|now and then|hope|hopefully)\b"
    r"|\b(?:restarting|rebooting)\b.{0,20}\bnow\b"
    r"|\bnow (?:it |i |we |they )?(?:get|gets|die|dies|fails?|crash\w*|hangs?|ooms?|stops)\b"
    r"|\bfell (?:off|over)\b|\bat (?:a|one|half) (?:a )?(?:third|quarter|half|tenth)\b"
    r"|\bso .{3,30}seems?\b"
    r"|\b(?:fine|ok|okay|good|normal|well|healthy|stable|works?|worked|runs?|ran|trains?)"
    r" (?:for|until|till|up to|at first)\b.{0,60}\bthen\b"
    r"|还是|仍|依然|但|不过|可是|又(?:挂|崩|卡|断|报错|失败)|偶尔|有时|重启(?:一下)?[就才]好(?!了)"
    r"|就(?:不行|不好|挂|崩|卡住|掉)了|希望|(?:一?开始|起初|刚开始|前面).{0,30}(?:然后|后来|之后|接着)",
    re.IGNORECASE,
)
"""Not all is well."""
_ASKS_OF_IT = re.compile(
    r"\b(?:is|was|are) (?:that|this|it|these|those)\b|是不是|吗", re.IGNORECASE
)
"""Asks whether it is a new problem, and tells none."""
_TAKES_BACK = re.compile(
    r"\b(?:undo\w*|take|back|revert|remove|delete|cancel|forget|previous|last)\b"
    r"|撤|收回|退|取消|删|当我没|不算|忘|上一|上[个条句]|刚|错",
    re.IGNORECASE,
)
_TELLS_RESULT = re.compile(
    r"\b(?:now|works?|worked|runs?|saved|fixed|started|finished|trains?)\b|了\s*(?:$|[，,。；;])",
    re.IGNORECASE,
)
"""What came of something: without a word of taking back, such a text takes nothing back, however
sure the classifier is, since what was told before would be lost."""
_LIBRARY = re.compile(r"\b[\w+-]{2,60}\.so(?:\.\d+)*\b")
"""What cannot be opened is a program's, not the user's: "libibverbs.so.1 cannot open"."""
_RECURS = re.compile(
    r"\b(?:same|happened|did)\b.{0,16}\b(?:yesterday|last (?:week|month|night|time)|before|too)\b"
    r"|\b(?:second|third|\dth) time\b"
    r"|(?:昨[天晚]|前天|上[周次]|之前|以前).{0,3}(?:也|就)(?:是|这样)|第[二三四]次",
    re.IGNORECASE,
)
"""It was well before, and came back."""

_WORKS = re.compile(
    r"\b(?:works|worked|runs|trains|starts|loads|passes|did it|does it|is up|came up)\b"
    r"(?=\s*(?:$|[.,;!]))"
    r"|\bran (?:all night|through|fine|overnight)\b"
    r"|(?:起来|通|好|行|可以|过去|正常|搞定|解决)了|跑.{0,8}没(?:事|问题|再)|稳定了?",
    re.IGNORECASE,
)
"""Beside thanks it is the end: "port 29511 works. thanks"."""
_DENIES = re.compile(
    r"\b(?:no|not|nothing|none|never|without)\b|n['’]t\b|[不没](?!事|问题|再)", re.IGNORECASE
)
_WELL = re.compile(
    r"\b(?:works?|worked|working|runs?|running|fix\w*|sol\w+|resolved|help\w*|gone|ok|okay|fine"
    r"|good|great|done|up|back|pass\w*|clean\w*|stable|trains?|training|cleared|normal\w*|healthy"
    r"|success\w*|recover\w*|no (?:more|longer))\b"
    r"|好|行了|可以|通|起来|过去|正常|恢复|解决|搞定|成功|[没不]再|没问题"
    r"|没事|稳|跑|训|回来|上[来线]|没了|消失|生效|降[到回]|[到回]了|快了",
    re.IGNORECASE,
)
_STATES_VALUE = re.compile(
    r"\balready\b|\btakes?\b|\bneeds?\b|已经?|本来就?|一直(?:都)?是|要(?=\s*\d)", re.IGNORECASE
)
"""How a setting stands, or how long something takes. Without a word for what goes well it is no
success: "the limit is 64G already"."""
_ROW = re.compile(
    r"(?i:[ \t]*+(?=(?:global[ _])?(?:step|iter|epoch|batch)))"
    r"(?:[A-Za-z_][\w/.%-]{0,40}[ \t:=]{1,3}-?\d[\w.+-]{0,20}%?(?:[ \t,;|]{1,4}|$)"
    r"(?:\([^()\n]{0,40}\)[ \t,;|]{1,4})?){2,}(?:(?:<|#|←).*)?$"
)
"""Names, each with a number, as a training prints them; people add their remark behind it."""
_PAIRS = re.compile(r"\s*(?:[\w.\[\]/-]{1,60}=\S*\s*){2,}")
"""Values of settings, as a scheduler prints them."""

_COMMANDS = {
    Request.HELP: Act.WHO,
    Request.UNDO: Act.UNDO,
    Request.STATEMENTS: Act.SUMMARISE,
    Request.WHY_NOT: Act.WHY_NOT,
    Request.WHY: Act.WHY,
    Request.FIX: Act.SHOW_FIX,
    Request.NEXT: Act.NEXT,
}
_FIXED = tuple(
    (act, re.compile(rf"(?:{pattern})[\s.!?~。！？]*", re.IGNORECASE))
    for act, pattern in (
        (Act.YES, r"y|ye[sp]|yeah|yup|sure|correct|right|是的?|对的?|有的?|会的?|嗯+|没错|确实"),
        (Act.NO, r"no?|nope|nah|不是?|不对|否|没有|不会|都?没有?|并没有"),
        (Act.DONT_KNOW, r"(?:i )?(?:don'?t|do not) know|dunno|no idea|idk|不知道|不清楚|不确定"),
        (Act.THANKS, r"(?:many )?thanks?(?: you| a lot)?|thx|ty|谢谢你?|多谢|感谢"),
        (Act.GREETING, r"hi|hello|hey|你好|您好|嗨|早上好|good (?:morning|evening|afternoon)"),
        (Act.START_OVER, r"start over|reset|restart|重新开始|从头开始|重来"),
        (
            Act.TRIED,
            r"(?:i |we )?(?:did|have done) (?:it|that)"
            r"|(?:已经?|都|刚|我){0,2}[删清改换关移挪加装卸配](?:掉|完|走|上)?了",
        ),
    )
)


def acts_of(text: str) -> tuple[Acted, ...]:
    """The acts of a message, in its order; `OTHER` where nothing is recognised with confidence.

    Lines of a program are one part, `OBSERVATION` behind a prompt and `PROBLEM` otherwise. An empty
    text has no acts.

    Raises:
        EncoderError: the classifier is missing or damaged; never for what the text is.
    """
    text = strip_controls(replace_surrogates(text)).strip()
    if not text:
        return ()
    if len(text) > MAX_TALK_CHARACTERS:
        return (_printed(text),)
    return tuple(
        acted
        for is_printed, block in _blocks(text)
        for acted in ((_printed(block),) if is_printed else _said(block))
    )


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Runs of lines that a program printed, or that a person wrote. A single line that looks like a
    program's is left to the classifier, unless it is behind a prompt: people quote them."""
    lines = [line for line in text.split("\n") if line.strip()]
    for is_printed, run in groupby(zip(_looks(lines), lines, strict=True), itemgetter(0)):
        block = [line for _, line in run]
        yield is_printed and (len(block) > 1 or is_prompt(block[0])), "\n".join(block)


def _looks(lines: Sequence[str]) -> Iterator[bool]:
    """Whether each line is printed. Behind a prompt all are, until a person writes again."""
    behind_prompt = False
    for line in lines:
        if is_prompt(line):
            behind_prompt = True
        elif is_human_written(line):
            behind_prompt = False
        looks_printed = is_log([line]) or bool(_ROW.match(line) or _PAIRS.fullmatch(line))
        yield behind_prompt or (looks_printed and not is_human_written(line))


def _printed(text: str) -> Acted:
    act = Act.OBSERVATION if is_prompt(text.split("\n", 1)[0]) else Act.PROBLEM
    return Acted(act, text)


def _said(text: str) -> tuple[Acted, ...]:
    """The acts of words of a person. They are taken apart where each part is understood more surely
    than the whole, and the parts do different things."""
    asked = _asked_last(text)
    if asked:
        return (*_said(text[: -len(asked)].rstrip(" ,，;；")), *_said(asked))
    parts = [part for part in _PARTS.split(text) if part and part.strip()]
    if not 1 < len(parts) <= _MAX_PARTS:
        act = _read([text])[0].act
        return tuple(_in_one_sentence(text, act)) or (Acted(act, text),)
    whole, *readings = _read([text, *parts])
    acts = {reading.act for reading in readings}
    is_bad = acts & _NOT_WELL and _STILL.search(text)
    if Act.SUCCESS in acts and (is_bad or _RECURS.search(text)):
        return (Acted(Act.OBSERVATION, text),)
    if Act.THANKS in acts and acts <= {Act.THANKS, Act.OTHER} and _goes_well(text):
        return (Acted(Act.SUCCESS, text),)
    is_sure = min(reading.share for reading in readings) >= whole.share
    hides = whole.act in COURTESIES and is_question(parts[-1])  # "thanks. can I see it run?"
    if len(acts) > 1 and (is_sure or hides):
        return tuple(
            acted
            for one, part in zip(readings, parts, strict=True)
            for acted in (_thanked(part) if one.act is Act.THANKS else ()) or [Acted(one.act, part)]
        )
    return tuple(_in_one_sentence(text, whole.act)) or (Acted(whole.act, text),)


def _in_one_sentence(text: str, act: Act) -> list[Acted]:
    """The acts of clauses, where the act of the whole leaves others open."""
    first = _CLAUSES_AND_COLONS.split(text, maxsplit=1)[0]
    if Act.START_OVER in (act, _fixed(first)):
        return _begun_anew(text)
    if act is Act.THANKS and _goes_well(text):
        return [Acted(Act.SUCCESS, text)]
    if act is Act.SUCCESS:
        return _with_note(text)
    return _beside_courtesy(text, act)


def _goes_well(text: str) -> bool:
    """Whether it works, and nothing is denied: beside thanks it is the end."""
    is_well = _WORKS.search(text) and not _STILL.search(text) and not is_question(text)
    return bool(is_well and not _DENIES.search(text))


def _with_note(text: str) -> list[Acted]:
    """A success and the note that its last clause asks for: "no nan for two days, summarise"."""
    *told, last = [clause for clause in _CLAUSES.split(text) if clause.strip()]
    act = _read([last])[0].act if told else Act.OTHER
    return [Acted(Act.SUCCESS, ", ".join(told)), Acted(act, last)] if act in _NOTES else []


def _thanked(text: str) -> list[Acted]:
    """What else a sentence says that thanks: "it is up, thanks!"."""
    return _in_one_sentence(text, Act.THANKS)


def _begun_anew(text: str) -> list[Acted]:
    """Forgetting the case, and the new one that is told behind it: "start over, now vllm hangs"."""
    ends = [match.end() for match in _CLAUSES_AND_COLONS.finditer(text)][:_MAX_PARTS]
    heads = [text[:end].strip(" ,;:，；：") for end in ends]
    readings = _read(heads) if heads else []
    for end, reading in zip(ends, readings, strict=True):
        rest = text[end:]
        if reading.act is Act.START_OVER and is_of_the_field(rest):
            return [Acted(Act.START_OVER, text[:end]), Acted(Act.PROBLEM, rest)]
    return []


def _asked_last(text: str) -> str:
    """The last clause of a sentence, where it is a request by rule or a question of its own; empty
    otherwise."""
    match = _LAST_CLAUSE.search(text)
    if not match:
        return ""
    clause = match[1]
    is_request = _fixed(clause) in _REQUESTS or act_by_phrase(clause) in _REQUESTS
    return clause if is_request or _OWN_QUESTION.match(clause) else ""


def _beside_courtesy(text: str, act: Act) -> list[Acted]:
    """The requests and results that stand beside a courtesy in one sentence: "thanks, that fixed
    it", "that did not help, what else". Clauses that only tell something stay together."""
    clauses = [clause for clause in _CLAUSES.split(text) if clause.strip()]
    is_note = act in _NOTES
    if not (is_note or act in COURTESIES) or not 1 < len(clauses) <= _MAX_PARTS:
        return []
    readings = list(zip(_read(clauses), clauses, strict=True))
    if is_note:
        well = [clause for one, clause in readings if one.act is Act.SUCCESS]
        if not well or _STILL.search(text):
            return []
        rest = [clause for _one, clause in readings if clause not in well]
        return [Acted(Act.SUCCESS, ", ".join(well)), Acted(act, ", ".join(rest) or text)]
    unsure = _UNSURE_ALONE | ({Act.SUCCESS} if _STILL.search(text) else set())
    return [
        Acted(one.act, clause)
        for one, clause in readings
        if one.act not in unsure and one.share >= _SURE_ALONE
    ]


def _read(texts: Sequence[str]) -> list[_Reading]:
    readings = load_act_model().read(texts)
    return [_reading(text, *told) for text, told in zip(texts, readings, strict=True)]


def _reading(text: str, name: str, share: float) -> _Reading:
    fixed = _fixed(text)
    if fixed:
        return _Reading(fixed, 1.0)
    act = Act(name)
    phrase = act_by_phrase(simplified(text))
    if act is Act.SUCCESS and phrase is None and (_may_be_bad(text) or is_question(text)):
        # However sure the classifier is: a false all-clear costs more.
        act = Act.OTHER if is_question(text) else Act.OBSERVATION
    if act is Act.CANNOT and _LIBRARY.search(text):
        act = Act.OBSERVATION
    if act is Act.START_OVER and _ASKS_OF_IT.search(text):
        act = Act.OTHER
    if act is Act.UNDO and _TELLS_RESULT.search(text) and not _TAKES_BACK.search(text):
        act = Act.OTHER if is_question(text) else Act.OBSERVATION
    asks_for_success = act is Act.SUCCESS and phrase == Act.HOW
    is_loose = act in _LOOSE or (act, phrase) in _LIKE_IT
    if phrase and (is_loose or share < _SURE or asks_for_success):
        return _Reading(Act(phrase), max(share, _SURE))
    if share < _LEAST_SHARES.get(act, 0.0):
        act = Act.OTHER
    return _Reading(Act.EXPLAIN_TERM if act is Act.OTHER and asked_term(text) else act, share)


def _may_be_bad(text: str) -> bool:
    """Whether not all is well for sure."""
    states_value = _STATES_VALUE.search(text) and not _WELL.search(text)
    return bool(_STILL.search(text) or states_value)


def _fixed(text: str) -> Act | None:
    """The act of a short phrase that has only one meaning."""
    text = simplified(text)
    command = to_command(text)
    if command:
        return _COMMANDS[command.request]
    return next((act for act, pattern in _FIXED if pattern.fullmatch(text)), None)
