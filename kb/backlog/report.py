"""From a thread to a report: symptom, lines, environment, and the resolution as somebody wrote it."""

from __future__ import annotations

from kb.backlog.model import Report, Thread


def to_report(thread: Thread, name: str) -> Report | None:
    """The report of a thread in the import `name`; None where nothing in it can be searched."""
    raise NotImplementedError
