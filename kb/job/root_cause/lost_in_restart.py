"""A rank that was started again for a cause that its log names, and whose work did not come back.

Those who wait for that work give up long after it, and their shutdown is noisy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kb.job.attempt import Attempt, RankLog
from kb.job.exits import starts_again
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.log.mask import shape_of
from kb.rules.rows import FailureKind

_LAST_LINES = 3
"""Everyday lines that show what a rank was at."""
_RESTART_LINES = 8
"""So many lines behind the cause, a supervisor tells that it starts the rank again."""


def lost_in_restart(attempt: Attempt) -> RootCause | None:
    """Name the first rank whose work was lost so, where others waited in vain, and none failed by
    itself before they gave up."""
    lost = [(line, log) for log in attempt.logs if (line := _cut_short(log))]
    complaints = [line for log in attempt.logs for line in log.failures]
    gave_up = _first_time(one for one in complaints if one.role is FaultRole.TIMED_OUT)
    failed = _first_time(one for one in complaints if one.role >= FaultRole.SELF_INFLICTED)
    if not lost or gave_up is None or (failed is not None and failed <= gave_up):
        return None
    line, log = min(lost, key=lambda one: one[0].epoch_seconds or 0.0)
    kind = line.kind or FailureKind.EXCEPTION
    explanation = Explanation.MEMORY if kind is FailureKind.MEMORY else Explanation.EXCEPTION
    return RootCause(kind, (Culprit(log.rank, log.host, line),), explanation)


def _cut_short(log: RankLog) -> LogLine | None:
    """The cause for which a rank was started again without coming back to what it was at."""
    for index, line in enumerate(log.lines):
        if line.role is not FaultRole.EXTERNAL_CAUSE:
            continue
        if not any(starts_again(one.text) for one in log.lines[index : index + _RESTART_LINES]):
            continue
        own = [one for one in log.ordinary if one.file == line.file]
        before = _shapes([one for one in own if one.place < line.place][-_LAST_LINES:])
        if before and not before & _shapes([one for one in own if one.place > line.place]):
            return line
    return None


def _shapes(lines: Collection[LogLine]) -> set[str]:
    return {shape_of(line.message) for line in lines}


def _first_time(lines: Iterable[LogLine]) -> float | None:
    return min((one.epoch_seconds for one in lines if one.epoch_seconds is not None), default=None)
