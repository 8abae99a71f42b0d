"""How reliable the answers were on closed cases of a team, by its own grades."""

from kb.audit.grades import Grade, Graded, Grades
from kb.audit.reliability import Reliability, Share, reliability

__all__ = ["Grade", "Graded", "Grades", "Reliability", "Share", "reliability"]
