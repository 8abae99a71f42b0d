"""Where nothing known fits: the closest records, and why they are not the answer."""

from __future__ import annotations

from collections.abc import Sequence

from kb.diagnosis.model import By, Match, NearMiss
from kb.evidence import Evidence, EvidenceLine
from kb.incident import Incident

MAX_NEAR_MISSES = 2
"""Number of closest records shown; a third one is rarely close."""

MAX_LINES_NAMED = 3
"""Maximum number of line numbers in one sentence."""


def explain_rejections(ranked: Sequence[Match], evidence: Evidence) -> tuple[NearMiss, ...]:
    """The first of `ranked`, each with one sentence that says what is missing."""
    return tuple(
        NearMiss(match.incident, _why_not(match.incident, _signed(match), evidence))
        for match in ranked[:MAX_NEAR_MISSES]
    )


def _signed(match: Match) -> list[EvidenceLine]:
    return [why.line for why in match.why if why.by is By.SIGNATURE]


def _why_not(incident: Incident, signed: Sequence[EvidenceLine], evidence: Evidence) -> str:
    if signed:
        numbers = ", ".join(str(line.number) for line in signed[:MAX_LINES_NAMED])
        verb = "matches" if len(signed) == 1 else "match"
        lines = "line" if len(signed) == 1 else "lines"
        return f"Only {lines} {numbers} {verb}, and other causes print the same."
    signatures = incident.header.signatures
    if signatures and evidence.is_log:
        return f"None of its {len(signatures)} signatures is in the log; it only shares words."
    return "It shares only a few words."
