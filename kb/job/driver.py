"""Whether the driver of actors, as of Ray, counts all of their work as done.

An actor that died is started again, and what an actor could not do is tried again: the driver knows
how it ended. Behind its end, its actors are killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.expression import Expression
from kb.job.attempt import Attempt, RankLog
from kb.job.model import FaultRole, LogLine

_ACTOR = Expression(r".{0,20}\((?:[\w.]+ )?pid=\d+[^()]{0,60}\) ")
"""How a driver marks the lines of its actors."""
_DONE = Expression(r"\b(?:finished|done|completed?|succeeded|passed)\b", re.IGNORECASE)
_COUNTED = Expression(r"(?<![\d./-])(\d{1,9}) ?(?:/|of) ?(\d{1,9})(?![\d./-])")
_TRY = Expression(r"\b(?:attempt|try|retry) #?(\d{1,4}) ?(?:/|of) ?(\d{1,4})\b", re.IGNORECASE)
_OF_AN_END = (FaultRole.STOPPED, FaultRole.LOST_PEER)
"""What actors say that are killed."""


def counts_all(attempt: Attempt) -> bool:
    """Whether the last words of a driver are that all of the work is done, and its actors complain
    of nothing but what they tried again, or of their end behind it."""
    ends = [line.epoch_seconds for line in _last_words(attempt) if _is_all_done(line)]
    end = next((seconds for seconds in ends if seconds is not None), None)
    return end is not None and all(
        _is_behind(line, end) or _is_tried_again(log, line)
        for log in attempt.logs
        for line in log.failures
    )


def _last_words(attempt: Attempt) -> Iterator[LogLine]:
    """The last line of the driver itself in each file into which its actors print."""
    files = {
        line.file for log in attempt.ranks.values() for line in log.lines if _ACTOR.match(line.text)
    }
    for log in attempt.hosts.values():
        own = {line.file: line for line in log.lines if not _ACTOR.match(line.text)}
        yield from (line for file, line in own.items() if file in files)


def _is_all_done(line: LogLine) -> bool:
    counts = _COUNTED.findall(line.message)
    return (
        line.pattern is None
        and _DONE.search(line.message) is not None
        and bool(counts)
        and all(int(some) == int(of) > 0 for some, of in counts)
    )


def _is_behind(line: LogLine, end: float) -> bool:
    """Whether a complaint is of the end of an actor, or of a service that loses its clients."""
    is_usual = line.role in _OF_AN_END or (
        line.rank is None and line.role is FaultRole.UNCLASSIFIED
    )
    return is_usual and (line.epoch_seconds or 0.0) > end


def _is_tried_again(log: RankLog, complaint: LogLine) -> bool:
    """Whether a complaint, or the line in front of its stack, says that tries are left."""
    everyday = {(line.file, line.place) for line in log.ordinary}
    for line in reversed(log.lines):
        if line.file != complaint.file or line.place > complaint.place:
            continue
        if (line.file, line.place) in everyday:
            return False
        if tried := _TRY.search(line.message):
            return int(tried[1]) < int(tried[2])
    return False
