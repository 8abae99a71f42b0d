"""The text of HTML, with headings, lists and code as Markdown has them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_HTML = re.compile(r"</(?:p|div|pre|li|ul|table)>|<br ?/?>", re.IGNORECASE)
_HIDDEN = frozenset(
    "script style nav header footer aside form svg noscript button template head".split()
)
_BLOCKS = frozenset(
    "p div section article ul ol table tr blockquote dl dd dt main details summary".split()
)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")


def looks_like_html(text: str) -> bool:
    """Whether a text is marked up as HTML."""
    return _HTML.search(text) is not None


def is_page(head: str) -> bool:
    """Whether a file that begins so is a page."""
    start = head[:2000].lower()
    return "<!doctype html" in start or "<html" in start or start.lstrip().startswith("<body")


def text_of_html(markup: str) -> str:
    """The text that a reader of the page sees."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return _BLANK_LINES.sub("\n\n", "".join(reader.parts)).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag == "pre":
            self._code += 1
            self.parts.append("\n```\n")
        elif re.fullmatch(r"h[1-6]", tag):
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag == "br":
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag == "pre":
            self._code = max(0, self._code - 1)
            self.parts.append("\n```\n")
        elif tag in _BLOCKS or re.fullmatch(r"h[1-6]", tag):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        self.parts.append(data if self._code else re.sub(r"\s+", " ", data))
