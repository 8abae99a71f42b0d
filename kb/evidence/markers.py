"""What makes a line of a log worth reading: the signs are rows of `kb/rules/markers.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

import msgspec

from index.documents import Pattern
from kb.expression import Expression
from kb.rules import read_rows, rows, without_names


class Grade(IntEnum):
    """How much a line tells."""

    CONTEXT = 0
    """Says where we are: commands, versions, settings, the last ordinary lines."""
    FOLLOW_ON = 1
    """Fails because something else failed."""
    HINT = 2
    """May be a failure: warnings, words of trouble."""
    ERROR = 3
    FATAL = 4
    """Names the failure: exceptions, signals, hardware errors."""


class Marker(msgspec.Struct, frozen=True):
    """A pattern and how much a line with it tells."""

    pattern: str
    grade: Grade
    reports_exit: bool = False
    """The line tells how a process ended; a job needs it, whatever its grade."""
    casts_doubt: bool = False
    """The line says in passing that something went wrong. It is no evidence, but no log with it is
    healthy."""
    negates: bool = False
    """The line says that something did not happen; no word before it denies that."""
    is_final: bool = False
    """The line tells what no rank survives."""


def _grade(level: rows.Level) -> Grade:
    return Grade[level.upper().replace("-", "_")]


def _markers() -> Iterator[Marker]:
    for row in read_rows("markers", "marker", rows.Marker):
        yield Marker(row.pattern, _grade(row.grade))
    for report in read_rows("exits", "exit", rows.ExitReport):
        pattern = f"(?i){without_names(report.pattern)}"
        yield Marker(pattern, _grade(report.grade), reports_exit=True)
    for block in read_rows("exits", "block", rows.ExitBlock):
        for pattern in (block.opens, block.closes):
            yield Marker(without_names(pattern), Grade.CONTEXT, reports_exit=True)
    for doubt in read_rows("endings", "doubt", rows.Doubt):
        yield Marker(
            doubt.pattern,
            Grade.CONTEXT,
            casts_doubt=True,
            negates=doubt.negates,
            is_final=doubt.final,
        )


MARKERS = tuple(_markers())

MARKER_PATTERNS = tuple(Pattern(marker.pattern, regex=True) for marker in MARKERS)
"""The table as the scanner takes it, in the same order; every match is to be reported."""

DOUBTS = frozenset(n for n, marker in enumerate(MARKERS) if marker.casts_doubt)
"""The numbers of the markers that are doubts: of a grade they say nothing."""
GRAVE = frozenset(n for n, marker in enumerate(MARKERS) if marker.grade >= Grade.ERROR)
"""The numbers of the markers that name a failure or an error."""
_NEGATING = frozenset(n for n, marker in enumerate(MARKERS) if marker.negates)
FINAL = frozenset(n for n, marker in enumerate(MARKERS) if marker.is_final)
"""The numbers of the markers that tell what no rank survives."""

_NUMBERED = (
    "rank gpu node host worker device card task process proc pod stage port link rail nic hca shard"
    " replica actor trainer attempt trial step iteration iter epoch try run job"
)
_NO_NAME = "".join(rf"(?<!\b{word}.)" for word in _NUMBERED.split())
"""A 0 behind one of these names something (`gpu 0 failed`), and counts nothing."""
_NO_PLACE = r"(?<!\d:)"
"""Nor does one behind the name of a host (`node-1:0 error boom`): it is a local rank."""
_NO_LEVEL = r"(?!(?-i:ERROR [a-z]))"
"""In front of a message, `ERROR` counts nothing: `ERROR tile 0 is torn`."""
_DENIED = Expression(
    # The first letters of what follows: at most places nothing has to be tried.
    r"(?=[0nwzaefoismutcr无没未错失异超跳丢中闪告退])(?:"
    rf"\b(?:{_NO_NAME}{_NO_PLACE}0|no|without|zero|any) (?:known )?(?:\w+ )?"
    r"(?:errors?|failures?|failed|warnings?)\b"
    r"|\b(?:errors?|failed|failures?|nan \w+)['\"]?\s*[:=]\s*['\"]?(?:0|false|none|null|\[\])\b"
    rf"|\b(?:fail(?:ed|ures?)?|{_NO_LEVEL}errors?|unexpected|missing|timeouts?)"
    rf"(?: (?!(?:{'|'.join(_NUMBERED.split())})\b)\w+)?\s*[:=]?\s+0\b(?!: )"
    r"|\b(?:on_|ignore[_ -]|skip[_ -])(?:error|fail)"
    r"|\bfail(?:ed|ures?)(?: \w+){2}\s*[:=]\s*0(?![.\d])|(?<=^)0 (?:\w+ ){1,3}failed\b"
    r"|\b(?:errors?|critical)(?! on\b)(?: (?!gpu|rank|node|device)\w+){0,4}\s*:\s+0(?:x0+)?\s*$"
    r"|\b(?:state|status)%?\d*[ ,|]+exitcode\b|\btime_?limit=(?:[\d:-]+|unlimited)\b"
    r"|\brecent failures:$|\bwarnings\s+errors\b"
    r"|(?:错误|失败|异常|超时|跳过|丢失|中断|闪断|告警|\bnan)\s?(?:[\u4e00-\u9fff]{0,4}[数率]|迭代|步|样本|批次?)?"
    r"\s*[:：=为]?\s*0(?:\.0+)?(?![.\d])"
    r"|退出码\s*[:：]?(?:\s*[\w.-]{1,30}[=:]\s?0(?!\d))+\s*$|0\s*个?(?:错误|失败|异常)"
    r"|(?:无|没有|未发现)(?:任何)?(?:错误|失败|异常)"
    r")",
    re.IGNORECASE,
)
_COUNTED = Expression(
    r"\b(?:fail(?:ed|ures?)?|errors?|timeouts|lost)['\"]?\s*[:=]\s*['\"]?[1-9]\d*\b(?!\.\d|%)"
    r"|(?:错误|失败|异常|超时|丢失|中断)(?!码)\s?(?:[\u4e00-\u9fff]{0,4}数)?"
    r"\s*[:：=为]?\s*[1-9]\d*(?![.\d秒s])",
    re.IGNORECASE,
)
"""Counted, and not none: beside it nothing is denied, as in "failed: 3, errors: 0"."""
_CALM = Expression(
    r"\b(?:INFO|DEBUG|TRACE|NOTICE|LOG|info|debug)\b|^\s*(?:ok \d|PASS|# |\u2713|\u2714|\u221a)"
    r"|^\s*(?:=== RUN|--- PASS|\[ *(?:RUN|OK) *\])"
)
_FRAME = Expression(r"File \"[^\"]+\", line \d+(?:, in \S+)?\s*$")
"""Of a stack of Python: words in the path of a file, as `<frozen runpy>`, tell of no failure."""


def negates(number: int) -> bool:
    """Whether a marker is a doubt that is a denial itself, by its number."""
    return number in _NEGATING


def denies_failure(text: str) -> bool:
    """Whether a line says that nothing failed: `0 errors`."""
    return bool(_DENIED.search(text.strip())) and not _COUNTED.search(text)


def grade_line(text: str, numbers: set[int]) -> Grade:
    """Weigh a line by the markers that fired on it.

    A line that denies a failure (`0 errors`), or is a frame of a stack, is context; a line that its
    own program calls informative counts one less.
    """
    grades = [MARKERS[number].grade for number in numbers]
    if not grades or _FRAME.search(text) or denies_failure(text):
        return Grade.CONTEXT
    best = max(grades)
    if Grade.FOLLOW_ON in grades and best < Grade.FATAL:
        return Grade.FOLLOW_ON
    if best in (Grade.ERROR, Grade.HINT) and _CALM.search(text[:80]):
        return Grade.HINT if best is Grade.ERROR else Grade.CONTEXT
    return best
