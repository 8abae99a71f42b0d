"""Verdicts, the thresholds between them, and the caps of a confidence.

Every face and the conversation decide here, so that the same confidence never has two verdicts.
"""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """The verdict of a diagnosis."""

    MATCH = "match"
    """The first match is above the bar."""
    POSSIBLE = "possible"
    """Candidates worth reading, or only errors that follow from another failure."""
    UNKNOWN = "unknown"
    """Nothing known fits."""
    HEALTHY = "healthy"
    """No sign of failure in the input."""

    @property
    def is_found(self) -> bool:
        """Whether there is something to read: exit code 0."""
        return self in (Verdict.MATCH, Verdict.POSSIBLE)


ANSWER_AT = 0.75
"""Minimum confidence of a match; an incident below it is shown as possible. docs/quality.md shows
the effect of other thresholds."""

SHOW_AT = 0.05
"""Below this confidence of the first incident none is shown: nothing known fits."""

SHOW_QUIET_AT = 0.15
"""The same for a log in which no line shows a failure, and for a short question: a word or two are
in many records."""

SHOW_CALM_AT = 0.60
"""The same for a log that shows progress up to its end and no failure; below it the log is
healthy."""

FITS_AT = 0.25
"""Below this confidence the first incident is called the nearest one, not the likeliest: three of
four such answers are wrong."""

LIKELY_AT = 0.50
"""From this confidence on an incident is likelier than all else together."""

SHOW_ALSO_AT = 0.02
"""Below this confidence an incident is not shown behind the first one."""

SYMPTOM_AT = 0.50
"""From this share of a playbook on, of what the incidents leave, its symptom is known."""

SYMPTOM_GUESS_AT = 0.20
"""From this share on a symptom told in words is more often right than an incident that is less
likely than not: of 34 short questions with less than `SYMPTOM_AT`, in 26 against 15."""

MAX_GENERAL_CONFIDENCE = ANSWER_AT - 0.01
"""Cap for a record found only by the kind of failure, by the words of a log without a line that it
declares, or by one line that other causes print too."""

MAX_CONTRADICTED_CONFIDENCE = ANSWER_AT - 0.01
"""Cap for a record that the log contradicts: other hardware, a version with the fix, another
exception at its end."""

MAX_CONFIDENCE_AFTER_TALK = 0.98
"""Cap for answers of the user: a cause without a record may look the same."""

MAX_CONFIDENCE_SHOWN = 0.99
"""No percentage shown to people reaches 100 %."""


def decide(best: float | None, *, follow_on: bool = False, healthy: bool = False) -> Verdict:
    """The verdict of an answer.

    Args:
        best: confidence of the first match, 0 to 1; None when no match is shown.
        follow_on: the log holds a known error that follows from another failure.
        healthy: the log itself shows no failure.
    """
    if best is not None:
        return Verdict.MATCH if best >= ANSWER_AT else Verdict.POSSIBLE
    if follow_on:
        return Verdict.POSSIBLE
    return Verdict.HEALTHY if healthy else Verdict.UNKNOWN


def percent(confidence: float) -> str:
    """A confidence as people read it; none is a certainty."""
    return f"{min(confidence, MAX_CONFIDENCE_SHOWN):.0%}"
