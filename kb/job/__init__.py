"""One job of many ranks: who failed first, told from plain text."""

from kb.job.analysis import Analysis, analyse
from kb.job.model import Cascade, Group, Job, QuotedLine
from kb.rules.rows import FailureKind

__all__ = ["Analysis", "Cascade", "FailureKind", "Group", "Job", "QuotedLine", "analyse"]
