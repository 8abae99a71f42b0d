"""Actions that the user already took: finds the fix step, and lowers its record if it failed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from index.tokens import tokenize
from kb.conversation.landed import PERSISTS_IF_RIGHT, effect_question
from kb.conversation.language import Language, say
from kb.conversation.speech import prose, quote
from kb.conversation.state import Conversation, Statement
from kb.corpus.base import KnowledgeBase
from kb.evidence.glossary import translate
from kb.incident import Incident, Step

_TRIED = re.compile(
    r"(?:i|we)(?:'ve| have)?(?: already)? (?:did|tried|set|raised|increased|changed|upgraded"
    r"|disabled|enabled|restarted|added|removed|checked|replaced)\b|tried\b"
    r"|.*(?:试|改|设|设置|加|调|换|升级|做)过",
    re.IGNORECASE,
)
"""Says that something was done."""
_PERHAPS = re.compile(r"(?>.*?\b(?:i|we)\b).*\balready\b|already\b|.*已经", re.IGNORECASE)
"""Also an action, but only if it matches a step: "already waiting for hours" is not an action."""
STEP_DONE = re.compile(
    r"(?:step \d{1,2}|第\s*(?:\d{1,2}|[一二三四五六])\s*步)\s*"
    r"(?:is |was |has been |alone |also |也|已经|还是)?"
    r"(?:done|did(?:n't| not)|does(?:n't| not)|failed|no (?:effect|change|luck)|had no effect"
    r"|做过|做了|完成|试过|试了|没用|没有用|没效果|无效|不行).*",
    re.IGNORECASE,
)
"""Phrases that look like a log line but are not."""
_NUMBER_WORDS = ("one two three four five", "first second third fourth fifth", "一 二 三 四 五 六")
_NOT_DONE = re.compile(
    r"\b(?:have|had) (?:a|an|the|no|\d+)\b|\b(?:nobody|no one|never)\b|没人|没有人|没谁|从没|从来没"
    r"|没(?:有)?(?:试|改|设|加|调|换|升级|动|做)过",
    re.IGNORECASE,
)
"""Something is held, or was done by nobody."""
_NUMBER = re.compile(
    r"\bstep\s*#?(?P<digits>\d{1,2}|one|two|three|four|five)\b"
    r"|\b(?P<ordinal>first|second|third|fourth|fifth) step"
    r"|第\s*(?P<zh>\d{1,2}|[一二三四五六])\s*步",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?=[a-z]{1,3}$)")
_NUMBERS = {word: n for words in _NUMBER_WORDS for n, word in enumerate(words.split(), 1)}
_SPOKEN = frozenset(
    "already have did tried try done help change without same still effect it fail increas rais"
    " error happen persist".split()
)
_CHECKS = frozenset(
    "check look find test confirm compare measure list see ask print count search read dump"
    " collect reproduce note determine identify show verify watch inspect".split()
)
"""First words of steps that only check something and fix nothing."""
_ADVISES_AGAINST = re.compile(r"(?:Leave|Keep|Avoid|Do not|Don't|Never)\b")
_MAX_RECORDS_COMPARED = 6
"""Best matches whose steps are compared; users try the fixes that they see first."""
_MIN_WORD_SHARE = 0.5
"""Minimum share of the words of the action that the step has, each weighed by its rarity."""
_MIN_COSINE = 0.55
"""Minimum cosine of the action and the step, where they share fewer words."""


class FixStep(msgspec.Struct, frozen=True):
    """A step of a record's fix."""

    incident: Incident
    number: int
    step: Step


def names_setting(step: Step, settings: Iterable[str]) -> bool:
    """Whether a step speaks of one of the flags, options or variables."""
    said = f"{step.text} {step.command} {step.why}"
    return any(_root(name) in said for name in settings)


def _root(setting: str) -> str:
    """A variable without an ending of English: "LD_PRELOADed 2.24"."""
    variable = _VARIABLE.match(setting)
    return variable[0] if variable else setting


def parse_done_step(
    clause: str, conversation: Conversation, knowledge: KnowledgeBase, *, is_done: bool = False
) -> Statement | None:
    """The matching steps of the candidates' fixes; None if the clause describes no action. It may
    be known that it tells what was done, if anything."""
    acted = bool(_TRIED.match(clause) or STEP_DONE.match(clause))
    if not (acted or is_done or _PERHAPS.match(clause)) or _NOT_DONE.search(clause):
        return None
    incidents = [match.incident for match in conversation.matches[:_MAX_RECORDS_COMPARED]]
    taken = list(step_by_number(clause, incidents) or steps_alike(clause, incidents, knowledge))
    if not taken:
        unknown = say("no-such-step", conversation.language, text=quote(clause))
        return Statement("", says=(unknown,)) if acted else None
    return failed_steps(taken, conversation.language)


def failed_steps(taken: Sequence[FixStep], language: Language) -> Statement:
    """Steps that were done, though the problem persists."""
    cures = [done for done in taken if not only_looks(done.step)]
    asked = effect_question(cures[0].incident, cures[0].number) if cures else None
    failed = [done.incident.id for done in (cures[1:] if asked else cures)]
    return Statement(
        "",
        says=tuple(
            _sentence(done, language, persists=done.incident.id in failed) for done in taken
        ),
        factors=dict.fromkeys(failed, PERSISTS_IF_RIGHT),
        asks=asked,
        done=tuple((done.incident.id, done.number) for done in taken),
    )


def _sentence(taken: FixStep, language: Language, *, persists: bool) -> str:
    text, name = prose(taken.step.text, language), taken.incident.id
    step = say("marked-done", language, number=taken.number, id=name, text=text)
    return " ".join([step, say("persists", language)]) if persists else step


def only_looks(step: Step) -> bool:
    """Whether a step of a fix changes nothing."""
    first = re.match(r"\w+", step.text)
    return first is not None and first[0].lower() in _CHECKS


def step_by_number(clause: str, incidents: Sequence[Incident]) -> list[FixStep]:
    """A bare "step 2" is one of the first record's."""
    number = _number(clause)
    fix = incidents[0].body.fix if incidents else ()
    return [FixStep(incidents[0], number, fix[number - 1])] if 0 < number <= len(fix) else []


def _number(clause: str) -> int:
    """The number of the step that a text names; 0 where it names none."""
    match = _NUMBER.search(clause)
    word = next(filter(None, match.groups()), "") if match else ""
    return int(word) if word.isdecimal() else _NUMBERS.get(word.lower(), 0)


def taken_steps(conversation: Conversation) -> Iterator[FixStep]:
    """The steps that were done, in the order in which the user told of them."""
    for statement in conversation.statements:
        yield from steps_of(statement, conversation)


def steps_of(statement: Statement, conversation: Conversation) -> Iterator[FixStep]:
    """The steps that a statement tells were done."""
    incidents = conversation.incidents
    for name, number in statement.done:
        if name in incidents:
            yield FixStep(incidents[name], number, incidents[name].body.fix[number - 1])


def steps_alike(
    clause: str, incidents: Sequence[Incident], knowledge: KnowledgeBase
) -> Iterator[FixStep]:
    """Of each record the step that is most like what was done, if it is like it at all."""
    steps = [
        FixStep(incident, number, step)
        for incident in incidents
        for number, step in enumerate(incident.body.fix, 1)
        if not _ADVISES_AGAINST.match(step.text)
    ]
    said = frozenset(tokenize(translate(clause))) - _SPOKEN
    if not steps or not said:
        return
    words = [
        frozenset(tokenize(f"{taken.step.text} {taken.step.command or ''}")) for taken in steps
    ]
    rare = _rarities(words)
    shares = [sum(rare[w] for w in said & held) / sum(rare[w] for w in said) for held in words]
    texts = [translate(clause), *(taken.step.text for taken in steps)]
    vectors = knowledge.encoder.encode(texts)
    meanings = vectors[1:] @ vectors[0]
    for incident in incidents:
        mine = [index for index, taken in enumerate(steps) if taken.incident is incident]
        best = max(mine, key=lambda index: shares[index] + float(meanings[index]), default=None)
        if best is None:
            continue
        if shares[best] >= _MIN_WORD_SHARE or meanings[best] >= _MIN_COSINE:
            yield steps[best]


def _rarities(texts: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """Weights of words: the more steps contain a word, the less it counts."""
    counts = Counter(word for text in texts for word in text)
    return _Rarities({word: 1 / count for word, count in counts.items()})


class _Rarities(dict[str, float]):
    """Words that no step has weigh as much as a word of one step."""

    def __missing__(self, word: str) -> float:
        return 1.0
