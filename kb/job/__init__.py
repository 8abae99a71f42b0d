"""One job of many ranks: who failed first, told from plain text."""

from kb.job.analyse import Analysis, analyse
from kb.job.report import Cascade, Group, Job, Saying

__all__ = ["Analysis", "Cascade", "Group", "Job", "Saying", "analyse"]
