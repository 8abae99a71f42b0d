"""Ranks that failed by themselves: an exception, a crash, a named cause, or a silent death.

Of several the earliest is to blame; ranks with the same words share the blame.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from signal import SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV
from statistics import median

from kb.errors import DamagedError
from kb.expression import Expression
from kb.files import decode_json
from kb.job.attempt import Attempt, RankLog
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.job.root_cause.blame import culprit_of, explains_itself
from kb.job.root_cause.comparison import step_of
from kb.log.mask import mask, shape_of
from kb.rules.rows import FailureKind

_GPU_MEMORY = Expression(r"\b(?:CUDA|HIP|GPU|NPU)\b")
_NAMES_SIGNAL = Expression(r"\bSIG[A-Z]+\b|\bsignal \d", re.IGNORECASE)
_CRASHES = (SIGILL, SIGBUS, SIGFPE, SIGSEGV)
"""Signals that a process brings upon itself, so that several may do it independently."""

_BAD_VALUE = Expression(r"\bnan\b|\binf\b|not finite|non-?finite|diverg|overflow", re.IGNORECASE)
_NAN = Expression(r"(?<![\w.])[+-]?(?:nan|inf)\b", re.IGNORECASE)

_NOT_FINITE = Expression(
    r"\bRuntimeWarning: (?:invalid value|divide by zero) encountered in\b"
    r"|\b(?:not|non)[ -]?finite\b|\bIEEE_(?:INVALID|DIVIDE_BY_ZERO)",
    re.IGNORECASE,
)
"""NumPy warns so once, where the value arises."""
_MENDED = Expression(
    r"\b(?:replac|skip|clip|clamp|mask|ignor|drop|discard|reset|zeroed|instead)", re.IGNORECASE
)
_WORDS = Expression(r"[^\W\d]+")
_LAST_LINES = 3
"""Everyday lines in which a rank that ends tells why."""
_TOLERATED_CLOCK_SECONDS = 1.0
"""Steps themselves differ by as much."""
_MIN_OTHERS = 3
"""Ranks that failed, of which one names a cause."""
_SAME_TIME_SECONDS = 5.0
"""What is buffered, or printed to another stream, may be that late."""
_MIN_SHARED_STEPS = 3
"""Steps that two hosts must both tell of, for their clocks to be compared."""


def failed_by_itself(attempt: Attempt) -> RootCause | None:
    """Name the earliest rank that failed by itself, or else those that ended without a word."""
    found = [
        culprit_of(attempt, log)
        for log in attempt.logs
        if log.role >= FaultRole.SELF_INFLICTED and not _is_told_by_its_ranks(attempt, log)
    ]
    if not found:
        ranks = sorted(attempt.known_ranks, key=lambda rank: _ended_at(attempt, rank))
        silent = [one for rank in ranks for one in _silent_death(attempt, rank)]
        return _silent_root_cause(attempt, silent) if silent else None
    offsets = _clock_offsets(attempt)
    found.sort(key=lambda culprit: _when(culprit, offsets))
    named = _named_cause(found, offsets)
    if named:
        found.insert(0, found.pop(found.index(named)))
    first = found[0].line
    assert first is not None  # noqa: S101  it is the failure of a log
    words = _said_in(first)
    alike = [one for one in found if one.line and _said_in(one.line) == words]
    kind = first.kind or FailureKind.EXCEPTION
    if _BAD_VALUE.search(words):
        logs = list(attempt.ranks.values())
        diverged = _first_to_diverge(logs) or _first_to_warn(logs)
        diverged.sort(key=lambda culprit: _when(culprit, offsets))
        if len(alike) > 1:
            return RootCause(kind, tuple(diverged or alike), Explanation.DIVERGED)
        if diverged and diverged[0].rank != found[0].rank:  # who checks the value raises
            return RootCause(kind, (diverged[0],), Explanation.DIVERGED)
    if (
        found[0].rank is None
        and attempt.ranks
        and all(log.is_done for log in attempt.ranks.values())
    ):
        return RootCause(kind, (found[0],), Explanation.DRIVER)
    is_everywhere = len(alike) > 1 and len(alike) >= len(attempt.ranks)
    return RootCause(kind, tuple(alike), _explanation(kind, words, is_everywhere=is_everywhere))


def _said_in(line: LogLine) -> str:
    """What a line says, without its details. The fields of a JSON object stand in any order."""
    if not line.message.startswith("{"):
        return mask(line.message)
    try:
        fields = decode_json(line.message.encode(), dict[str, object])
    except DamagedError:
        return mask(line.message)
    return shape_of(" ".join(f"{name}: {fields[name]}" for name in sorted(fields)))


def _named_cause(found: Sequence[Culprit], offsets: Mapping[str | None, float]) -> Culprit | None:
    """The one of several ranks whose failure names a cause outside of it, such as a full disk, if
    the others failed at about the same time, after which they may have waited for it."""
    named = [one for one in found if one.line and one.line.role is FaultRole.EXTERNAL_CAUSE]
    if len(named) != 1 or len(found) < _MIN_OTHERS:
        return None
    (_, first), (timeless, then) = _when(found[0], offsets), _when(named[0], offsets)
    return named[0] if not timeless and then - first <= _SAME_TIME_SECONDS else None


def _is_told_by_its_ranks(attempt: Attempt, log: RankLog) -> bool:
    """Whether the failure without a rank is a launcher's report on ranks that all say themselves
    why they ended."""
    if log.rank is not None:
        return False
    reported = [one.rank for one in attempt.exits if one.line is log.failure]
    return bool(reported) and all(
        rank is not None and explains_itself(attempt.ranks.get(rank)) for rank in reported
    )


def _explanation(kind: FailureKind, words: str, *, is_everywhere: bool) -> Explanation:
    if kind is FailureKind.NETWORK:
        return Explanation.NETWORK
    if is_everywhere:
        return Explanation.EVERYWHERE
    if kind is FailureKind.MEMORY:
        return Explanation.GPU_MEMORY if _GPU_MEMORY.search(words) else Explanation.MEMORY
    return Explanation.CRASH if kind is FailureKind.SIGNAL else Explanation.EXCEPTION


def _when(culprit: Culprit, offsets: Mapping[str | None, float]) -> tuple[bool, float]:
    """Key by which culprits are ordered in time; those without a time come last."""
    seconds = culprit.line.epoch_seconds if culprit.line else None
    return seconds is None, (seconds or 0.0) - offsets.get(culprit.host, 0.0)


def _silent_root_cause(attempt: Attempt, culprits: Sequence[Culprit]) -> RootCause:
    """Ranks that ended without saying why: by a signal, or by an exit of their own."""
    signals = {one.rank: one.signal for one in attempt.exits if one.signal}
    first = signals.get(culprits[0].rank)
    if first in _CRASHES:
        alike = tuple(one for one in culprits if signals.get(one.rank) == first)
        return RootCause(FailureKind.SIGNAL, alike, Explanation.CRASH)
    if first is None:
        return RootCause(FailureKind.EXCEPTION, (culprits[0],), Explanation.QUIT)
    explanation = Explanation.KILLED if first == SIGKILL else Explanation.CRASH
    return RootCause(FailureKind.SIGNAL, (culprits[0],), explanation)


def _ended_at(attempt: Attempt, rank: int) -> float:
    """When the end of a rank was reported; endless where no time is told."""
    times = (one.line.epoch_seconds for one in attempt.exits_of(rank))
    return min((seconds for seconds in times if seconds is not None), default=math.inf)


def _silent_death(attempt: Attempt, rank: int) -> Iterator[Culprit]:
    """A rank that a launcher reports as dead by itself, and that did not print why."""
    log = attempt.ranks.get(rank)
    if explains_itself(log):
        return
    exits = [one for one in attempt.exits_of(rank) if not one.was_stopped]
    if exits:
        best = next((one for one in exits if _NAMES_SIGNAL.search(one.line.text)), exits[0])
        line = best.line if best.signal else _last_words(log) or best.line
        host = next((one.host for one in exits if one.host), log.host if log else None)
        yield Culprit(rank, host, line)


def _last_words(log: RankLog | None) -> LogLine | None:
    """The complaint of a rank, or the last of its last lines that had not been printed before: what
    was buffered may come behind it."""
    if log is None:
        return None
    if log.failure:
        return log.failure
    said = Counter(_words_of(line) for line in log.ordinary)
    last = log.ordinary[-_LAST_LINES:]
    return next((line for line in reversed(last) if said[_words_of(line)] == 1), None)


def _words_of(line: LogLine) -> str:
    """What is left of a line without its numbers and their signs."""
    return " ".join(_WORDS.findall(mask(line.message)))


def _first_to_diverge(logs: Collection[RankLog]) -> list[Culprit]:
    """The ranks that printed a bad value first; none where they cannot be told apart.

    A NaN of one rank is everybody's after the next all-reduce. The rank it came from printed it
    first, or printed it where the others still had a number.
    """
    bad = {log: line for log in logs if (line := _first_bad_value(log))}
    if not bad:
        return []
    first = min(step_of(line.message) for line in bad.values())
    early = {log: line for log, line in bad.items() if step_of(line.message) == first}
    if len(early) == len(logs):
        early = _oddly_shaped(early)
    return [Culprit(log.rank, log.host, line) for log, line in early.items()]


def _first_to_warn(logs: Collection[RankLog]) -> list[Culprit]:
    """The one rank that was first told, by a library or by a check of its own, that a value is not
    finite, and did not mend it; none where several were at once."""
    warned = [
        (line.epoch_seconds or 0.0, line, log)
        for log in logs
        if (line := next((one for one in log.lines if _is_unmended(one)), None))
    ]
    warned.sort(key=lambda one: one[0])
    if not warned or len(warned) == len(logs):
        return []
    if len(warned) > 1 and warned[0][0] == warned[1][0]:
        return []
    _seconds, line, log = warned[0]
    return [Culprit(log.rank, log.host, line)]


def _is_unmended(line: LogLine) -> bool:
    return _NOT_FINITE.search(line.message) is not None and not _MENDED.search(line.message)


def _oddly_shaped(lines: Mapping[RankLog, LogLine]) -> dict[RankLog, LogLine]:
    """The lines of another shape than most; none where most are not alike."""
    shapes = Counter(shape_of(line.message) for line in lines.values())
    usual, count = shapes.most_common(1)[0]
    if count * 2 <= len(lines):
        return {}
    return {log: line for log, line in lines.items() if shape_of(line.message) != usual}


def _first_bad_value(log: RankLog) -> LogLine | None:
    """The first of its everyday lines with NaN or infinity in the place of a number."""
    usual = {shape_of(line.message) for line in log.ordinary}
    for line in log.lines:
        if _NAN.search(line.message) and shape_of(_NAN.sub("1", line.message)) in usual:
            return line
    return None


def _clock_offsets(attempt: Attempt) -> dict[str | None, float]:
    """Seconds to take off the times of each host to compare them with those of the first.

    Clocks differ by seconds or, where time zones differ, by hours. Ranks work in step, so lines
    about the same step were printed at about the same time: their difference is that of the clocks.
    """
    if len({log.host for log in attempt.ranks.values()}) < 2:
        return {}
    times = _times_of_steps(attempt)
    reference = next(iter(times.values()), {})
    offsets = {}
    for host, own in times.items():
        shared = [own[step] - reference[step] for step in own.keys() & reference.keys()]
        if len(shared) >= _MIN_SHARED_STEPS and abs(median(shared)) > _TOLERATED_CLOCK_SECONDS:
            offsets[host] = median(shared)
    return offsets


def _times_of_steps(attempt: Attempt) -> dict[str | None, dict[tuple[str, int], float]]:
    """By host: seconds since 1970 by the masked words of a line and the step that it tells of."""
    times: dict[str | None, dict[tuple[str, int], float]] = defaultdict(dict)
    for log in attempt.ranks.values():
        for line in log.ordinary:
            step = step_of(line.message)
            if line.has_own_time and line.epoch_seconds is not None and step >= 0:
                times[log.host].setdefault((mask(line.message), step), line.epoch_seconds)
    return times
