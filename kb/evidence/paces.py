"""Slowness that is told in numbers: "2.9 s per step instead of 2.1", "吞吐从 12k 掉到 8k"."""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from kb.expression import Expression


class _Quantity(msgspec.Struct, frozen=True):
    """Something by which people tell how fast work is."""

    named: re.Pattern[str]
    """Its unit or its name."""
    means: str
    """What is said where it has become worse, in words that symptoms are known by."""
    is_time: bool = False
    """More of it is worse; it counts only where a time is told."""


def _rate(pattern: str, means: str) -> _Quantity:
    return _Quantity(re.compile(pattern, re.IGNORECASE), means)


def _time(pattern: str, means: str) -> _Quantity:
    return _Quantity(re.compile(pattern, re.IGNORECASE), means, is_time=True)


_QUANTITIES = (
    _rate(
        r"\b(?:tok(?:en)?s?|req(?:uest)?s?) ?(?:/ ?s\b|/sec|per sec|a second)|\b[qt]ps\b"
        r"|每秒.{0,4}token",
        "tokens per second dropped, throughput is slower",
    ),
    _rate(
        r"\b(?:it|iter(?:ation)?s?|steps?|samples?|im(?:g|age)s?|seq(?:uence)?s?|examples?|frames?)"
        r" ?(?:/ ?s\b|/sec|per sec|a second)|\bthroughput\b|吞吐|训练速度",
        "training is slower, throughput fell",
    ),
    _rate(r"\bmfu\b|\bt?flops?\b", "training is slower, mfu dropped"),
    _rate(r"\bgpu.?util\w*|\butili[sz]ation\b|利用率", "low gpu utilization, training is slower"),
    _rate(
        r"\bg[bB](?:it)?(?:/s|ps)\b|\b(?:bus|alg)?bw\b|\bbandwidth\b|带宽",
        "slow, low bandwidth",
    ),
    _time(r"\blatency\b|\bttft\b|\btpot\b|\bp9[59]\b|延迟", "latency is high, slower"),
    _time(
        r"\b(?:steps?|it|iter(?:ation)?s?|epochs?|(?:mini.?)?batch(?:es)?)\b"
        r"|每步|一步|每个?(?:step|epoch|iter)|个(?:step|epoch|iter)|单步|迭代|一轮|每轮",
        "training steps are slower, a step takes longer",
    ),
    _time(
        r"\b(?:takes?|took|needs?|lasts?)\b|耗时|用时",
        "slower, takes longer than before",
    ),
)
"""The first that a sentence names counts."""
_SECONDS = {
    "us": 1e-6, "ms": 1e-3, "毫秒": 1e-3, "s": 1, "sec": 1, "second": 1, "秒": 1,
    "m": 60, "min": 60, "minute": 60, "分钟": 60, "分": 60,
    "h": 3600, "hr": 3600, "hour": 3600, "小时": 3600,
}  # fmt: skip
_THOUSAND = 1000
_NUMBER = Expression(
    r"(?<![A-Za-z0-9_.:-])(?P<value>\d{1,9}(?:\.\d{1,6})?)\s?"
    r"(?:(?P<unit>us|ms|sec|second|s|min|minute|m|hour|hr|h)s?(?![A-Za-z0-9])"
    r"|(?P<zh>毫秒|秒|分钟|分|小时)|(?P<k>k)(?![A-Za-z0-9]))?(?![A-Za-z0-9.]*\d)"
    r"(?![GT](?:i?B)?(?![A-Za-z]))",
    re.IGNORECASE,
)
_SENTENCES = Expression(r"(?<=[.!?;])\s+|[。！？；\n]")
_REFERENCE = Expression(
    r"\b(?:instead of|rather than|vs|versus|compared (?:to|with)|was|were|used to|before|earlier"
    r"|usual\w*|normal\w*|(?:up|down) from|yesterday|last week|elsewhere|(?:the )?others?|expected"
    r"|should)\b|而不是|原来|之前|以前|平时|正常|昨天|上周|本来|别的|其他",
    re.IGNORECASE,
)
"""Beside a number: it is as it was, or as it should be."""
_NOW = Expression(r"\b(?:now|today|currently)\b|现在|今天|目前|了", re.IGNORECASE)
_BECAME = Expression(
    r"->|→|=>|\b(?:became|becomes?|(?:went|gone|goes|dropped|fell|rose|grew) to)\b"
    r"|变成|变为|变到|[涨升降掉跌]到",
    re.IGNORECASE,
)
"""Between two numbers, of which the first is as it was."""
_FROM = Expression(r"\bfrom\b[^,;]{0,20}$|[从由][^，；]{0,10}$", re.IGNORECASE)
_TO = Expression(r"\bto\b|到|至", re.IGNORECASE)
_BESIDE = Expression(r"[^,，;；]{0,24}")
"""What belongs to a number, behind it."""
_ENDS_CLAUSE = Expression(r"[,，;；]|\b(?:vs|versus|instead)\b")
_IS_TIME = Expression(
    r"\b(?:step|iter\w*|epoch|batch|load\w*|wall|start\w*)[- ]?time\b|\btime (?:per|to|for)\b"
    r"|/ ?(?:it|step)\b|耗时|用时",
    re.IGNORECASE,
)
_NO_PACE = Expression(r"\btime-?outs?\b|\blimits?\b|\bversions?\b|超时|限制|版本", re.IGNORECASE)
"""A time that is set, not taken."""
_MAX_AHEAD = 80
"""Characters before the first number in which it is said that it was so once."""
_WORSE = 1.1
"""Ratio of the two from which on it is no noise: steps of a healthy job differ by a few percent."""
_MAX_CHARACTERS = 2_000
"""Of a text that a person wrote; longer ones are logs."""


def slowness_in(text: str) -> str:
    """What a text says by two numbers, in English words: that something is slower than it was, or
    than elsewhere. Empty where it compares none, or nothing is worse."""
    if len(text) > _MAX_CHARACTERS:
        return ""
    return next(filter(None, map(_slower, _SENTENCES.split(text))), "")


def _slower(sentence: str) -> str:
    quantity = next((one for one in _QUANTITIES if one.named.search(sentence)), None)
    if quantity is None or _NO_PACE.search(sentence):
        return ""
    for first, second in pairwise(_NUMBER.finditer(sentence)):
        if quantity.is_time and not (_has_unit(first, second) or _IS_TIME.search(sentence)):
            continue
        is_first_now = _is_first_now(sentence, first, second)
        if is_first_now is None:
            continue
        now, before = _values(first, second)[:: 1 if is_first_now else -1]
        worse, better = (now, before) if quantity.is_time else (before, now)
        if better > 0 and worse >= _WORSE * better:
            return quantity.means
    return ""


def _is_first_now(sentence: str, first: re.Match[str], second: re.Match[str]) -> bool | None:
    """Which of two numbers is how it is now; None where they are not compared."""
    ahead = sentence[max(0, first.start() - _MAX_AHEAD) : first.start()]
    behind = _beside(sentence, second.end())
    between = sentence[first.end() : second.start()]
    if _BECAME.search(between) or (_FROM.search(ahead) and _TO.search(between)):
        return False
    if _NOW.search(_beside(between, 0)) and _ENDS_CLAUSE.search(between):
        return True
    if _NOW.search(between) or _NOW.search(behind):
        return False
    if _REFERENCE.search(between) or _REFERENCE.search(behind):
        return True
    return False if _REFERENCE.search(ahead) else None


def _beside(text: str, start: int) -> str:
    found = _BESIDE.match(text, start)
    return found[0] if found else ""


def _has_unit(*numbers: re.Match[str]) -> bool:
    return any(one["unit"] or one["zh"] for one in numbers)


def _values(first: re.Match[str], second: re.Match[str]) -> tuple[float, float]:
    """In one unit, where both have one or share it."""
    units = [(one["unit"] or one["zh"] or "").lower() for one in (first, second)]
    scales = [_SECONDS[unit] if all(units) else 1.0 for unit in units]
    if first["k"] or second["k"]:  # "12k instead of 20k", "800 instead of 1.2k"
        scales = [_THOUSAND if one["k"] else 1.0 for one in (first, second)]
    values = [
        float(one["value"]) * scale for one, scale in zip((first, second), scales, strict=True)
    ]
    return values[0], values[1]
