"""Ranks that others waited for or lost, and that printed nothing of the kind themselves.

A hung rank is the one that prints no error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from kb.expression import Expression
from kb.job.attempt import Attempt, RankLog
from kb.job.hostlists import read_ranks
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.job.root_cause.blame import culprit_of
from kb.job.root_cause.comparison import last_step, odd_ones
from kb.log.mask import shape_of
from kb.numbers import read_int, read_ints
from kb.rules.rows import FailureKind

_LIST = r"(?P<ranks>\[?\d+(?:(?:, ?| and |-)\d+)*\]?)"
_NAMED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bno (?:\w+ ){{0,4}}from (?:the )?(?:rank|process|worker|task|peer|client) {_LIST}",
        rf"\branks? {_LIST} failed to pass monitoredBarrier",
        rf"\bmissing ranks?:? {_LIST}",
        rf"\bmissing \w+ from (?:ranks? |nodes? |workers? )?{_LIST}",
        rf"\bwaiting (?:for|on) (?:rank|process|worker|task|peer)(?:e?s|\(e?s\))? {_LIST}",
        rf"\branks? {_LIST} (?:did ?n.t|did not|has not|have not|hasn.t) (?:join|reach|call|enter)",
        rf"but didn't join collective[^.\n]*ranks? {_LIST}",
        rf"\btimed out .{{0,40}}\bfrom rank {_LIST}",
    )
)
"""Lines in which a waiting rank names those that it misses."""

_SEQUENCE = Expression(
    r"\bSeqNum[=:] ?(?P<called>\d{1,12})|\blast enqueued (?:\w+ )?work: (?P<enqueued>\d{1,12})",
    re.IGNORECASE,
)
"""The number of the last collective that a rank called, as torch tells it."""
_HEADING = Expression(r"\b(?:Missing|Stalled) ranks:\s*$")
_LISTED = Expression(r"(?:^|[:>\s])(\d{1,6}): ?\[")
"""What Horovod prints of a stall: a heading, and below it each rank with the tensors it lacks."""
_LAST_LISTED_LINES = 8
"""Last lines of the rank that watches: what is listed earlier was resolved."""
_WORLD_SIZE = Expression(r"\bWORLD_SIZE=(\d+)")

_RUNNING_FRAME = Expression(
    r"\s+File \"(?P<file>[^\"]+)\", line \d+ in (?P<function>\S+)"  # faulthandler
    r"|\s+(?P<function2>[\w.<>]+) \((?P<file2>[^():]+\.py):\d+\)"  # py-spy
    r"|\s+at (?!java|jdk\.|sun\.)(?P<function3>[\w.$<>]+)"  # Java, without its own libraries
    r"\((?P<file3>[\w$]+\.(?:java|kt|scala)):\d+\)"
)
"""A line of a stack that was taken while the rank ran."""
_THREAD_DUMP = "Full thread dump"
"""In front of the stacks that a Java machine prints on SIGQUIT; others are those of exceptions."""
_TRACEBACK_FRAME = Expression(r"\s*File \"(?P<file>[^\"]+)\", line \d+, in (?P<function>\S+)")
_Stack = dict[tuple[str, str], LogLine]
"""By file and function: the first line that shows it."""
_MIN_STACKS = 3
"""Of two ranks nothing tells which one is the odd one."""


def absent(attempt: Attempt) -> RootCause | None:
    """Name the ranks that the others waited for or lost."""
    waiting = [
        log for log in attempt.logs if log.role in (FaultRole.TIMED_OUT, FaultRole.LOST_PEER)
    ]
    stopped = [
        log for log in attempt.logs if any(line.kind is FailureKind.HANG for line in log.failures)
    ]
    if not waiting and not stopped:
        was_stopped = attempt.was_killed_in_a_stall or any(
            log.role is FaultRole.STOPPED for log in attempt.logs
        )
        return _hang(_odd_stacks(attempt.ranks.values())) if was_stopped else None
    return (
        _desync(_odd_worlds(attempt.ranks.values()))
        or _hang(_odd_stacks(attempt.ranks.values()))
        or _missing(attempt, waiting, stopped)
    )


def _desync(odd: list[Culprit]) -> RootCause | None:
    return RootCause(FailureKind.DESYNC, tuple(odd), Explanation.DESYNC) if odd else None


def _hang(odd: list[Culprit]) -> RootCause | None:
    return RootCause(FailureKind.HANG, tuple(odd), Explanation.HANG) if odd else None


def _missing(attempt: Attempt, waiting: list[RankLog], stopped: list[RankLog]) -> RootCause | None:
    """Ranks that others name, that are silent, or that differ; else whoever complains first."""
    silent = _never_spoke(attempt)
    named = _named_missing(attempt, (line for log in waiting for line in log.failures))
    if silent or (not named and (silent := _behind(attempt.ranks.values()))):
        return _hang(silent)
    candidates = named or _least_advanced(attempt) or odd_ones(list(attempt.ranks.values()))
    if not waiting and len(candidates) == len(attempt.ranks):
        return None
    if not candidates:
        fallback = (
            _desync(_odd_tracebacks(attempt.ranks.values()))
            or _lost_launcher(attempt)
            or _too_few_nodes(waiting)
        )
        if fallback:
            return fallback
    culprits = [Culprit(log.rank, log.host, _last_line(log)) for log in candidates]
    culprits = culprits or [culprit_of(attempt, (waiting or stopped)[0])]
    if len(candidates) == 1 and _is_late(candidates[0], waiting):
        return RootCause(FailureKind.STRAGGLER, tuple(culprits), Explanation.STRAGGLER)
    if stopped or any(log.role is FaultRole.TIMED_OUT for log in waiting):
        return _hang(culprits)
    return RootCause(FailureKind.SIGNAL, tuple(culprits), Explanation.CRASH)


def _is_late(log: RankLog, waiting: Iterable[RankLog]) -> bool:
    """Whether a rank goes on with its usual work behind the complaint of one that waited for it. A
    file has one clock."""
    last = log.last
    if last is None or all(
        shape_of(line.message) != shape_of(last.message) for line in log.ordinary[:-1]
    ):
        return False
    return any(
        one.failure is not None and one.failure.file == last.file and one.failure.place < last.place
        for one in waiting
        if one.role is FaultRole.TIMED_OUT and one is not log
    )


def _too_few_nodes(waiting: Iterable[RankLog]) -> RootCause | None:
    """Nodes waited for others to join, and no line names who did not: whoever says so did."""
    for log in waiting:
        line = log.failure
        if line and log.role is FaultRole.TIMED_OUT and line.kind is FailureKind.RENDEZVOUS:
            return RootCause(line.kind, (Culprit(None, None, line),), Explanation.NEVER_JOINED)
    return None


def _last_line(log: RankLog) -> LogLine | None:
    """A complaint of its own, or the last line of its everyday work."""
    return log.failure if log.role is FaultRole.UNCLASSIFIED else log.last or log.failure


def _named_missing(attempt: Attempt, lines: Iterable[LogLine]) -> list[RankLog]:
    """Ranks that others name as missing, most often named first."""
    votes = Counter(_stalled(attempt))
    for line in lines:
        match = next(filter(None, (pattern.search(line.text) for pattern in _NAMED)), None)
        if match:
            votes.update(set(read_ranks(match["ranks"])))
    named = (rank for rank, _count in votes.most_common())
    return [attempt.ranks[rank] for rank in named if rank in attempt.ranks]


def _stalled(attempt: Attempt) -> Iterator[int]:
    """The ranks that Horovod lists below a heading, in the last lines of the rank that watches."""
    for log in attempt.ranks.values():
        for heading, line in pairwise(log.lines[-_LAST_LISTED_LINES:]):
            if _HEADING.search(heading.text) and (match := _LISTED.search(line.text)):
                yield from read_ints([match[1]])


def _never_spoke(attempt: Attempt) -> list[Culprit]:
    """The rank that others name as missing up to their end, and that printed nothing at all."""
    for log in attempt.ranks.values():
        last = log.lines[-1]
        match = next(filter(None, (pattern.search(last.text) for pattern in _NAMED)), None)
        missing = set(read_ranks(match["ranks"])) - attempt.ranks.keys() if match else set()
        if missing and max(missing) < len(attempt.ranks) + len(missing) < 2 * len(attempt.ranks):
            return [Culprit(rank, attempt.reported_host(rank), last) for rank in sorted(missing)]
    return []


def _behind(logs: Iterable[RankLog]) -> list[Culprit]:
    """The few ranks whose last collective is one before that of all others: these wait in it."""
    called = {log: last for log in logs if (last := _last_collective(log))}
    counts = Counter(number for number, _line in called.values()).most_common()
    if len(counts) != 2 or counts[0][1] <= counts[1][1] or counts[1][0] > counts[0][0]:
        return []
    behind = counts[1][0]
    return [
        Culprit(log.rank, log.host, line)
        for log, (number, line) in called.items()
        if number == behind
    ]


def _last_collective(log: RankLog) -> tuple[int, LogLine] | None:
    """The number of the last collective that a rank called, and the line that tells it."""
    found: dict[int, LogLine] = {}
    for line in log.failures:
        for match in _SEQUENCE.finditer(line.text):
            number = read_int(match["called"] or match["enqueued"])
            if number is not None:
                found.setdefault(number, line)
    return max(found.items(), key=lambda pair: pair[0], default=None)


def _least_advanced(attempt: Attempt) -> list[RankLog]:
    """Of ranks that neither waited for nor lost another, those that lag behind or print something
    else than the rest."""
    silent = [log for log in attempt.ranks.values() if log.role <= FaultRole.UNCLASSIFIED]
    if len(silent) <= 1:
        return silent
    steps = [last_step(log) for log in silent]
    behind = [log for log, step in zip(silent, steps, strict=True) if step == min(steps)]
    if len(behind) < len(silent):
        return behind
    return odd_ones(list(attempt.ranks.values())) or silent


def _odd_worlds(logs: Iterable[RankLog]) -> list[Culprit]:
    """Ranks that were started for another number of ranks than most, with the line that tells."""
    stated = {
        log: (match[1], line)
        for log in logs
        for line in log.lines
        if (match := _WORLD_SIZE.search(line.text))
    }
    common = Counter(size for size, _line in stated.values()).most_common(2)
    if len(common) < 2 or common[0][1] == common[1][1]:
        return []
    usual = common[0][0]
    return [
        Culprit(log.rank, log.host, line) for log, (size, line) in stated.items() if size != usual
    ]


def _odd_stacks(logs: Iterable[RankLog]) -> list[Culprit]:
    """Ranks whose stack, taken while they ran, differs from that of most.

    Ranks that wait in the same collective have the same stack; the one they wait for has another.
    """
    return _odd({log: stack for log in logs if (stack := _stack(log, _RUNNING_FRAME))})


def _odd_tracebacks(logs: Iterable[RankLog]) -> list[Culprit]:
    """The same by the stacks of the exceptions that ended them: they waited in different places."""
    return _odd({log: stack for log in logs if (stack := _stack(log, _TRACEBACK_FRAME))})


def _odd(stacks: Mapping[RankLog, _Stack]) -> list[Culprit]:
    """Ranks with another stack than most, each with the first frame that only they have."""
    if len(stacks) < _MIN_STACKS:
        return []
    common, count = Counter(frozenset(stack) for stack in stacks.values()).most_common(1)[0]
    if count * 2 <= len(stacks):
        return []
    return [
        Culprit(log.rank, log.host, _first_outside(stack, common) or log.lines[-1])
        for log, stack in stacks.items()
        if frozenset(stack) != common
    ]


def _first_outside(stack: _Stack, common: frozenset[tuple[str, str]]) -> LogLine | None:
    return next((line for frame, line in stack.items() if frame not in common), None)


def _stack(log: RankLog, form: Expression) -> _Stack:
    stack: _Stack = {}
    is_dump = False
    for line in log.lines:
        is_dump = is_dump or line.message.startswith(_THREAD_DUMP)
        match = form.match(line.message)
        if match and (form is _RUNNING_FRAME or line.uncaught):
            part = match.groupdict()
            if part.get("file3") and not is_dump:
                continue
            file = part["file"] or part.get("file2") or part.get("file3") or ""
            function = part["function"] or part.get("function2") or part.get("function3") or ""
            stack.setdefault((file.rsplit("/", 1)[-1], function), line)
    return stack


def _lost_launcher(attempt: Attempt) -> RootCause | None:
    """The host whose launcher alone lost the others, where all ranks wait for each other: it is cut
    off though its own link looks sound."""
    lost = [
        log
        for host, log in attempt.hosts.items()
        if host and log.role in (FaultRole.TIMED_OUT, FaultRole.LOST_PEER)
    ]
    hosts = {log.host for log in attempt.logs if log.host}
    if len(lost) != 1 or len(hosts) < 2:
        return None
    culprit = Culprit(None, lost[0].host, lost[0].failure)
    return RootCause(FailureKind.NETWORK, (culprit,), Explanation.NETWORK)
