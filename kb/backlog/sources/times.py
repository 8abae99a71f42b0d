"""Times as trackers write them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_FORMATS = (
    "%d/%b/%y %H:%M",  # Jira
    "%d/%b/%y %I:%M %p",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y",
    "%d.%m.%Y %H:%M",
    "%B %d, %Y",
    "%d %B %Y",
    "%Y年%m月%d日",
)
_SECONDS = re.compile(r"\d{9,10}(?:\.\d+)?|\d{13}")
_ZONE_WITHOUT_COLON = re.compile(r"(?<=\d)([+-]\d\d)(\d\d)$")
_DATE_IN_TEXT = re.compile(
    r"\b(?:19|20)\d\d-[01]\d-[0-3]\d(?:[T_ ]\d\d:\d\d(?::\d\d)?)?\b"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r" [0-3]?\d(?:[-–, ]+(?:[A-Z]\w+ )?[0-3]?\d)?, (?:19|20)\d\d\b"
    r"|(?:19|20)\d\d年[01]?\d月[0-3]?\d日|\b(?:19|20)\d\d/[01]\d/[0-3]\d\b"
)
_MAX_CHARACTERS = 60
"""Of a time; longer texts are something else."""


def read_time(value: object) -> datetime | None:
    """A time that is written in a way that is known; without a zone it is UTC."""
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not text or len(text) > _MAX_CHARACTERS:
        return None
    with suppress(ValueError, OverflowError, OSError, IndexError, TypeError):
        found = _read(text)
        return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)
    return None


def date_in(text: str) -> datetime | None:
    """The first date in a heading."""
    found = _DATE_IN_TEXT.search(text)
    return found and read_time(
        re.sub(r"[-–, ]+(?:[A-Z]\w+ )?[0-3]?\d(?=, \d{4})", "", found[0])
        if found[0][0].isalpha()
        else found[0].replace("_", " ")
    )


def _read(text: str) -> datetime | None:
    if _SECONDS.fullmatch(text):
        return datetime.fromtimestamp(float(text) / (1000 if len(text) == 13 else 1), UTC)
    with suppress(ValueError):
        return datetime.fromisoformat(_ZONE_WITHOUT_COLON.sub(r"\1:\2", text.removesuffix(" UTC")))
    for layout in _FORMATS:
        with suppress(ValueError):
            return datetime.strptime(text, layout)
    return parsedate_to_datetime(text)
