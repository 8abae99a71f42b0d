"""Pieces that the views of a diagnosis and of a record share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from kb.incident import Step

_INDENT = 2
_FULL, _EMPTY = "█", "░"
_CODE = re.compile(r"`([^`\n]+)`")
_JOINED = re.compile(r"(?<!\n)\n(?!\n|\s*[-*\d])")


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
    rest = _JOINED.sub(" ", markdown)
    for number, piece in enumerate(_CODE.split(rest)):
        text.append(piece, "cyan" if number % 2 else "")
    return text


def steps(fix: Sequence[Step]) -> RenderableType:
    """Numbered steps; a command stands alone on its lines, ready to copy."""
    parts: list[RenderableType] = []
    for number, step in enumerate(fix, 1):
        marker = f"{number}. "
        inside = _INDENT + len(marker)
        parts.append(indented(prose(marker + step.text)))
        if step.command:
            parts.append(indented(Text(step.command, "bold cyan", overflow="fold"), inside + 2))
        if step.why:
            why = prose(step.why)
            why.stylize("dim")
            parts.append(indented(why, inside))
    return Group(*parts)
