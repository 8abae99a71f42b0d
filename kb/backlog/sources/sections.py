"""Markdown and reStructuredText as a tree of headings; code is text, whatever it looks like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

_FENCE = re.compile(r"[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})[ \t]+(?P<title>.*?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r"(?P<mark>[=\-~^\"'*+#`:.])(?P=mark){2,}\s*$")
_TITLE_ABOVE = re.compile(r"[^\s>|*+\-`].*")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FRONT_MATTER = re.compile(
    r"\ufeff?---[ \t]*\n(?P<fields>.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL
)
_FIELD = re.compile(
    r"^(?P<name>[A-Za-z_][\w-]{0,40})[ \t]*:[ \t]*(?P<value>.*?)[ \t]*$", re.MULTILINE
)
_MAX_FRONT_MATTER_CHARACTERS = 20_000


class Line(msgspec.Struct, frozen=True):
    """A line of a document."""

    text: str
    is_code: bool


class Section(msgspec.Struct):
    """A heading, the lines up to the next one, and the sections below it."""

    level: int
    title: str
    body: list[Line]
    parts: list[Section]

    def lines(self) -> Iterator[Line]:
        """All lines, with the headings below."""
        yield from self.body
        for part in self.parts:
            yield Line(f"{'#' * part.level} {part.title}", is_code=False)
            yield from part.lines()

    def text(self) -> str:
        """All that it says, without its own heading."""
        return joined(self.lines())


def joined(lines: Iterator[Line] | Sequence[Line]) -> str:
    """Lines as a text."""
    return "\n".join(line.text for line in lines).strip()


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The fields in front of a document, and the rest of it."""
    found = _FRONT_MATTER.match(text[:_MAX_FRONT_MATTER_CHARACTERS])
    if not found:
        return {}, text
    fields = {
        field["name"].lower(): field["value"].strip("\"'")
        for field in _FIELD.finditer(found["fields"])
    }
    return fields, text[found.end() :]


def sections(text: str) -> Section:
    """The document as a section of level 0."""
    root = Section(0, "", [], [])
    path = [root]
    levels: dict[str, int] = {}
    for line in _with_headings(_lines(_COMMENT.sub("", text)), levels):
        heading = None if line.is_code else _HEADING.match(line.text)
        if heading is None:
            path[-1].body.append(line)
            continue
        section = Section(len(heading["marks"]), heading["title"], [], [])
        while path[-1].level >= section.level:
            path.pop()
        path[-1].parts.append(section)
        path.append(section)
    return root


def _lines(text: str) -> Iterator[Line]:
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence and found:
            fence = found["fence"]
            yield Line(line, is_code=True)
            continue
        yield Line(line, is_code=bool(fence))
        ends = found and found["fence"].startswith(fence) and not found["info"].strip()
        if fence and ends:
            fence = ""


def _with_headings(lines: Iterator[Line], levels: dict[str, int]) -> Iterator[Line]:
    """Underlined titles as headings with marks: of Markdown two levels, of reStructuredText any."""
    last: Line | None = None
    for line in lines:
        underline = None if line.is_code or last is None else _UNDERLINE.match(line.text)
        if underline and last and _is_underlined(last, line):
            level = levels.setdefault(underline["mark"], len(levels) + 1)
            yield Line(f"{'#' * min(level, 6)} {last.text.strip()}", is_code=False)
            last = None
            continue
        if last is not None:
            yield last
        last = line
    if last is not None:
        yield last


def _is_underlined(above: Line, line: Line) -> bool:
    return (
        not above.is_code
        and _TITLE_ABOVE.match(above.text) is not None
        and not _HEADING.match(above.text)
        and len(line.text.strip()) >= min(len(above.text.strip()), 200) * 2 // 3
        and len(above.text) <= 200
    )
