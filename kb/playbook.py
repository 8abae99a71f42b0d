"""The playbook: the differential diagnosis of a symptom.

The Markdown form is described in docs/playbook-format.md and read by `kb.markdown`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from kb.incident import Identifier, Kind, Line, Text, Url

Favoured = Annotated[
    str, msgspec.Meta(pattern=r"^(playbook:)?[a-z0-9]+(-[a-z0-9]+)*$", max_length=110)
]
"""The key of a cause of the same playbook, or `playbook:ID`."""
Way = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(cause|check|playbook|incident):[a-zA-Z0-9]+([.-][a-zA-Z0-9]+)*$", max_length=110
    ),
]
"""Where to go on: `cause:KEY` of the same playbook, `check:ID`, `playbook:ID` or `incident:ID`."""


class Share(StrEnum):
    """How often a cause is behind the symptom: a judgement, unless its basis names a figure."""

    OFTEN = "often"
    SOMETIMES = "sometimes"
    RARE = "rare"


class Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How people say the symptom, short and sloppy."""

    en: Annotated[tuple[Line, ...], msgspec.Meta(min_length=1)]
    zh: tuple[Line, ...] = ()


class SymptomLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a log prints when the symptom is there. Matched as the signature of an incident is."""

    pattern: Annotated[str, msgspec.Meta(min_length=3, max_length=500)]
    regex: bool = False
    cause: Identifier | None = None
    """The key of the cause that alone prints it; None where several do."""


class AnswerOption(msgspec.Struct, frozen=True):
    """One answer to a question, and the causes that it speaks for."""

    text: Line
    favours: tuple[Favoured, ...] = ()


class Question(msgspec.Struct, frozen=True):
    """Something that only the user knows."""

    text: Line
    answers: Annotated[tuple[AnswerOption, ...], msgspec.Meta(min_length=1)]


class Outcome(msgspec.Struct, frozen=True):
    """What a check can show, and where that leads."""

    sees: Line
    then: Way


class CheckStep(msgspec.Struct, frozen=True):
    """One check of the order in which an expert runs them."""

    check: Identifier
    why: Text
    outcomes: tuple[Outcome, ...] = ()


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One cause of the symptom."""

    key: Identifier
    """Unique within the playbook."""
    cause: Text
    share: Share
    basis: Line | None = None
    """What the share rests on, where that is more than judgement."""
    tell: Line
    """What shows that it is this one."""
    remedy: Line
    incidents: tuple[Identifier, ...] = ()
    """Records that are special cases of it."""


class Mitigation(msgspec.Struct, frozen=True):
    """What gets the job going tonight."""

    do: Line
    cost: Line
    risk: Line


class LookAlike(msgspec.Struct, frozen=True):
    """What belongs to another page although it looks like this symptom."""

    sees: Line
    see: Way


class PlaybookHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The front matter of a playbook; the keys are written in this order."""

    id: Identifier
    title: Line
    """The symptom."""
    kind: Kind
    names: Names
    lines: tuple[SymptomLine, ...] = ()
    references: Annotated[tuple[Url, ...], msgspec.Meta(min_length=1)]


class PlaybookBody(msgspec.Struct, frozen=True, kw_only=True):
    """The sections of a playbook."""

    secure: Annotated[tuple[Line, ...], msgspec.Meta(min_length=1)]
    """What a restart destroys, to be saved before it."""
    safe_to_wait: Text
    """Whether the job can wait, and whether waiting has any use."""
    ask: tuple[Question, ...] = ()
    checks: Annotated[tuple[CheckStep, ...], msgspec.Meta(min_length=1)]
    causes: Annotated[tuple[Cause, ...], msgspec.Meta(min_length=1)]
    tonight: tuple[Mitigation, ...] = ()
    not_this: tuple[LookAlike, ...] = ()
    escalate: tuple[Line, ...] = ()
    """What the next expert will ask for."""


class Playbook(msgspec.Struct, frozen=True, tag="playbook"):
    """A whole playbook."""

    header: PlaybookHeader
    body: PlaybookBody

    @property
    def id(self) -> str:
        """The identifier, equal to the file name."""
        return self.header.id

    @property
    def title(self) -> str:
        """One line: the symptom."""
        return self.header.title

    @property
    def kind(self) -> Kind:
        """Always a playbook."""
        return self.header.kind
