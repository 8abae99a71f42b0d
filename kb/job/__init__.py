"""One job of many ranks: who failed first, told from plain text."""

from kb.job.analysis import Analysis, analyse
from kb.job.model import Cascade, FailureKind, Group, Job, QuotedLine

__all__ = ["Analysis", "Cascade", "FailureKind", "Group", "Job", "QuotedLine", "analyse"]
