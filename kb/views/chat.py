"""The terminal view of a conversation: what is new since the last turn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from kb.conversation import Conversation, Speaker
from kb.conversation.language import Language, say
from kb.conversation.state import said_since
from kb.diagnosis import Match, Question
from kb.verdict import percent
from kb.views.prose import bar, command_block, indented, prose

_MAX_MATCHES_SHOWN = 5
"""Number of incidents listed under a reply."""
_BAR_CELLS = 6
"""Columns of the bar of a confidence."""
_FENCED = re.compile(r"```\w*\n(.*?)\n```", re.DOTALL)


def render(conversation: Conversation, before: Conversation | None) -> RenderableType:
    """What the tool said since `before`, the order and the question where they changed."""
    return Group(*_parts(conversation, before), Text())


def voice_heading(model: str, language: Language) -> RenderableType:
    """Says whose words follow."""
    return Text(say("voice", language, model=model), "dim")


def voice_words(text: str) -> RenderableType:
    """A sentence of the voice."""
    return indented(prose(text))


def voice_dropped(number: int, language: Language) -> RenderableType:
    """How many sentences are not shown."""
    return indented(Text(say("voice-dropped", language, number=number), "dim"))


def _parts(conversation: Conversation, before: Conversation | None) -> Iterator[RenderableType]:
    for turn in said_since(conversation, before):
        if turn.speaker is Speaker.TOOL:
            yield from _speech(turn.text)
    if conversation.matches and (before is None or before.matches != conversation.matches):
        yield Text()
        yield from (
            _line(*numbered) for numbered in enumerate(conversation.matches[:_MAX_MATCHES_SHOWN], 1)
        )
    if conversation.question and (before is None or before.question != conversation.question):
        yield Text()
        yield from _asked(conversation.question)


def _speech(text: str) -> Iterator[RenderableType]:
    """Prose, and commands ready to copy on lines of their own."""
    for place, piece in enumerate(_FENCED.split(text)):
        if place % 2:
            yield command_block(piece, 4)
        else:
            yield from (prose(line) for line in piece.strip("\n").split("\n") if line.strip())


def _line(position: int, match: Match) -> RenderableType:
    return Text.assemble(
        f"{position:>3}. {percent(match.confidence):>4} ",
        bar(match.confidence, _BAR_CELLS),
        "  ",
        (match.incident.id, "cyan"),
    )


def _asked(question: Question) -> Iterator[RenderableType]:
    yield Text.assemble(("? ", "bold yellow"), prose(question.text))
    answers = (f"{number}) {text}" for number, text in enumerate(question.answers, 1))
    yield indented(Text("   ".join(answers), "bold"))
