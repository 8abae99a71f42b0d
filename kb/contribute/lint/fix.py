"""Automatic fixes of the linter that lose no text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from kb.contribute.lint.private import private_names
from kb.contribute.neutral import neutral
from kb.errors import IncidentError
from kb.evidence.secrets import mask_secrets
from kb.files import write_whole
from kb.incident import Incident
from kb.markdown import parse, render

Item = TypeVar("Item")

_WORD = re.compile(r"\w+")


class Fixed(msgspec.Struct, frozen=True):
    """A file after mending."""

    text: str
    changes: tuple[str, ...]
    """What was changed, or why nothing was; in the words of a report."""


def fix_file(path: Path) -> tuple[str, ...]:
    """Mend a file in its place, whole or not at all, and say what was changed.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        text = path.read_bytes().decode("utf-8")
        fixed = fix(text)
    except (IncidentError, UnicodeDecodeError):
        return ()  # what cannot be read is reported, not guessed at
    if fixed.text != text:
        write_whole(path.resolve(), fixed.text.encode())
    return fixed.changes


def fix(text: str) -> Fixed:
    """Mend a record.

    Raises:
        IncidentError: it is none.
    """
    record = parse(text)
    canonical = render(record)
    if _words(canonical) != _words(text):
        return Fixed(text, ("not changed: the canonical form would drop some of its text",))
    changes = [] if canonical == text else ["rewritten in the canonical form"]
    if not isinstance(record, Incident):
        return Fixed(canonical, tuple(changes))
    incident = record
    for said, mend in _MENDS:
        mended = mend(incident)
        if mended != incident:
            incident = mended
            changes.append(said)
    return Fixed(render(incident), tuple(changes))


def _words(text: str) -> Counter[str]:
    """The text that must not change. Excludes step numbers and the language of evidence blocks,
    which the canonical form rewrites."""
    body = re.sub(r"^\s*(?:\d+[.)] |`{3,}|~{3,}).*?$", _without_marker, text, flags=re.MULTILINE)
    return Counter(_WORD.findall(body))


def _without_marker(line: re.Match[str]) -> str:
    return "" if line[0].lstrip()[0] in "`~" else re.sub(r"^\s*\d+[.)] ", "", line[0])


def _once(incident: Incident) -> Incident:
    """Remove duplicate entries of lists. Two signatures with one pattern both stay unless they are
    equal."""
    header = incident.header
    return msgspec.structs.replace(
        incident,
        header=msgspec.structs.replace(
            header,
            systems=_unique(header.systems),
            symptoms=_unique(header.symptoms),
            signatures=_unique(header.signatures),
            references=_unique(header.references),
            aliases=_unique(header.aliases),
        ),
    )


def _unique(items: tuple[Item, ...]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))


def _masked(incident: Incident) -> Incident:
    return _with_evidence(incident, mask_secrets)


def _neutral(incident: Incident) -> Incident:
    return _with_evidence(incident, lambda block: neutral(block) if _is_private(block) else block)


def _is_private(block: str) -> bool:
    return any(True for line in block.split("\n") for _name in private_names(line))


def _with_evidence(incident: Incident, change: Callable[[str], str]) -> Incident:
    body = incident.body
    evidence = tuple(
        msgspec.structs.replace(block, text=change(block.text)) for block in body.evidence
    )
    return msgspec.structs.replace(incident, body=msgspec.structs.replace(body, evidence=evidence))


_MENDS: tuple[tuple[str, Callable[[Incident], Incident]], ...] = (
    ("duplicate entries removed", _once),
    ("secrets in the evidence masked", _masked),
    ("names in the evidence replaced by neutral ones", _neutral),
)
