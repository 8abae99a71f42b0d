"""A reply of the conversation for programs: these types define `docs/chat.schema.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from kb.conversation import Conversation, ReplyAct, Speaker, Turn
from kb.conversation.state import said_since, seen_since
from kb.diagnosis import NextCheck
from kb.evidence.secrets import mask_secrets, without_secrets
from kb.log.clean import escape_controls
from kb.service.wire import (
    WireNext,
    WireObservation,
    WireQuestion,
    json_schema,
    to_next,
    to_observation,
    to_question,
)


class WireRanked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An incident with its confidence after all that was said."""

    id: str
    title: str
    confidence: Annotated[float, Meta(ge=0, le=1)]


class WireCitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the text cites: a record by `id`, or a line by `file` and `line`."""

    id: str | UnsetType = UNSET
    file: Annotated[
        str | UnsetType | None,
        Meta(description="Null for a text that opened the case. `(you)`: a later message."),
    ] = UNSET
    line: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class WireWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of a language model that what was given to it carries."""

    text: str
    rests_on: Annotated[
        list[str],
        Meta(description="A part of the reply, a section of a record, a line, an observation."),
    ]


class WireVoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply in the words of a language model. It adds nothing to `text`."""

    model: str
    sentences: list[WireWords]
    dropped: Annotated[int, Meta(ge=0, description="Sentences of the model that nothing carried.")]


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply to one message."""

    text: Annotated[
        str,
        Meta(description="What a person reads, in their language. Commands are fenced by ```."),
    ]
    act: Annotated[
        ReplyAct,
        Meta(
            description="What the reply does. greet: says hello; without a case it asks what is"
            " wrong. diagnose: says what a new case is. update: took in what was told or pasted, or"
            " took it back; the order may have changed. answer: does or says what was asked for."
            " explain: gives a reason, or says what a term means. ask: has to know something before"
            " it goes on. close: the case is solved. decline: was not understood, or is none of"
            " its business; nothing changes."
        ),
    ]
    matches: Annotated[list[WireRanked], Meta(description="Incidents, best first.")]
    next: Annotated[
        WireNext | None,
        Meta(
            description="The check to run now. Null for a match, whose fix comes next, for a case"
            " that is solved, and where no outcome would change what to do."
        ),
    ]
    question: Annotated[
        WireQuestion | None,
        Meta(description="The open one; a message may be one of its answers, or its number."),
    ]
    observations: Annotated[
        list[WireObservation],
        Meta(description="What the outputs of checks in this message show."),
    ]
    citations: list[WireCitation]
    voice: Annotated[
        WireVoice | UnsetType, Meta(description="Where a voice is configured; see docs/llm.md.")
    ] = UNSET


def to_reply(
    conversation: Conversation,
    before: Conversation | None,
    step: NextCheck | None,
    voice: WireVoice | UnsetType = UNSET,
) -> Reply:
    """What was said since `before`, None at the opening, with secrets masked; `step` is the check
    to run now, `voice` what a model says of it.

    A private key is masked only where its lines are together: the diagnosis and the messages are to
    be masked before the conversation reads them.
    """
    turns = [turn for turn in said_since(conversation, before) if turn.speaker is Speaker.TOOL]
    question = conversation.question
    return Reply(
        text=mask_secrets("\n".join(turn.text for turn in turns)),
        act=turns[-1].act,
        matches=[
            WireRanked(match.incident.id, match.incident.title, match.confidence)
            for match in conversation.matches
        ],
        next=to_next(step) if step else None,
        question=to_question(question) if question else None,
        observations=[to_observation(seen) for seen in seen_since(conversation, before)],
        citations=[citation for turn in turns for citation in _citations(turn)],
        voice=without_secrets(voice),
    )


def to_line(reply: Reply) -> str:
    """A reply as JSON on one line."""
    return escape_controls(msgspec.json.encode(reply).decode())


def reply_schema() -> dict[str, Any]:
    """The schema of a line of `kb chat --jsonl`, as docs/chat.schema.json holds it."""
    return json_schema(Reply, "kb chat --jsonl")


def _citations(turn: Turn) -> Iterator[WireCitation]:
    for record in turn.records:
        yield WireCitation(id=record)
    for file, line in turn.lines:
        yield WireCitation(file=mask_secrets(file) if file else None, line=line)
