"""What a page shows of Markdown that carries HTML."""

from __future__ import annotations

import re

_CODE = r"^[ \t]*(?P<fence>`{3,}|~{3,}).*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)|`[^`\n]+`"
_TAG = (
    r"</?(?:details|summary|p|div|br|hr|b|i|u|em|strong|sub|sup|small|font|center|span|h\d|ul|ol|li"
    r"|dl|dt|dd|a|kbd|code|term|table|thead|tbody|tr|td|th)\b[^<>\n]{0,300}/?>"
)
_EMPTY = r"<(?P<name>[a-z][\w-]{0,30})(?:[\s:][^<>\n]{0,100})?></(?P=name)>"
_UNSEEN = re.compile(f"(?P<code>{_CODE})|{_EMPTY}|{_TAG}", re.DOTALL | re.MULTILINE | re.IGNORECASE)
"""Tags, and elements that hold nothing. In code they are no markup but what somebody typed."""
_VARIABLE = re.compile(r"\{\{-?[ \t]*(?:site|page)\.(?P<name>[\w.-]{1,80})[^{}\n]{0,80}\}\}")
_STATEMENT = re.compile(
    r"\{%-?[ \t]*(?:end)?(?:include|if|elsif|else|unless|for|assign|capture|comment|raw)\b"
    r"[^{}\n]{0,200}%\}"
)
"""What Jekyll fills in and does when it makes the page."""


def without_tags(text: str) -> str:
    """A text without tags of HTML, but for its code."""
    return _UNSEEN.sub(lambda found: found["code"] or "", text)


def without_variables(text: str) -> str:
    """A document without what Jekyll fills in: the name of a variable stands for its value."""
    named = _VARIABLE.sub(lambda found: re.sub(r"[._-]", " ", found["name"]), text)
    return _STATEMENT.sub("", named)
