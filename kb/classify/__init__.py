"""Many logs at once: diagnoses each unit, and clusters the units that no record fits."""

from kb.classify.cluster import Cluster
from kb.classify.inputs import Unit, find_units
from kb.classify.jobs import suggest_jobs
from kb.classify.journal import Journal, encode, read_rows
from kb.classify.local import classify_here
from kb.classify.result import MainLine, Outcome, Result, ResultRow, Unreadable
from kb.classify.run import Run, run
from kb.classify.summary import Summary, summarize

__all__ = [
    "Cluster",
    "Journal",
    "MainLine",
    "Outcome",
    "Result",
    "ResultRow",
    "Run",
    "Summary",
    "Unit",
    "Unreadable",
    "classify_here",
    "encode",
    "find_units",
    "read_rows",
    "run",
    "suggest_jobs",
    "summarize",
]
