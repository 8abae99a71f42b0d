"""The parts of a report by their names: a heading, a bold word, or a word before a colon."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache

import msgspec

from kb.backlog.sources.sections import Line, joined


class Part(Enum):
    """What a part of a report tells."""

    STORY = "story"
    """What stands before the first name."""
    QUESTION = "question"
    SYMPTOM = "symptom"
    CAUSE = "cause"
    REMEDY = "remedy"
    ANSWER = "answer"
    COURSE = "course"
    """What was done when."""
    LESSON = "lesson"
    """What was learnt, and is to be done: neither the case nor its end."""
    NOTE = "note"
    """The environment, the impact: it belongs to the symptom."""


_NAMES: dict[Part, str] = {
    Part.SYMPTOM: """symptom|symptoms|problem|problem description|description|describe the bug|
        issue|issue description|error|error message|observed behavior|observed behaviour|
        actual behavior|what happened|summary|incident|
        现象|现象描述|问题现象|问题现象描述|故障现象|故障描述|问题描述|报错信息|报错现象|错误信息|错误关键信息|报错日志|
        报错文本|报错内容|异常现象|问题背景|日志信息""",
    Part.CAUSE: """cause|causes|root cause|root causes|possible cause|possible causes|reason|why|
        analysis|cause analysis|diagnosis|root cause analysis|
        报错原因|错误原因|异常原因|原因|原因分析|可能原因|问题原因|根因|根因分析|故障原因|故障分析|问题分析|失败原因|定位过程|定位分析""",
    Part.REMEDY: """resolution|solution|solutions|fix|fixes|how to fix|remedy|workaround|
        workarounds|mitigation|recovery|the fix|possible solution|possible solutions|
        how we fixed it|what fixed it|recommended action|corrective action|
        troubleshooting procedure|
        解决|解决方法|解决方案|解决措施|解决办法|解决步骤|解决思路|处理方法|处理步骤|处理措施|处理方案|处理办法|
        规避措施|规避方法|规避方案|修复方法|修复方案|修改方法|应对措施|解决方式|处理方式""",
    Part.ANSWER: "a|answer|答|回答|答案",
    Part.COURSE: """timeline|time line|时间线|处理过程""",
    Part.LESSON: """lessons learned|lessons learnt|action items|follow up|follow-up|what went well|
        what went wrong|where we got lucky|next steps|prevention|
        process improvements|documentation improvements|technical improvements|改进措施|经验教训|
        后续""",
    Part.NOTE: """environment|impact|background|context|detection|severity|version|versions|setup|
        steps to reproduce|reproduction|to reproduce|additional context|expected behavior|
        expected behaviour|logs|log|影响|环境|背景|版本|环境信息|复现步骤|影响范围""",
}
_STRONG = (Part.REMEDY, Part.CAUSE, Part.COURSE, Part.LESSON)
_LABEL = re.compile(
    r"\s*(?:#{1,6}\s+|[-*+]\s+|\d{1,2}[.)、]\s*)?"
    r"(?:(?P<bold>\*\*|__)\s*(?P<name>[^*_:：\n]{1,40}?)\s*[:：]?\s*(?P=bold)\s*[:：.．]?"
    r"|(?P<plain>[^*_:：\n#`]{1,40}?)\s*[:：])[ \t]*(?P<rest>.*)$"
)
_QUESTION = re.compile(
    r"\s*(?:#{1,6}\s+|[-*+]\s+)?(?:\*\*|__)?\s*(?:Q|Question|问|问题)\s*(?:\d{1,3}(?:\.\d{1,3})?)?"
    r"\s*(?:\*\*|__)?\s*[.:：、．]\s*(?:\*\*|__)?\s*(?P<question>\S.*?)(?:\*\*|__)?\s*$",
    re.IGNORECASE,
)
ITEM = re.compile(r"\d{1,2}[.)、][ \t]*(?=\S)")
"""An item of a list. Behind parts that lie within an item, the next one is another case."""
_NUMBERING = re.compile(r"^[\s\d.)(（）、一二三四五六七八九十]*(?=[^\d.])")
_MARKUP = re.compile(
    r"[*`]+|(?<![\w\\])_(?![\s_])|(?<![\s_\\])_(?!\w)|^#+|#+$|\{#[^{}]*\}|(?<!\S):[a-z_]+:(?!\S)"
    r"|</?(?:br|span|a|img|b|i|em|code|p|div|small|sub|sup)\b[^<>]*>|\\(?=[_*<>#\[\]])"
    r"|[\U0001F300-\U0001FAFF\u2600-\u27BF\ufe0f]+"
)
_MAX_NAME_CHARACTERS = 60


class Piece(msgspec.Struct, frozen=True):
    """A part of a report and its text."""

    part: Part
    text: str


def plain_title(title: str) -> str:
    """A heading without markup."""
    return " ".join(_MARKUP.sub("", re.sub(r"!?\[([^\[\]]*)\]\([^()]*\)", r"\1", title)).split())


def part_named(title: str) -> Part | None:
    """The part that a heading names."""
    name = plain_title(title)
    if len(name) > _MAX_NAME_CHARACTERS:
        return None
    return _parts().get(_NUMBERING.sub("", name).strip(" :：.?？").lower())


def question_in(line: str) -> str | None:
    """The question that a line marks as one."""
    found = _QUESTION.match(line)
    return found["question"] if found else None


def pieces(lines: Iterable[Line]) -> Iterator[Piece]:
    """The parts of a report, in their order."""
    part, held = Part.STORY, list[Line]()
    is_item = False
    for line in lines:
        opened = None if line.is_code else _opened(line.text)
        if opened is None and not (is_item and not line.is_code and ITEM.match(line.text)):
            held.append(line)
            continue
        if held:
            yield Piece(part, joined(held))
        part, rest = opened or (Part.STORY, line.text)
        is_item = opened is not None and line.text[:1].isspace()
        held = [Line(rest, is_code=False)] if rest else []
    if held or part is not Part.STORY:
        yield Piece(part, joined(held))


def tells_a_case(parts: Iterable[Part]) -> bool:
    """Whether parts are those of a report, and not headings that any text may have."""
    found = set(parts)
    if Part.ANSWER in found or Part.QUESTION in found:
        return True
    named = found - {Part.STORY}
    return Part.REMEDY in named or (len(named) > 1 and not named.isdisjoint(_STRONG))


def _opened(line: str) -> tuple[Part, str] | None:
    if question := question_in(line):
        return Part.QUESTION, question
    if line.lstrip().startswith("#"):
        part = part_named(line.lstrip().lstrip("#"))
        return (part, "") if part else None
    label = _LABEL.match(line)
    if label is None:
        return None
    part = _parts().get((label["name"] or label["plain"]).strip().lower())
    return (part, label["rest"]) if part else None


@cache
def _parts() -> dict[str, Part]:
    return {
        " ".join(name.split()): part for part, names in _NAMES.items() for name in names.split("|")
    }
