"""The incident record: one frozen value per idea. Parsed once, trusted afterwards.

The Markdown form is described in docs/record-format.md and read by `kb.markdown`.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated

import msgspec

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=20_000)]
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=400, pattern=r"^[^\n]*$")]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$", max_length=100)]
Identifier = Annotated[
    str, msgspec.Meta(pattern=r"^[a-zA-Z0-9]+([.-][a-zA-Z0-9]+)*$", max_length=100)
]
"""Kebab-case; a name that the program writes in mixed case (`ncclUniqueId`) may keep it."""
Release = Annotated[str, msgspec.Meta(pattern=r"^\d+(\.\d+)*(\.post\d+)?$", max_length=40)]
Url = Annotated[str, msgspec.Meta(pattern=r"^https?://\S+$", max_length=500)]


class Kind(StrEnum):
    """The kind of a record."""

    INCIDENT = "incident"
    CASCADE = "cascade"
    """A known follow-on error: the record says where to look for the first failure."""
    HARMLESS = "harmless"
    """Known noise."""
    CHECK = "check"
    """A diagnostic command and how to read its output: `kb.check`."""
    PLAYBOOK = "playbook"
    """The differential diagnosis of a symptom: `kb.playbook`."""


class Strength(StrEnum):
    """How strongly a signature points to its incident."""

    STRONG = "strong"
    """A line with this text is enough to name the incident."""
    WEAK = "weak"
    """Speaks for the incident, but other causes print it too."""


class Topology(StrEnum):
    """The number of nodes on which an incident happens."""

    SINGLE_NODE = "single-node"
    MULTI_NODE = "multi-node"
    ANY = "any"


class Certainty(StrEnum):
    """How well the facts of a record are established."""

    CONFIRMED = "confirmed"
    """Somebody reported that the fix helped."""
    DOCUMENTED = "documented"


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern of an incident; matched within one line, case-sensitive."""

    pattern: Annotated[str, msgspec.Meta(min_length=3, max_length=500)]
    strength: Strength
    regex: bool = False


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The conditions under which an incident happens."""

    frameworks: dict[str, Line]
    """Name to the versions in which it happens: `any`, or a specifier of PEP 440."""
    hardware: Line
    topology: Topology


class FixedIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A release or a change of a program that ends an incident."""

    system: Name
    version: Release | None = None
    """The first release with the change."""
    change: Url | None = None
    note: Line | None = None
    """A condition, such as an option that is off by default."""

    def __str__(self) -> str:
        name = " ".join(filter(None, (self.system, self.version)))
        named = ", ".join(filter(None, (name, self.note)))
        return f"{named} ({self.change})" if self.change else named


class VerifiedSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project whose clone was searched for the claims of a record."""

    name: Name
    release: Release
    """The newest one that was looked at."""
    files: dict[Line, Line] = {}
    """By message or option: a source file of that release with it."""


class Checked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When the claims of a record were last compared with their sources."""

    date: date
    by: Line
    """What was looked at: source files with their tags, threads, pages."""
    sources: tuple[VerifiedSource, ...] = ()
    """What `kb verify` looked at."""


class Step(msgspec.Struct, frozen=True):
    """One step of a fix."""

    text: Text
    """An imperative sentence."""
    command: str | None = None
    language: str = ""
    """Of the fenced command, as written behind the fence."""
    why: str | None = None
    read_only: bool = False
    """The command changes nothing and disturbs nobody: it may be run from the screen."""


class Distinction(msgspec.Struct, frozen=True):
    """How an incident is told from another."""

    other: Identifier
    question: Text
    """About something the user can observe; yes speaks for this incident, no for the other."""


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The front matter of a record; the keys are written in this order."""

    id: Identifier
    title: Line
    kind: Kind
    caution: Line | None = None
    systems: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    symptoms: tuple[Identifier, ...] = ()
    """Playbooks of what is seen where it happens, most fitting first."""
    environment: Environment
    signatures: tuple[Signature, ...] = ()
    fixed_in: tuple[FixedIn, ...] = ()
    references: Annotated[
        tuple[Url, ...],
        msgspec.Meta(min_length=1),
    ]
    confidence: Certainty
    checked: Checked | None = None
    aliases: tuple[Line, ...] = ()
    created: date
    updated: date


class EvidenceBlock(msgspec.Struct, frozen=True):
    """Lines as programs print them."""

    text: Text
    source: Line | None = None
    """Where they stand: a link, `format` and a link to the file that prints them, or `own run`."""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The sections of a record, as Markdown."""

    symptom: Text
    setting: Text
    """The section *Environment*."""
    cause: Text
    fix: Annotated[tuple[Step, ...], msgspec.Meta(min_length=1)]
    verify: Text
    prevention: Text | None = None
    distinguish: tuple[Distinction, ...] = ()
    evidence: Annotated[tuple[EvidenceBlock, ...], msgspec.Meta(min_length=1)]

    @property
    def evidence_text(self) -> str:
        """The lines of all blocks."""
        return "\n".join(block.text for block in self.evidence)


class Incident(msgspec.Struct, frozen=True):
    """A whole record."""

    header: Header
    body: Body

    @property
    def id(self) -> str:
        """The identifier, equal to the file name."""
        return self.header.id

    @property
    def title(self) -> str:
        """One line: what is seen, and because of what."""
        return self.header.title

    @property
    def kind(self) -> Kind:
        """Incident, cascade or harmless."""
        return self.header.kind
