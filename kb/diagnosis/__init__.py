"""From a log to what is known about it: scan -> retrieve -> features -> confidence -> verdict."""

from kb.diagnosis.causes import cause_pointed_to, causes_of_lines, likeliest_causes
from kb.diagnosis.confidence import UNSUPPORTED
from kb.diagnosis.diagnose import diagnose, weigh
from kb.diagnosis.in_words import (
    cause_pointed,
    collecting,
    ended_before,
    likely_causes,
    points_to_cause,
    without_incident,
)
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
    symptom_leads,
    to_question,
)
from kb.diagnosis.next_check import command_for, next_check
from kb.diagnosis.observed import Standing, likelihood_ratios, named_incidents, weighed_playbooks
from kb.diagnosis.outputs import OutputsRead, ReadOutput, read_text
from kb.diagnosis.playbooks import playbooks_for
from kb.diagnosis.query import to_query

__all__ = [
    "DONT_KNOW",
    "MAX_MATCHES_SHOWN",
    "UNSUPPORTED",
    "By",
    "Diagnosis",
    "Match",
    "NearMiss",
    "NextCheck",
    "Note",
    "OutputsRead",
    "PlaybookMatch",
    "Question",
    "ReadOutput",
    "Standing",
    "Why",
    "cause_pointed",
    "cause_pointed_to",
    "causes_of_lines",
    "collecting",
    "command_for",
    "diagnose",
    "ended_before",
    "first_question",
    "likeliest_causes",
    "likelihood_ratios",
    "likely_causes",
    "named_incidents",
    "next_check",
    "playbooks_for",
    "points_to_cause",
    "read_text",
    "symptom_leads",
    "to_query",
    "to_question",
    "weigh",
    "weighed_playbooks",
    "without_incident",
]
