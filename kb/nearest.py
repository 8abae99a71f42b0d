"""Where nothing known fits: the records that come nearest, and why they are not the answer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kb.evidence import Evidence, EvidenceLine
from kb.incident import Incident

_MOST_LINES = 3


class Near(msgspec.Struct, frozen=True):
    """A record that is not shown as a match."""

    incident: Incident
    why_not: str
    """One sentence."""


def near(incident: Incident, signed: Sequence[EvidenceLine], evidence: Evidence) -> Near:
    """Say what is missing; `signed` are the lines that hold a signature of the record."""
    return Near(incident, _why_not(incident, signed, evidence))


def _why_not(incident: Incident, signed: Sequence[EvidenceLine], evidence: Evidence) -> str:
    if signed:
        numbers = ", ".join(str(line.number) for line in signed[:_MOST_LINES])
        return f"Of what it prints only line {numbers} is there, which other causes print as well."
    signatures = incident.header.signatures
    if signatures and evidence.is_log:
        return f"None of the {len(signatures)} lines that it is known by is there; only words are."
    return "Only some words are alike."
