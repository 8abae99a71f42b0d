"""The records that lead to an incident and are none themselves: checks and playbooks."""

from __future__ import annotations

import re

from kb.check import Check
from kb.incident import Incident, Kind
from kb.playbook import Playbook

Guide = Check | Playbook
Record = Incident | Guide

GUIDE_KINDS = frozenset({Kind.CHECK, Kind.PLAYBOOK})

_STATED = re.compile(rb"^kind:[ \t]+(check|playbook)[ \t]*(?:#.*)?\r?$", re.MULTILINE)


def is_guide(source: bytes) -> bool:
    """Whether the file of a record says that it is a guide, by the line `kind: check` or
    `kind: playbook` of its front matter. Parses nothing; the reader refuses a guide that says it
    in another way."""
    return stated_kind(source) is not None


def stated_kind(source: bytes) -> Kind | None:
    """The kind of guide that the file of a record says it is; None of an incident."""
    end = source.find(b"\n---", 3)
    stated = _STATED.search(source, 0, max(end, 0))
    return Kind(stated[1].decode()) if stated else None
