"""Columns of the tables that a text holds: drawn with lines, separated by a character, aligned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_NAME = re.compile(r"(?:[\w./()%#-]{1,40}(?: [\w./()%#-]{1,40}){0,3})?")
"""A heading: a few words, and nothing that a sentence has. A frame makes empty ones beside it."""
_RULE = re.compile(r"(?=[^\n]*[-─━═])[-+|:=─━│┃┼╪╋├┤┌┐└┘┬┴═║╔╗╚╝╠╣╦╩╬ \t\r]+")
_DRAWN = re.compile("([|│┃║])")
_ALIGNED = re.compile(r"(?<=\S)([ \t]{2,})(?=\S)")
_FORMS = (
    _DRAWN,
    *(re.compile(rf'"(?:[^"\n]|""){{0,500}}"|({mark})(?! )') for mark in "\t,;"),
    _ALIGNED,
)
"""What stands between cells is the group; what is quoted is skipped."""


class Cell(NamedTuple):
    """Where the words of a cell stand in a text."""

    start: int
    end: int


def cells_below(text: str, start: int, heading: re.Pattern[str]) -> Iterator[Cell]:
    """The cells under such a heading, if the line that starts there is the head of a table that
    has one. A table ends where a line has another number of cells."""
    for form in _FORMS:
        cells = _cells(text, start, form)
        names = [text[cell.start : cell.end] for cell in cells]
        columns = [place for place, name in enumerate(names) if heading.fullmatch(name)]
        if len(cells) > 1 and columns and all(map(_NAME.fullmatch, names)):
            if form is not _DRAWN or _is_framed_or_ruled(text, start):
                for row in _rows_below(text, start, form, len(cells)):
                    yield from (row[place] for place in columns)
            return


def _rows_below(text: str, start: int, form: re.Pattern[str], count: int) -> Iterator[list[Cell]]:
    while (start := _end(text, start) + 1) < len(text):
        if _RULE.fullmatch(text, start, _end(text, start)):
            continue
        cells = _cells(text, start, form)
        # Words of a message may be aligned as well.
        if len(cells) != count or (form is _ALIGNED and any(" " in text[a:b] for a, b in cells)):
            return
        yield cells


def _is_framed_or_ruled(text: str, start: int) -> bool:
    """In a log, one `|` may stand before each message."""
    line = text[start : _end(text, start)].strip()
    below = _end(text, start) + 1
    framed = bool(_DRAWN.match(line) and _DRAWN.match(line[-1]))
    return framed or bool(_RULE.fullmatch(text, below, _end(text, below)))


def _cells(text: str, start: int, form: re.Pattern[str]) -> list[Cell]:
    end = _end(text, start)
    marks = [found.span(1) for found in form.finditer(text, start, end) if found[1]]
    begins = [start, *(after for _, after in marks)]
    return [
        _trimmed(text, begin, close)
        for begin, close in zip(begins, [*(before for before, _ in marks), end], strict=True)
    ]


def _trimmed(text: str, start: int, end: int) -> Cell:
    words = text[start:end].strip(' \t\r"')
    start = text.index(words, start)
    return Cell(start, start + len(words))


def _end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
