"""What a text is by its look: printed by a program, written by a person, of work that goes on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.expression import Expression

_LOG_SHAPE = Expression(
    r"^\s*(?:\[|<|\$ |>>> |#\d|at |File \"|\d{4}[-/]\d\d|\d\d:\d\d|[A-Z]+[:\]]|[\w./-]+:\d+:)"
    r"|\b(?:INFO|WARN(?:ING)?|ERROR|DEBUG|LOG)\b|\w[=|]\S|\s\|\s|/\w+/\w+|\d+%|\b\d+/\d+\b|\d+\.\d+"
)
_MIN_SHAPED_SHARE = 0.5
"""Share of the lines of a log that look like a program's; the others are parts of messages."""
_MAX_LINES_OF_A_QUOTE = 3
"""A person quotes a word or a number of a log in the middle of as few lines as these."""
_PROGRESS = Expression(
    r"\b(?:step|iter(?:ation)?|epoch|loss|global_step)\b\W{0,4}\d|\d(?:it/s|s/it)\b|\b200 OK\b"
    r"|\b(?:finished|completed?|done|saved|passed|succeeded|built in|pass)\b",
    re.IGNORECASE,
)
_MIDWAY = Expression(r"(?:\.\.\.|…)\s*$|(?<!\d)0%\||\?it/s")
_CHINESE_PHRASE = Expression(r"[\u4e00-\u9fff]{4}")
_REQUEST = Expression(
    r"(?:(?<=[.?!;,])\s{1,4}|\s-{1,2}\s|(?<=[，。；！？,.;!?])\s{0,4})"
    r"(?:(?:and |so |but |pls |please )?(?:"
    r"(?:any |some )?(?:ideas?|hints?|clues?|suggestions?|thoughts?|pointers?)"
    r"(?: what[^.?!]{0,40})?"
    r"|(?:please |pls )?help(?: me| us)?(?: please| pls)?"
    r"|what (?:should|do|can|would|could) (?:i|we|you) (?:do|check|try|look at|run|suggest|see)"
    r"[^.?!]{0,30}"
    r"|what (?:to (?:do|check|try|look at)|first|now|next|gives|is (?:wrong|going on|happening))"
    r"[^.?!]{0,20}"
    r"|where (?:do|should|can|to)(?: i| we)? ?(?:start|look|begin)[^.?!]{0,20}"
    r"|first thing (?:to|i should) (?:look at|check|try|do)"
    r"|how (?:do|can|should|to)(?: i| we)? ?"
    r"(?:debug|diagnose|fix|proceed|approach|troubleshoot|start)[^.?!]{0,30})"
    r"|怎么(?:查|办|排查|搞|处理|解决|定位|回事|弄|整|破|看)|咋(?:办|整|查|回事)"
    r"|先(?:看|查|做|干)(?:什么|啥|哪[里儿个些]?)|查(?:什么|啥)|从哪[里儿]?(?:查|看|开始|下手|入手)"
    r"|有(?:什么|啥)?(?:思路|办法|建议|想法)[吗么]?|求助|求解|帮忙?看[看下]?|(?:什么|啥)(?:情况|原因)|为[什啥]么?"
    r")[\s.?!\u3002\uff1f\uff01]{0,6}$",
    re.IGNORECASE,
)
_MAX_REQUESTS = 2
"""Questions at the end that are left out."""
_CHINESE_QUESTION = Expression(r"[\u4e00-\u9fff][吗呢吧]\s*[?？]?\s*$")
"""No program asks."""
_PERSON = Expression(
    # The first letters of what follows: at most places nothing has to be tried.
    r"(?=[IMmOoWwh?\uff1f])(?:"
    r"\b(?:I|[Mm]y|[Oo]ur) [a-z]|\bI'(?:m|ve)\b|(?<!\$)[?\uff1f]\s*$"
    r"|\b[Ww]e (?:run|use|have|are (?:seeing|running|trying)|get|see|tried|train|want|only)\b"
    r"|\b(?:how|why|what) (?:do|does|is|can|should)\b"
    r")"
)
_ERROR_OF_PROGRAM = Expression(
    r"(?<![\w.])(?P<said>"
    r"(?:[A-Za-z_][\w.]*(?:Error|Exception)"
    r"|(?:[a-z][\w-]{1,20}: )?(?:[Ee]rror|ERROR|FATAL|[Ff]atal)(?: response from daemon)?): ?\S.*"
    r"|[a-z][\w-]{1,20}: \(\d+\) \S.*)",
    re.DOTALL,
)
"""The name of an exception, or a program that reports an error, and what it says."""
_SHOWN_BY_PROGRAM = Expression(
    r"(?:\b(?:shows?|says?|prints?|reports?|returns?|gives?)|显示|提示|输出|返回|报错?|说)[:：]?\s*[\"'“‘]?"
    r"(?P<said>(?:No|Not|Cannot|Can't|Could not|Couldn't|Unable|Failed|Invalid|Unknown) .*)",
    re.DOTALL,
)
"""A program begins its line with a capital, a person goes on with a small letter: "shows No devices
were found", "shows no Xid"."""


def without_request(text: str) -> str:
    """What a person tells, without the question at its end that every report has: "any ideas?",
    "where do i start". A text that is nothing else stays."""
    told = text
    for _ in range(_MAX_REQUESTS):
        told = _REQUEST.sub("", told)
    return told if told.strip() else text


def printed_part(text: str) -> str:
    """The error of a program that a text quotes, up to its end; empty without one."""
    found = _ERROR_OF_PROGRAM.search(text) or _SHOWN_BY_PROGRAM.search(text)
    return found["said"] if found else ""


def is_human_written(line: str) -> bool:
    """Whether a line holds words of a person, not of a program."""
    chinese = _CHINESE_PHRASE.search(line) and not _LOG_SHAPE.match(line)
    return bool(chinese or _CHINESE_QUESTION.search(line) or _PERSON.search(line))


def is_log(lines: Sequence[str]) -> bool:
    """Whether most lines look like a program's; of a few lines, the beginnings must."""
    spoken = [line for line in lines if line.strip()]
    looks = _LOG_SHAPE.match if len(spoken) <= _MAX_LINES_OF_A_QUOTE else _LOG_SHAPE.search
    shaped = sum(bool(looks(line)) for line in spoken)
    return bool(spoken) and shaped >= _MIN_SHAPED_SHARE * len(spoken)


def shows_progress(line: str) -> bool:
    """Whether a line tells a step of the work, or its end."""
    return _PROGRESS.search(line) is not None


def stops_midway(last_line: str) -> bool:
    """Whether a log that ends so ends in the middle of something."""
    return _MIDWAY.search(last_line) is not None
