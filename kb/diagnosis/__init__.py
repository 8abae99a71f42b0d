"""From a log to what is known about it: scan -> retrieve -> features -> confidence -> verdict."""

from kb.diagnosis.diagnose import diagnose, weigh
from kb.diagnosis.in_words import collecting, without_incident
from kb.diagnosis.model import (
    DONT_KNOW,
    MAX_MATCHES_SHOWN,
    By,
    Diagnosis,
    Match,
    NearMiss,
    NextCheck,
    Note,
    PlaybookMatch,
    Question,
    Why,
    first_question,
    to_question,
)

__all__ = [
    "DONT_KNOW",
    "MAX_MATCHES_SHOWN",
    "By",
    "Diagnosis",
    "Match",
    "NearMiss",
    "NextCheck",
    "Note",
    "PlaybookMatch",
    "Question",
    "Why",
    "collecting",
    "diagnose",
    "first_question",
    "to_question",
    "weigh",
    "without_incident",
]
