"""Whether a log shows that its work is done: the forms are rows of `kb/rules/endings.toml`.

A log that just stops may be that of a hang, which prints nothing. And a person who tells of a
problem may quote the happiest log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from kb.log.prefixes import split_prefix
from kb.rules import read_rows
from kb.rules.rows import Ending

END_LINES = 8
"""Last lines of a log in which a program says that it is done; summaries follow."""

_BEGINS = re.compile(
    r"\b(?:starting|started|begin(?:ning)?|waiting|loading|saving|resum\w+|initiali[sz]\w*"
    r"|connecting|(?:epoch|step|iter(?:ation)?|batch)[ :=\[#]{1,3}\d)|(?:\.\.\.|…)\s*$"
    r"|开始|正在|等待|[\u4e00-\u9fff]{7}",
    re.IGNORECASE,
)
"""Something new begins, so what ended before was only a part of the work; or somebody speaks."""

_FUNCTION_WORDS = re.compile(
    r"\b(?:the|a|is|are|was|were|has|have|had|but|and|then|when|while|after|since|still|just|only"
    r"|that|this|it|its|they|them|there|for|from|of|on|in|at|with|to|never|not|no|nothing|again|says"
    r"|same|should|would|does|did|than|which|every|all|other|one)\b",
    re.IGNORECASE,
)
_MIN_FUNCTION_WORDS = 4
"""Small words in a line of prose; a program's message of one line rarely has as many."""
_MIN_PROSE_SHARE = 0.3
"""... and their share of all its words."""
_TOLD = re.compile(
    r"\b(?:I|we|my|our|you|somebody|anyone|please|help)\b|\b(?:why|how) "
    r"|(?<!\$)[?\uff1f]!*\s*$|!{2,}|\b(?:still|yet|hangs?|stuck|weird|strange|slow|(?<!#)wrong)\b"
)
_WARNS = re.compile(r"\w+Warning: ")
_TOLD_IN_CHINESE = re.compile(
    r"我|咱|请问|求助|怎么|为什么|为何|什么|吗|呢|了但|但是|不过|却|可是|结果(?:却|就|还)|然后|卡(?:住|死|在|着|了|很)|不动|没反应|没有反应"
    r"|不退|不结束|一直|突然|从来|不对|不正常|很慢|太慢|变慢|奇怪|没有(?!错误|失败|异常|发现)|就没|还没|还在"
)


def ends_well(lines: Sequence[str]) -> bool:
    """Whether the last lines of a log say that the work is done."""
    spoken = [line for line in lines if line.strip()][-END_LINES:]
    ends = [place for place, line in enumerate(spoken) if says_end(line)]
    return bool(ends) and not any(_BEGINS.search(line) for line in spoken[ends[-1] + 1 :])


def says_end(text: str) -> bool:
    """Whether a line says that the work is done."""
    return _any_ending().search(split_prefix(text).text.strip()) is not None


def is_told_by_a_person(lines: Iterable[str]) -> bool:
    """Whether somebody speaks in one of the lines, rather than a program."""
    return any(_is_prose(line) for line in lines)


def _is_prose(line: str) -> bool:
    if _TOLD_IN_CHINESE.search(line):
        return True
    text = split_prefix(line).text
    if text != line or _WARNS.search(line):
        return False  # a program's prefix stands in front
    if _TOLD.search(text):
        return True
    small = len(_FUNCTION_WORDS.findall(text))
    return small >= _MIN_FUNCTION_WORDS and small >= _MIN_PROSE_SHARE * len(text.split())


@cache
def _any_ending() -> re.Pattern[str]:
    rows = read_rows("endings", "ending", Ending)
    return re.compile("|".join(f"(?:{row.pattern})" for row in rows), re.IGNORECASE)
