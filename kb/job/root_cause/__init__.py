"""Who failed first: one rule a module, walked in the order in which they are trusted."""

from kb.job.root_cause.rules import RULES, find_root_cause

__all__ = ["RULES", "find_root_cause"]
