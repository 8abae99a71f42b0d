"""What should be written up next: cases that were reported time and again, without a record."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

import msgspec

from kb.backlog.draft import text_of
from kb.backlog.model import Report
from kb.backlog.store import BacklogStore
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.log import Log
from kb.verdict import Verdict

_MAX_CASES = 300
"""Looked at, the most frequent ones: a diagnosis takes some 20 ms."""


class Gap(msgspec.Struct, frozen=True):
    """A case without a record."""

    report: Report
    """The one to write it up from: solved, if any is."""
    seen: int
    days: float | None
    """From report to remedy, the median; None where nobody wrote one."""


def find_gaps(store: BacklogStore, knowledge: KnowledgeBase) -> Iterator[Gap]:
    """The cases of an import that no record matches, most frequent first."""
    for filed in store.largest_cases(_MAX_CASES):
        reports = [one.report for one in filed]
        best = max(reports, key=lambda report: (report.resolution is not None, report.resolved))
        if diagnose(Log.from_text(text_of(best)), knowledge).verdict is not Verdict.MATCH:
            yield Gap(best, len(reports), _days(reports))


def _days(reports: Sequence[Report]) -> float | None:
    took = [
        (report.resolution.time - report.opened).total_seconds() / 86_400
        for report in reports
        if report.resolution and report.resolution.time and report.opened
    ]
    return statistics.median(took) if took else None
