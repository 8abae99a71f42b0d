"""Pieces that the views of a diagnosis and of a record share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kb.incident import Step
from kb.soft_breaks import join_soft_breaks

_INDENT = 2
_FULL, _EMPTY = "█", "░"
_CODE = re.compile(r"`([^`\n]+)`")


def bar(share: float, cells: int) -> Text:
    """A bar that is full at 1."""
    full = round(share * cells)
    return Text.assemble((_FULL * full, "green"), (_EMPTY * (cells - full), "dim"))


def heading(title: str) -> RenderableType:
    """A title with an empty line above."""
    return Text(f"\n{title}", "bold underline")


def indented(part: RenderableType, by: int = _INDENT) -> RenderableType:
    """Move a part to the right."""
    return Padding(part, (0, 0, 0, by))


def prose(markdown: str) -> Text:
    """A record's paragraph: lines joined, `code` set apart."""
    text = Text()
    for number, piece in enumerate(_CODE.split(join_soft_breaks(markdown))):
        text.append(piece, "cyan" if number % 2 else "")
    return text


def link(url: str) -> RenderableType:
    """A reference; never broken, so that it can be opened from the terminal."""
    return Text(" " * _INDENT + url, "blue", no_wrap=True, overflow="ignore")


def steps(fix: Sequence[Step]) -> RenderableType:
    """Numbered steps; a command stands alone on its lines, ready to copy."""
    parts: list[RenderableType] = []
    for number, step in enumerate(fix, 1):
        marker = f"{number}. "
        inside = _INDENT + len(marker)
        sentence = Table.grid()
        sentence.add_column(width=len(marker))
        sentence.add_row(marker, prose(step.text))
        parts.append(indented(sentence))
        if step.command:
            parts.append(command_block(step.command, inside + _INDENT))
        if step.why:
            why = prose(step.why)
            why.stylize("dim")
            parts.append(indented(why, inside))
    return Group(*parts)


def command_block(text: str, by: int) -> RenderableType:
    """A command, moved to the right, ready to copy: no line of it is cut or wrapped."""
    return _Command(text, by)


_UNQUOTED_SPACE = re.compile(r"""((?:[^\s'"]|'[^']*'|"[^"]*")+|\s+)""")
_NO_CONTINUATION = re.compile(r"#|\\$|^\s*(?:-|\w+:|\w[\w.]*\()")


class _Command:
    """A command, ready to copy: a long shell line is continued with a backslash, where that does
    not change it; a here-document stands at the margin, where its end has to be."""

    def __init__(self, text: str, indent: int) -> None:
        self.text, self.indent = text, " " * indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = self.text.split("\n")
        indent = "" if "<<" in self.text else self.indent
        if len(lines) == 1:
            lines = _continued(lines[0], options.max_width - len(indent))
        for line in lines:
            yield Text(indent + line, "bold cyan", no_wrap=True, overflow="ignore")


def _continued(line: str, width: int) -> list[str]:
    if len(line) <= width or _NO_CONTINUATION.search(line):
        return [line]
    pieces = [""]
    for word in _UNQUOTED_SPACE.findall(line):
        if pieces[-1].strip() and len(pieces[-1]) + len(word) > width - 2 and word.strip():
            pieces[-1] = pieces[-1].rstrip() + " \\"
            pieces.append("    ")
        pieces[-1] += word
    return pieces
