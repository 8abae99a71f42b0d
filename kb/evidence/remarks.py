"""What a person says in so few words that no particle gives it away: the shape of the text does.

It is no reason to read a text as a question; it only keeps a text from being a happy log.
"""

from __future__ import annotations

from collections.abc import Iterable

from kb.evidence.endings import has_result, has_shape, says_end
from kb.evidence.glossary import has_chinese
from kb.evidence.nature import shows_progress
from kb.evidence.notices import is_notice
from kb.expression import Expression

_MAX_TOLD_LINES = 3
"""A log that shows that its work is done has more lines, or its lines begin as a program's do."""
_SPEAKING_LINES = 3
"""In which a person says what a paste is, at its beginning and at its end."""

_CLAUSES = Expression(
    r"[A-Za-z0-9\u4e00-\u9fff%)\"'][,;] (?=\S)|[\u4e00-\u9fff] (?=[\u4e00-\u9fff])"
    r"|\w [-/] (?=[A-Za-z\u4e00-\u9fff])|\w ?[\uff0c\uff1b\u3002\u3001] ?(?=\S)"
    r"|[A-Za-z\u4e00-\u9fff%] ?(?:--|[\u2013\u2014]{1,2}|\.\.\.) ?(?=\w)|\w[.!] (?=[A-Za-z])"
)
"""A text goes on behind a comma, or with a second sentence."""
_QUOTED = Expression(r"[\u201c\u300c\u300e][^\u201d\u300d\u300f]{1,80}[\u201d\u300d\u300f]")
_SAYS = Expression(r"(?:\w|\s)\"[^\"]{1,80}\"")
"""The words of a program in quotes."""
_PHRASE = Expression(r"(?:[\u4e00-\u9fff][^\u4e00-\u9fff]{0,2}){4}")


def is_remark(lines: Iterable[str]) -> bool:
    """Whether somebody may tell in a few words what a program did, or adds a word in Chinese to
    what a program printed in English."""
    given = list(lines)
    spoken = [line for line in given if line.strip()]
    if len(given) <= _MAX_TOLD_LINES:
        alone = len(spoken) < _MAX_TOLD_LINES
        return any(_is_said(line, alone=alone) for line in spoken)
    return _has_word_in_chinese(spoken)


def _is_said(line: str, *, alone: bool) -> bool:
    """Whether no program is known to print it, or a text goes on in it."""
    if has_shape(line, alone=alone) or is_notice(line):
        return False
    is_known = says_end(line) or has_result(line) or shows_progress(line)
    return not is_known or any(form.search(line) for form in (_CLAUSES, _QUOTED, _SAYS))


def _has_word_in_chinese(lines: list[str]) -> bool:
    chinese = [has_chinese(line) for line in lines]
    edges = {*range(_SPEAKING_LINES), *range(len(lines) - _SPEAKING_LINES, len(lines))}
    if sum(chinese) != 1 or (place := chinese.index(True)) not in edges:
        return False
    line = lines[place]
    return bool(_PHRASE.search(line)) and not has_shape(line, alone=False) and not says_end(line)
