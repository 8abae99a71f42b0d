"""What to ask: the question whose answer tells most about which record is the right one.

A question is a value with a likelihood for each answer under each record; a belief is a share for
each record and one for "nothing known". Nothing here knows how the question is put.
"""

from kb.questions.belief import Belief, Option, QuestionPlan, Topic
from kb.questions.choose import next_question
from kb.questions.environment import KnownEnvironment, seen_in
from kb.questions.observe import observations

__all__ = [
    "Belief",
    "KnownEnvironment",
    "Option",
    "QuestionPlan",
    "Topic",
    "next_question",
    "observations",
    "seen_in",
]
