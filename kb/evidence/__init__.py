"""From any text to the few lines that matter, and the facts in them."""

from kb.evidence.collector import collect
from kb.evidence.facts import Facts, fact_words, find_facts
from kb.evidence.join import join
from kb.evidence.model import Evidence, EvidenceLine, SignatureHit

__all__ = [
    "Evidence",
    "EvidenceLine",
    "Facts",
    "SignatureHit",
    "collect",
    "fact_words",
    "find_facts",
    "join",
]
