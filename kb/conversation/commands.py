"""What can be asked of the tool, in English and Chinese. Adding a phrasing is adding to a row."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec


class Request(StrEnum):
    """What the user wants to know or to have done."""

    HELP = "help"
    UNDO = "undo"
    STATEMENTS = "statements"
    WHY_NOT = "why not"
    WHY = "why"
    FIX = "fix"
    NEXT = "next"


class Command(msgspec.Struct, frozen=True):
    """A request, and the record it is about as the user names it; empty for the first one."""

    request: Request
    name: str = ""


_ABOUT = r"(?:\s+(?:(?:of|for)\s+)?(?P<name>\S.*?))?"

_PHRASES = (
    (Request.HELP, r"help|\?|帮助|怎么用|what can i (?:say|ask)"),
    (
        Request.UNDO,
        r"undo(?: that| it| the last(?: one| answer)?)?|take (?:that|it) back|forget (?:that|it)"
        r"|撤销|撤回|收回|回退|上一步不算",
    ),
    (
        Request.STATEMENTS,
        r"what (?:did|have) i (?:tell|told|say|said)(?: you| so far)*"
        r"|我(?:都|刚才|之前)*(?:说|告诉)[过了你]*(?:什么|些什么|哪些|啥)",
    ),
    (
        Request.WHY_NOT,
        r"why not (?P<name>.+)|why is it not (?P<name2>.+)"
        r"|why (?:isn'?t|is not)(?: it)? (?P<name3>.+)|what about (?P<name4>.+)"
        r"|(?:为什么|为啥|怎么)不(?:会)?是\s*(?P<name5>.+)",
    ),
    (
        Request.WHY,
        r"why(?: is it)?(?: (?:this|that|first))?(?: one)?|why (?P<name>[\w.#-]+)|为什么|为啥"
        r"|(?:为什么|为啥)(?:会)?是\s*(?P<name2>.+)",
    ),
    (
        Request.FIX,
        r"(?:show|repeat|give)?\s*(?:me\s+)?(?:the\s+)?(?:fix|steps|remedy|solution)(?: again)?"
        + _ABOUT
        + r"|how (?:do|can|should) (?:i|we) (?:fix|solve|repair) (?:it|this|that)"
        r"|(?:再)?(?:看|显示|给我看|说)?(?:一下|一遍|一次)?(?:再)?(?:修复|解决)(?:步骤|办法|方法|方案)"
        r"|(?:怎么|如何)(?:修|修复|解决)",
    ),
    (
        Request.NEXT,
        r"(?:so )?what(?: should| do| can|'s| is)?(?: i| we)?(?: to)?"
        r"(?: (?:check|do|try|look at|test))?(?: next| now)|next(?: step)?|and now"
        r"|what should (?:i|we) (?:check|do|try)"
        r"|(?:我|我们)?(?:下一步|接下来|然后)(?:该|应该|要|呢|我该)*(?:查|做|看|检查|试)*(?:什么|啥)?",
    ),
)
_TABLE = tuple(
    (request, re.compile(rf"(?:please\s+|请)?(?:{pattern})\s*[?？!.。吗呢]*", re.IGNORECASE))
    for request, pattern in _PHRASES
)


def to_command(text: str) -> Command | None:
    """The command that a text is; None for anything else."""
    for request, pattern in _TABLE:
        match = pattern.fullmatch(text.strip())
        if match:
            name = next((value for value in match.groupdict().values() if value), "")
            return Command(request, name.strip(" ?？。`\"'"))
    return None
