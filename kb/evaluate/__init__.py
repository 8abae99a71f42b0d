"""How surely the right incident is found: a set of labelled reports in, a table of rates out."""

from kb.evaluate.cases import LabelledReport, read_cases
from kb.evaluate.measure import Report, measure
from kb.evaluate.outcome import Outcome, run

__all__ = ["LabelledReport", "Outcome", "Report", "measure", "read_cases", "run"]
