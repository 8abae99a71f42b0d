"""Sentences of records and of the conversation as Textual content; their markup means nothing."""

from __future__ import annotations

import re

from textual.content import Content

from kb.soft_breaks import join_soft_breaks

_FENCED = re.compile(r"^```[^\n]*\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


def inline(markdown: str) -> Content:
    """Paragraphs with their lines joined and `code` set apart."""
    pieces = _CODE.split(join_soft_breaks(markdown.strip()))
    return Content.assemble(
        *((piece, "$secondary" if number % 2 else "") for number, piece in enumerate(pieces))
    )


def spoken(text: str) -> Content:
    """What the tool says: each line is a paragraph, and commands stand apart."""
    pieces = _FENCED.split(text)
    shown = [_command(piece) if place % 2 else _lines(piece) for place, piece in enumerate(pieces)]
    return Content("\n").join(piece for piece in shown if piece)


def _command(piece: str) -> Content:
    return Content.styled("\n".join(f"  {line}" for line in piece.split("\n")), "$secondary")


def _lines(piece: str) -> Content:
    return Content("\n").join(inline(line) for line in piece.split("\n") if line.strip())


def heading(title: str, aside: str = "") -> Content:
    """The title of a section, and a word about it."""
    return Content.assemble((title, "bold $primary"), (f"  {aside}" if aside else "", "dim"))
