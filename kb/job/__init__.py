"""One job of many ranks: who failed first, told from plain text."""

from kb.job.analyse import analyse
from kb.job.report import Cascade, Group, Job, Saying

__all__ = ["Cascade", "Group", "Job", "Saying", "analyse"]
