"""What the last thing that was shown does: a command, a step, a flag of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.conversation.acts import Acted
from kb.conversation.done_steps import only_looks
from kb.conversation.language import in_language, say
from kb.conversation.passages import passage_about
from kb.conversation.replies.answer import Answer, paragraphs, sentences, with_passage
from kb.conversation.replies.explain import meaning
from kb.conversation.replies.meant import task_shown
from kb.conversation.speech import prose
from kb.conversation.state import Conversation, Speaker
from kb.conversation.terms import find_term
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import NextCheck

_OF_FLAG = re.compile(
    r"\b(?:flag|option|switch|param\w*|arg\w*|bit at the end)\b|参数|选项|开关", re.IGNORECASE
)
_OF_SETTING = re.compile(r"\b(?:setting|variable|env ?var|var)\b|变量|设置", re.IGNORECASE)
_FLAG = re.compile(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*")
_SETTING = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b(?==)?")
_CODE = re.compile(r"```\w*\n(?P<block>.*?)```|`(?P<inline>[^`\n]+)`", re.DOTALL)
_PROGRAM = re.compile(r"(?:^|[|;&(]\s*|\bsudo )(?P<name>[a-z][\w.-]*)(?=[^|;&\n]*$)")
"""The last program before a place in a command."""
_MAX_TURNS_BACK = 6
_MAX_FINDINGS = 2


def shown(acted: Acted, conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    """None where nothing was shown that a message may mean."""
    named = _FLAG.search(acted.text)
    if named:
        return _about_name(named[0], conversation, knowledge)
    if _OF_FLAG.search(acted.text):
        return _about_last(_FLAG, acted, conversation, knowledge)
    if _OF_SETTING.search(acted.text):
        return _about_last(_SETTING, acted, conversation, knowledge)
    return _about_task(conversation, knowledge)


def _about_last(
    pattern: re.Pattern[str], acted: Acted, conversation: Conversation, knowledge: KnowledgeBase
) -> Answer:
    names = [name for code in _codes(conversation) for name in pattern.findall(code)]
    if not names:
        return Answer(say("shown-which", conversation.language))
    is_first = re.search(r"\bfirst\b|第一", acted.text, re.IGNORECASE)
    return _about_name(names[0 if is_first else -1], conversation, knowledge)


def _about_name(name: str, conversation: Conversation, knowledge: KnowledgeBase) -> Answer:
    """The glossary's words for a flag or setting, or those of the pages."""
    language = conversation.language
    term = find_term(name)
    if term:
        return Answer(meaning(term, language))
    passage = passage_about(name, conversation, knowledge)
    if passage and name in passage.text:
        return with_passage(passage, "", conversation, knowledge)
    program = next(_programs_before(name, conversation), "")
    if not program:
        return Answer(say("setting-unknown", language, name=name))
    return Answer(say("flag-unknown", language, name=name, program=program))


def _programs_before(name: str, conversation: Conversation) -> Iterator[str]:
    for code in _codes(conversation):
        for line in code.split("\n"):
            place = line.find(name)
            found = _PROGRAM.search(line[:place]) if place >= 0 else None
            if found:
                yield found["name"]


def _codes(conversation: Conversation) -> list[str]:
    """The code of the last turn of the tool that has some."""
    for turn in reversed(conversation.turns[-_MAX_TURNS_BACK:]):
        found = list(_CODE.finditer(turn.text)) if turn.speaker is Speaker.TOOL else []
        blocks = [one["block"] for one in found if one["block"]]
        codes = blocks or [one["inline"] for one in found]
        if codes:
            return codes
    return []


def _about_task(conversation: Conversation, knowledge: KnowledgeBase) -> Answer | None:
    language = conversation.language
    task = task_shown(conversation, knowledge)
    if isinstance(task, NextCheck):
        check = task.check
        question = in_language(check.header.question, language)
        parts = [
            f"{in_language(check.title, language)} [{check.id}].",
            say("answers", language, question=question),
            say(f"safe-{check.header.cost.risk}", language, what=f"`{check.id}`"),
        ]
        findings = [found.means for found in check.body.findings if found.abnormal]
        looks = [
            say("look-for", language, finding=prose(one, language))
            for one in findings[:_MAX_FINDINGS]
        ]
        return Answer(paragraphs([sentences(parts), *looks]), shows=(check.id,))
    if task is None:
        return None
    key = "shown-looks" if only_looks(task.step) else "shown-changes"
    text = prose(task.step.text, language)
    why = prose(task.step.why, language) if task.step.why else ""
    said = say(key, language, number=task.number, id=task.incident.id, text=text)
    name = f"{task.incident.id}#{task.number}"
    return Answer(paragraphs([said, why]), shows=(name,), records=(task.incident.id,))
