"""Numbers that are held against others: what was measured before, what there was to do, or what the
lines before said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kb.expression import Expression

_NUMBER = r"(?<![\w.])\d[\d,]{0,20}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?"
_AGAINST = Expression(
    r"(?P<said>[^(\uff08\n]{0,120})[(\uff08]\s?(?:(?:vs\.?|the|in|a|an|\u4e0e) ?)?"
    r"(?:prev(?:ious)?|before|baseline|reference|ref|expected|last|was|normal(?:ly)?|usual(?:ly)?"
    r"|\u4e0a\u4e00?[\u7248\u6b21\u8f6e]|\u4e0a[\u5468\u6708]|\u57fa\u7ebf|\u57fa\u51c6|\u53c2\u8003"
    r"|\u9884\u671f|\u671f\u671b|\u6b64\u524d|\u4e4b\u524d|\u539f\u6765|\u4ee5\u524d|\u4e2d\u65ad\u524d"
    r"|\u6b63\u5e38)"
    r"(?P<stated>[^)\uff09\n]{1,120})",
    re.IGNORECASE,
)
"""As in "accuracy 71.4 (previous release: 70.9)"."""
_NAMED = Expression(rf"([A-Za-z]\w{{0,30}})\s?[=:]\s?({_NUMBER})")
_RANGE = Expression(
    rf"({_NUMBER})\s?%?\s?(?:-|~|\u2013|to|\u5230)\s?(\d[\d,]{{0,20}}(?:\.\d{{1,20}})?)"
)
_ANY = Expression(_NUMBER)
_MOST_OFF = 0.15
"""Share by which a result may differ from what it is held against."""

_SKIPPED = Expression(
    r"\b(?:step|iteration|steps|iterations|total|batches)\W{1,3}(?P<all>\d[\d,]{0,20})\b[^\n]{0,60}?"
    r"(?:\bskipped(?:[ _]\w{1,12})?|\u8df3\u8fc7?\u6b65\u6570?)\W{1,3}(?P<lost>\d[\d,]{0,20})\b",
    re.IGNORECASE,
)
_KEPT = Expression(
    r"(?<![\d,])(?P<all>\d[\d,]{0,20}) (?:\w{1,12} )?(?:read|in|total|loaded|seen)\b[^\n\d]{1,20}"
    r"(?P<kept>\d[\d,]{0,20}) (?:\w{1,12} )?(?:kept|out|written|usable|valid|accepted|used|left)\b"
    r"|(?:\u8bfb\u53d6|\u8f93\u5165|\u603b\u8ba1|\u5171)[^\n\d]{0,6}(?P<all_zh>\d[\d,]{0,20})[^\n\d]{1,12}"
    r"(?:\u4fdd\u7559|\u8f93\u51fa|\u6709\u6548|\u5199\u5165|\u5269\u4f59)[^\n\d]{0,4}(?P<kept_zh>\d[\d,]{0,20})",
    re.IGNORECASE,
)
_MOST_SKIPPED, _LEAST_KEPT = 0.05, 0.5
"""Shares of the steps, and of what was read."""


_PLANNED = Expression(
    r"(?:\b(?:lists?|planned|total(?: of)?|expected|found|queued|scheduled|submitted)\W{1,3}"
    r"|\u8ba1\u5212\W{0,2}|\u5e94\u6709\W{0,2}|\u603b\u8ba1\W{0,2}|\u5171\W{0,2})"
    r"(?P<many>\d[\d,]{0,20}) ?(?P<what>[A-Za-z]{3,20}|[\u4e00-\u9fff])",
    re.IGNORECASE,
)
_DONE = Expression(
    r"(?:\b(?:fetched|processed|completed|copied|uploaded|downloaded|converted|loaded|migrated|indexed"
    r"|written|wrote|saved|scored|answered|done)\W{1,3}"
    r"|\u5b8c\u6210\W{0,2}|\u6210\u529f\W{0,2}|\u5904\u7406\W{0,2}|\u5199\u5165\W{0,2})"
    r"(?P<many>\d[\d,]{0,20}) ?(?P<what>[A-Za-z]{3,20}|[\u4e00-\u9fff])",
    re.IGNORECASE,
)
_LEAST_DONE = 0.95


_LOSS = Expression(
    r"(?<![A-Za-z])(?:train_|training_|val_)?loss['\"]?\s?[:=]\s?(?P<value>\d{1,20}\.\d{3,20})(?![\deE])"
)
_STANDING = 4
"""Lines with the same loss, to the last digit: chance does not do that."""


def stands_still(lines: Iterable[str]) -> bool:
    """Whether the last losses are all the same: nothing is learned."""
    found = (_LOSS.search(line) for line in lines)
    losses = [loss["value"] for loss in found if loss][-_STANDING:]
    return len(losses) == _STANDING and len(set(losses)) == 1


def lacks_some(lines: Iterable[str]) -> bool:
    """Whether fewer of something were done than there were to do: "lists 4000 objects", "fetched
    3120 objects"."""
    planned: dict[str, float] = {}
    done: dict[str, float] = {}
    for line in lines:
        planned |= {found["what"]: _number(found["many"]) for found in _PLANNED.finditer(line)}
        done |= {found["what"]: _number(found["many"]) for found in _DONE.finditer(line)}
    return any(done[what] < _LEAST_DONE * planned[what] for what in planned.keys() & done.keys())


def falls_short(line: str) -> bool:
    """Whether a line states a number that is far from what it is held against, or that most of the
    work was left out."""
    return any(map(_is_off, _AGAINST.finditer(line))) or _is_mostly_left_out(line)


def _is_off(found: re.Match[str]) -> bool:
    said, stated = found["said"], found["stated"]
    if between := _RANGE.search(stated):
        low, high = _number(between[1]), _number(between[2])
        return any(not low <= value <= high for value in _last_number(said))
    pairs = list(_pairs(said, stated))
    return any(abs(value - reference) > _MOST_OFF * abs(reference) for value, reference in pairs)


def _pairs(said: str, stated: str) -> Iterator[tuple[float, float]]:
    """Numbers of one name, or the last one of a line and the one beside it."""
    names = {name: _number(value) for name, value in _NAMED.findall(stated)}
    named = [(name, _number(value)) for name, value in _NAMED.findall(said) if name in names]
    if named:
        yield from ((value, names[name]) for name, value in named)
        return
    for value in _last_number(said):
        if reference := _ANY.search(stated):
            yield value, _number(reference[0])


def _last_number(text: str) -> list[float]:
    return [_number(value) for value in _ANY.findall(text)[-1:]]


def _is_mostly_left_out(line: str) -> bool:
    for found in _SKIPPED.finditer(line):
        if _number(found["lost"]) > _MOST_SKIPPED * _number(found["all"]):
            return True
    return any(
        _number(found["kept"] or found["kept_zh"])
        < _LEAST_KEPT * _number(found["all"] or found["all_zh"])
        for found in _KEPT.finditer(line)
    )


def _number(text: str) -> float:
    return float(text.replace(",", ""))
