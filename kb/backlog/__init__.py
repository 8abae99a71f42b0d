"""The team's own backlog: closed issues, tickets, postmortems and FAQs become searchable leads."""

from kb.backlog.leads import find_leads
from kb.backlog.library import Backlog

__all__ = ["Backlog", "find_leads"]
