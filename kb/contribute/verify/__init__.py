"""Compares what records claim with local clones of the projects that they are about."""

from kb.contribute.verify.claims import Claim, ClaimKind, claims_of
from kb.contribute.verify.clone import Clone, Release
from kb.contribute.verify.findings import Finding, Standing, verify
from kb.contribute.verify.note import note_down

__all__ = [
    "Claim",
    "ClaimKind",
    "Clone",
    "Finding",
    "Release",
    "Standing",
    "claims_of",
    "note_down",
    "verify",
]
