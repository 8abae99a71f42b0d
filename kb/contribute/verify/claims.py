"""What a record claims about a project, as far as a program can look for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from kb.contribute.signatures import literal_parts
from kb.incident import Incident, Signature

_MIN_CHARACTERS = 12
"""Of a text that is looked for; a shorter one stands everywhere."""
_REGEX = re.compile(r"\\[a-zA-Z]|\((?:\?:)?[^()]*\)\??|\[[^\]]*\]|\{[^}]*\}|[.*+?^$|()]+")
"""Parts of an expression that stand for other text."""
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9]+(?:[-_][a-z0-9]+)+")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b")


class ClaimKind(StrEnum):
    """What is claimed."""

    CHANGE = "change"
    """That a release is the first with a change."""
    MESSAGE = "message"
    """That the project prints this, by the signatures."""
    OPTION = "option"
    """That it has this flag or environment variable, by the steps of the fix."""


class Claim(msgspec.Struct, frozen=True, order=True):
    """A claim about one project."""

    kind: ClaimKind
    text: str
    """A message, an option, or the link of a change."""
    version: str | None = None
    """Of a change: the release that the record names."""


def claims_of(incident: Incident, project: str) -> list[Claim]:
    """The claims about a project, each once. Messages and options are claimed of all projects that
    a record names together, so one that a project lacks is no error."""
    return sorted(set(_claims(incident, project)))


def _claims(incident: Incident, project: str) -> Iterator[Claim]:
    header = incident.header
    for fix in header.fixed_in:
        if fix.system == project and fix.change:
            yield Claim(ClaimKind.CHANGE, fix.change, fix.version)
    if project not in (*header.systems, *header.environment.frameworks):
        return
    for signature in header.signatures:
        yield from (Claim(ClaimKind.MESSAGE, text) for text in _messages(signature))
    for step in incident.body.fix:
        told = f"{step.text}\n{step.command or ''}\n{step.why or ''}"
        for name in (*_FLAG.findall(told), *_VARIABLE.findall(told)):
            yield Claim(ClaimKind.OPTION, name)


def _messages(signature: Signature) -> Iterator[str]:
    """The longest part that no print changes."""
    pattern = signature.pattern
    fixed = _REGEX.split(pattern.replace(r"\.", ".")) if signature.regex else [pattern]
    parts = [part.strip() for one in fixed for part in literal_parts([one])] or fixed
    longest = max(parts, key=len, default="")
    if len(longest) >= _MIN_CHARACTERS:
        yield longest
