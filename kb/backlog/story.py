"""The story of a first post: without the tracker's form, dumps of the environment and long logs.
What forms ask for is in `forms.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from kb.backlog.markup import without_tags
from kb.backlog.people import without_signature
from kb.evidence.nature import is_log

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)|<img\b[^>\n]*>|\[image: [^\]\n]*\]", re.IGNORECASE)
_LINK = re.compile(r"\[([^\[\]\n]+)\]\([^()\n]*\)")
_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,})")
_HEADING = re.compile(
    r"[ \t]*(?:#{1,6}[ \t]+(?P<marked>.+?)[ \t#]*"
    r"|(?:\*\*|__)(?P<bold>[^*_\n]{2,80}?)[ \t]*[:：]?(?:\*\*|__)[ \t]*[:：]?[ \t]*)$"
)
_CHECKBOX = re.compile(r"[ \t]*(?:[-*+][ \t]*)?\[[ xX✓]?\][ \t]")
_QUOTE = re.compile(r"[ \t]{0,3}>")
_QUOTE_MARK = re.compile(r"[ \t]{0,3}> ?")
_WROTE = re.compile(r"(?:On .{5,150} wrote|在.{5,100}写道)[:：]\s*$")
_EMPTY = re.compile(
    r"[\s*_]*(?:\[\]\([^)]*\)|no response|n/?a|none|null|\.|-+|=+|无)[\s*_]*$", re.IGNORECASE
)
_ENDS = re.compile(r"^[\W\d_]+|[\W_]+$")

_MAX_POST_CHARACTERS = 200_000
"""Of a first post: more is an attachment."""
_MAX_LINE_CHARACTERS = 400
"""Of a line, where it is asked whether a form has it."""
_MAX_HEADING_CHARACTERS = 60
"""Of a heading without marks."""
_MAX_CODE_LINES = 8
"""Of code or a log in a story; what matters of a longer one is among the lines."""
_MIN_CHARACTERS = 40
"""Of a story; less is what is left of a form."""
_MAX_CHARACTERS = 4_000
"""Of a story: what comes later is seldom about the trouble itself."""


class Told(msgspec.Struct, frozen=True):
    """A first post, taken apart."""

    story: str
    """What the person says, with short pieces of code and logs."""
    printed: str
    """Code and logs: what programs said."""


class _Block(msgspec.Struct, frozen=True):
    """Lines of one kind."""

    text: str = ""
    heading: str | None = None
    is_printed: bool = False


def told(text: str) -> Told:
    """A first post taken apart."""
    text = without_signature(text[:_MAX_POST_CHARACTERS].replace("\r\n", "\n"))
    story: list[str] = []
    dumped: list[str] = []
    printed: list[str] = []
    in_dump = False
    for block in _blocks(without_tags(_IMAGE.sub("", _COMMENT.sub("", text)))):
        if block.heading is not None:
            in_dump = _is("dumps", _ENDS.sub("", block.heading))
            if not in_dump and not _belongs_to_form(block.heading):
                story.append(block.heading)
        elif not in_dump:
            if block.is_printed:
                printed.append(block.text)
            story.append(_kept(block))
        else:
            dumped.append(_kept(block))
    said = "\n".join(filter(None, story))
    if len(said) < _MIN_CHARACTERS:  # all stands below a heading for something else
        said = "\n".join(filter(None, [*story, *dumped]))
    return Told(_bounded(said), "\n".join(printed))


def _blocks(text: str) -> Iterator[_Block]:
    """A post as headings, paragraphs, and pieces of code or log."""
    held: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        heading = None if fence or found else _HEADING.match(line)
        is_edge = bool(found and (not fence or found[1].startswith(fence)))
        if not is_edge and not heading and (fence or line.strip()):
            held.append(line)
            continue
        yield from _paragraph(held, in_fence=bool(fence))
        held = []
        if found and is_edge:
            fence = "" if fence else found[1]
        elif heading:
            yield _Block(heading=heading["marked"] or heading["bold"])
    yield from _paragraph(held, in_fence=bool(fence))


def _paragraph(lines: list[str], *, in_fence: bool) -> Iterator[_Block]:
    quoted = [_QUOTE_MARK.sub("", line) for line in lines if _QUOTE.match(line)]
    if lines and len(quoted) == len(lines) and _is_traceback(quoted):
        yield _Block("\n".join(quoted), is_printed=True)
    elif lines:
        is_printed = in_fence or (len(lines) > 2 and is_log(lines)) or _is_traceback(lines)
        yield _Block("\n".join(lines), is_printed=is_printed)


def _is_traceback(lines: list[str]) -> bool:
    return any(line.lstrip().startswith(("Traceback (most", 'File "')) for line in lines)


def _kept(block: _Block) -> str:
    """What of a block is story."""
    lines = block.text.split("\n")
    if block.is_printed:
        is_dump = len(lines) > _MAX_CODE_LINES or any(_finds("dump_lines", line) for line in lines)
        return "" if is_dump else block.text.strip("\n")
    return _LINK.sub(r"\1", "\n".join(line for line in lines if not _is_form(line))).strip()


def _is_form(line: str) -> bool:
    """Whether a line belongs to the form, or repeats what somebody else wrote."""
    start = line[:_MAX_LINE_CHARACTERS]
    return bool(
        _CHECKBOX.match(start)
        or _QUOTE.match(start)
        or _WROTE.match(start)
        or _EMPTY.match(start)
        or (len(start) <= _MAX_LINE_CHARACTERS and _starts("environment", start))
        or (len(start) <= _MAX_HEADING_CHARACTERS and _is_heading_of_form(start))
        or _finds("boilerplate", start)
    )


def _belongs_to_form(heading: str) -> bool:
    return _is("forms", _ENDS.sub("", heading)) or _finds("boilerplate", heading)


def _is_heading_of_form(line: str) -> bool:
    """A heading whose marks were lost: a line of its own, in capitals at its start, that no
    sentence ends."""
    text = line.strip()
    if not text[:1].isupper() or text.endswith("."):
        return False
    name = _ENDS.sub("", text)
    return _is("forms", name) or _is("dumps", name)


def _bounded(text: str) -> str:
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    if len(text) <= _MAX_CHARACTERS:
        return text
    end = text.rfind("\n", _MAX_CHARACTERS // 2, _MAX_CHARACTERS)
    return text[: end if end > 0 else _MAX_CHARACTERS].rstrip()


def _is(table: str, heading: str) -> bool:
    return _table(table).fullmatch(heading) is not None


def _finds(table: str, line: str) -> bool:
    return _table(table).search(line[:_MAX_LINE_CHARACTERS]) is not None


def _starts(table: str, line: str) -> bool:
    return _table(table).match(line) is not None


@cache
def _table(name: str) -> re.Pattern[str]:
    rows = tomllib.loads(Path(__file__).with_name("forms.toml").read_text("utf-8"))[name]
    return re.compile("|".join(f"(?:{row})" for row in rows), re.IGNORECASE)
