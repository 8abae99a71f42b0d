"""Sentences of records and of the conversation as Textual content; their markup means nothing."""

from __future__ import annotations

import re

from textual.content import Content

from kb.soft_breaks import join_soft_breaks

_CODE = re.compile(r"`([^`\n]+)`")


def inline(markdown: str) -> Content:
    """Paragraphs with their lines joined and `code` set apart."""
    pieces = _CODE.split(join_soft_breaks(markdown.strip()))
    return Content.assemble(
        *((piece, "$secondary" if number % 2 else "") for number, piece in enumerate(pieces))
    )


def heading(title: str, aside: str = "") -> Content:
    """The title of a section, and a word about it."""
    return Content.assemble((title, "bold $primary"), (f"  {aside}" if aside else "", "dim"))
