"""What to ask: the question whose answer tells most about which record is the right one.

A question is a value with a likelihood for each answer under each record; a belief is a share for
each record and one for "nothing known". Nothing here knows how the question is put.
"""

from kb.inquiry.belief import Belief, Inquiry, Option, Topic
from kb.inquiry.choose import next_inquiry
from kb.inquiry.environment import Surroundings, seen_in
from kb.inquiry.observe import observations

__all__ = [
    "Belief",
    "Inquiry",
    "Option",
    "Surroundings",
    "Topic",
    "next_inquiry",
    "observations",
    "seen_in",
]
