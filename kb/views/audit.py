"""What `kb audit` prints."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kb.audit import Reliability, Share
from kb.audit.reliability import MIN_ANSWERS_ABOVE_BAR

MIN_CASES_FOR_SHARE = 20
"""With fewer cases the share of those with a record is not worth writing into the settings."""


def lines(figures: Reliability) -> Iterator[str]:
    """The figures, a sentence each."""
    if not figures.covered.cases:
        yield "No case is graded yet: run kb audit with the logs of closed cases."
        return
    yield f"{figures.covered.cases} cases are graded."
    if figures.matches.cases:
        yield f"Matches that led to what helped: {_said(figures.matches)}."
        yield f"Matches of the right area with the wrong diagnosis: {_said(figures.harmful)}."
    else:
        yield "No case was answered with a match."
    yield f"Cases whose record was shown first: {_said(figures.covered)}."
    if figures.bar is not None:
        yield (
            f"From {figures.bar:.0%} on, at most one in twenty answers was wrong"
            f" ({figures.above_bar} answers)."
        )
    elif figures.above_bar < MIN_ANSWERS_ABOVE_BAR:
        yield (
            "The bar for at most one wrong answer in twenty needs"
            f" {MIN_ANSWERS_ABOVE_BAR} answers with an incident; there are {figures.above_bar}."
        )
    else:
        yield "At no confidence was at most one in twenty answers wrong."
    if figures.covered.cases >= MIN_CASES_FOR_SHARE:
        yield (
            f"Write `covered = {figures.covered.value:.2f}` into the configuration, and confidences"
            " follow the share of your failures that have a record."
        )


def to_json(figures: Reliability) -> str:
    """One object on one line."""
    return msgspec.json.encode(figures).decode()


def _said(share: Share) -> str:
    return (
        f"{share.hits} of {share.cases}, {share.value:.0%}"
        f" (with 95 % confidence {share.low:.0%} to {share.high:.0%})"
    )
