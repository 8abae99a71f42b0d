"""Scanners that several tests use, built when one needs them."""

from __future__ import annotations

from functools import cache

from index.signatures import Scanner
from kb.evidence.markers import MARKER_PATTERNS


@cache
def markers() -> Scanner:
    """What looks for the signs of failure."""
    return Scanner(MARKER_PATTERNS, first_only=False)
