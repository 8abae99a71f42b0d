"""Reports in XML: feeds of Jira, exports of Bugzilla, fragments without a root; one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from xml.parsers import expat

from kb.backlog.sources.html_text import looks_like_html, text_of_html
from kb.backlog.sources.model import UnreadableError, Why
from kb.backlog.sources.text import MAX_VALUE_CHARACTERS, without_controls

_ITEMS = frozenset(
    ("item", "bug", "issue", "ticket", "incident", "record", "entry", "row", "report", "case")
)
"""Elements that hold a report each."""
_PROLOGUE = re.compile(r"\s*(?:<\?[^>]*\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^>\[]*>\s*)*", re.DOTALL)
"""What stands before the root, but for a DOCTYPE that declares something."""
_MAX_DEPTH = 100
_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE (?!html))")
_ROOT = re.compile(
    r"<(?:!DOCTYPE (?!html)|rss"
    r"|(?:\w+:)?(?:feed|bugzilla|issues|items|incidents|bug_data|"
    + "|".join(sorted(_ITEMS))
    + r")[\s>])"
)


def is_xml(head: str) -> bool:
    """Whether a text that begins so holds elements of reports."""
    begins_so = _XML.match(head) or _ROOT.match(_without_prologue(head))
    return begins_so is not None and "<html" not in head[:2000].lower()


def elements_in(chunks: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The elements of reports, each as its attributes and children by name.

    Raises:
        UnreadableError: it is broken from here on, declares what is in it, or one is too large.
    """
    builder = _Builder()
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.buffer_text = True
    try:
        parser.Parse("<root>", False)  # fragments have no root of their own
        for chunk in _from_root(chunks):
            parser.Parse(without_controls(chunk).encode(), False)
            yield from builder.finished()
        parser.Parse("</root>", True)
        yield from builder.finished()
    except expat.ExpatError as error:
        yield from builder.finished()
        raise UnreadableError(Why.BROKEN, f"broken XML: {error}") from error


def _from_root(chunks: Iterable[str]) -> Iterator[str]:
    parts = iter(chunks)
    first = _without_prologue(next(parts, ""))
    if first.startswith("<!DOCTYPE"):
        declares = (
            "its DOCTYPE declares elements or entities, which can grow without end; remove it"
        )
        raise UnreadableError(Why.BROKEN, declares)
    yield first
    yield from parts


def _without_prologue(text: str) -> str:
    return _PROLOGUE.sub("", text, 1)


class _Builder:
    """Keeps the element of the report that is being read, and forgets the rest."""

    def __init__(self) -> None:
        self._open: list[dict[str, Any]] = []
        self._finished: list[dict[str, Any]] = []
        self._size = 0

    def finished(self) -> Iterator[dict[str, Any]]:
        """What has ended since the last time."""
        finished, self._finished = self._finished, []
        return iter(finished)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open and _local(name) not in _ITEMS:
            return
        if len(self._open) >= _MAX_DEPTH:
            raise UnreadableError(Why.BROKEN, f"elements lie {_MAX_DEPTH} deep in each other")
        self._open.append({**attributes, "": []})

    def text(self, text: str) -> None:
        if not self._open:
            return
        self._size += len(text)
        if self._size > MAX_VALUE_CHARACTERS:
            raise UnreadableError(Why.TOO_LARGE, "one element has more than 32 million characters")
        self._open[-1][""].append(text)

    def end(self, name: str) -> None:
        if not self._open:
            return
        element = self._open.pop()
        value = _value(element)
        if self._open:
            _add(self._open[-1], _local(name), value)
        else:
            self._size = 0
            if isinstance(value, dict):
                self._finished.append(value)


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _value(element: dict[str, Any]) -> Any:
    """The text of an element without others; otherwise all that it holds."""
    text = "".join(element.pop("")).strip()
    if text:
        text = text_of_html(text) if looks_like_html(text) else _unwrapped(text)
    if not element:
        return text
    if text:
        element["text"] = text
    return element


def _add(parent: dict[str, Any], name: str, value: Any) -> None:
    if value in ("", None):
        return
    known = parent.get(name)
    if known is None:
        parent[name] = value
    elif isinstance(known, list):
        known.append(value)
    else:
        parent[name] = [known, value]


_CODE = re.compile(r"</?[\w-]*code(?::[^<>]*)?>\n?")
_HEADING = re.compile(r"<[\w-]*h:h(?P<level>\d)>(?P<text>[^<>]*)</[\w-]*h>")
_LINK = re.compile(
    r"<[\w-]*link:(?P<url>[^<>\s]*)>(?P<text>[^<>]*)</[\w-]*link>(?:\n[ \t]*)?(?P<end>[.,;:!?)]?)"
)
_INDENT = re.compile(r"^[ \t]{1,2}(?=\S)", re.MULTILINE)


def _link(found: re.Match[str]) -> str:
    """The words of a link; the exporter ends its line behind it."""
    return (found["text"].strip() or found["url"]) + (found["end"] or " ")


def _unwrapped(text: str) -> str:
    """A text whose code, headings and links are marked by elements of the exporter's own."""
    text = _CODE.sub("\n```\n", text)
    text = _HEADING.sub(lambda found: f"\n{'#' * int(found['level'])} {found['text']}\n", text)
    text = _LINK.sub(_link, text)
    return _INDENT.sub("", text)
