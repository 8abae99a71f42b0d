"""Exports of trackers, folders of documents, tables, mail and chats, read as threads."""

from kb.backlog.sources.model import Skipped, Source, Why
from kb.backlog.sources.reading import read_source, read_threads, sources_below
from kb.backlog.sources.tables import FIELDS as OF_TABLES
from kb.backlog.sources.tables import guess_columns
from kb.backlog.sources.trackers import FIELDS as OF_TRACKERS

FIELDS = tuple(dict.fromkeys((*OF_TABLES, *OF_TRACKERS)))
"""What can be mapped to a column or a name of a source."""

__all__ = [
    "FIELDS",
    "Skipped",
    "Source",
    "Why",
    "guess_columns",
    "read_source",
    "read_threads",
    "sources_below",
]
