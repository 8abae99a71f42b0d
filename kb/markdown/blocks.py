"""Text that Markdown leaves as it is: fenced blocks and code spans."""

from __future__ import annotations

import re

_SPAN = re.compile(r"(?P<fence>`+)(?P<text>.+?)(?<!`)(?P=fence)(?!`)")


def fenced(text: str, language: str) -> str:
    """A block whose fence no line of the text can close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def code_span(text: str) -> str:
    """One line of text as a code span, which `read_spans` reads back."""
    runs = {len(run) for run in re.findall(r"`+", text)}
    fence = "`" * next(length for length in range(1, len(text) + 2) if length not in runs)
    edges = text[0] + text[-1]
    padding = " " if "`" in edges or edges == "  " else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def read_spans(text: str) -> tuple[str, ...] | None:
    """The texts of code spans with commas between them; None where the text is anything else."""
    found: list[str] = []
    position = 0
    while match := _SPAN.match(text, position):
        inner = match["text"]
        padded = inner.startswith(" ") and inner.endswith(" ") and inner.strip(" ")
        found.append(inner[1:-1] if padded else inner)
        if match.end() == len(text):
            return tuple(found)
        if not text.startswith(", ", match.end()):
            return None
        position = match.end() + 2
    return None
