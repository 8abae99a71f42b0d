"""Where nothing known fits: the records that come nearest, and why they are not the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from kb.evidence import Evidence, SignatureHit
from kb.incident import Incident

_COUNT = 2


class Near(msgspec.Struct, frozen=True):
    """A record that is not shown as a match, and why."""

    incident: Incident
    why_not: str


class Fit(Protocol):
    """What a candidate has in common with a log."""

    @property
    def incident(self) -> Incident:
        """The record."""

    @property
    def hits(self) -> Sequence[SignatureHit]:
        """Its signatures that the log holds."""


def nearest(ranked: Sequence[Fit], evidence: Evidence) -> tuple[Near, ...]:
    """The first of the candidates, each with a reason against it; `ranked` is best first."""
    return tuple(Near(fit.incident, _why_not(fit, evidence)) for fit in ranked[:_COUNT])


def _why_not(fit: Fit, evidence: Evidence) -> str:
    if fit.hits:
        numbers = ", ".join(str(hit.line.number) for hit in fit.hits[:3])
        return f"Of what it prints only line {numbers} is there, which other causes print as well."
    signatures = fit.incident.header.signatures
    if signatures and evidence.is_log:
        return f"None of the {len(signatures)} lines that it is known by is there; only words are."
    return "Only some words are alike."
