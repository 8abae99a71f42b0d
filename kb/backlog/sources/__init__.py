"""Exports of trackers, folders of documents, tables, mail and chats, read as threads."""

from kb.backlog.sources.model import Skipped, Source, Why
from kb.backlog.sources.reading import read_source, read_threads, sources_below
from kb.backlog.sources.tables import guess_columns

__all__ = [
    "Skipped",
    "Source",
    "Why",
    "guess_columns",
    "read_source",
    "read_threads",
    "sources_below",
]
