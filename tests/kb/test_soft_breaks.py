"""Wrapped lines of a record are joined: a sentence breaks only where the screen ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from kb.corpus.base import KnowledgeBase
from kb.incident import Incident
from kb.soft_breaks import join_soft_breaks
from kb.views.prose import prose
from kb.views.record import render
from tui.prose import inline

WIDTH = 80
INDENTS = (2, 5, 6)
"""Columns before the text of a section and of a step, and of a step with a number of two digits."""


@pytest.mark.parametrize(
    ("written", "joined"),
    [
        ("waits longer than\n60 seconds", "waits longer than 60 seconds"),
        ("a multiple of\n32. Then it works", "a multiple of 32. Then it works"),
        ("the status is\n-9 or\n*always* 1", "the status is -9 or *always* 1"),
        ("one\n\ntwo\nthree", "one\n\ntwo three"),
        ("either:\n- one\n  line\n- two", "either:\n- one line\n- two"),
        ("in order:\n1. one\n   line\n2. two", "in order:\n1. one line\n2. two"),
        ("step 3:\n3. look\nthere", "step 3:\n3. look there"),
        (
            "run\n```sh\nls \\\n  -l\n\n1\n```\nand\nwait",
            "run\n```sh\nls \\\n  -l\n\n1\n```\nand wait",
        ),
    ],
)
def test_only_what_is_wrapped_is_joined(written: str, joined: str) -> None:
    assert join_soft_breaks(written) == joined
    assert prose(written).plain == inline(written).plain


def passages(incident: Incident) -> Iterator[str]:
    """The Markdown of a record that is shown as running text."""
    body = incident.body
    yield from (body.symptom, body.setting, body.cause, body.verify, body.prevention or "")
    yield from (step.text for step in body.fix)
    yield from (step.why or "" for step in body.fix)
    yield from (item.question for item in body.distinguish)


def paragraphs(markdown: str) -> Iterator[str]:
    """The paragraphs as CommonMark has them, each on one line."""
    for token in MarkdownIt("commonmark").disable("inline").parse(markdown):
        if token.type == "inline":
            yield " ".join(line.strip() for line in token.content.split("\n"))


def wrapped(paragraph: str, width: int) -> str:
    """The lines of a paragraph in a column of the screen."""
    lines = prose(paragraph).wrap(Console(width=width), width)
    return "\n".join(line.plain.strip() for line in lines)


@pytest.mark.slow
def test_a_shipped_record_breaks_only_at_the_width(knowledge: KnowledgeBase) -> None:
    for incident in knowledge.incidents():
        console = Console(width=WIDTH, color_system=None)
        with console.capture() as capture:
            console.print(render(incident))
        screen = "\n".join(map(str.strip, capture.get().split("\n")))
        for passage in passages(incident):
            for paragraph in paragraphs(passage):
                assert prose(paragraph).plain in inline(passage).plain.split("\n"), incident.id
                shown = (wrapped(paragraph, WIDTH - indent) in screen for indent in INDENTS)
                assert any(shown), (incident.id, paragraph)
