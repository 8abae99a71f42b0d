"""From the logs of a job to who failed first."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from index.progress import Notify, silent_notify
from kb.containment import contained
from kb.evidence.collector import SHORT_LINES
from kb.evidence.endings import pasted_part
from kb.evidence.markers import Grade
from kb.expression import Expression
from kb.job.attempt import Attempt, RankLog
from kb.job.attribution import Prescan, attribute_lines, one_does_not_end, prescan
from kb.job.differences import Difference, find_differences
from kb.job.driver import counts_all
from kb.job.excerpt import excerpt
from kb.job.exits import Exit, read_exits
from kb.job.lines import Line
from kb.job.model import (
    AttributedLog,
    Cascade,
    Culprit,
    Explanation,
    FaultRole,
    Group,
    Job,
    LogLine,
    QuotedLine,
    RootCause,
    quote,
)
from kb.job.recorder import Dump, compare
from kb.job.root_cause import find_root_cause
from kb.job.stand_ins import (
    number_hosts,
    pod_ordinals,
    speaking_hosts,
    stated_ordinals,
    without_numbers,
)
from kb.job.stragglers import find_straggler
from kb.log import Block
from kb.log.layout import origin_of
from kb.log.mask import mask
from kb.numbers import read_ints
from kb.rules.rows import FailureKind

_WORLD = Expression(
    r"(?:mpirun|mpiexec)\b.*? -(?:np|n) (\d+)|\bworld[_ ]?size['\"]?[ :=]+(\d+)", re.IGNORECASE
)
_MAX_CULPRITS_IN_TIMELINE = 4
"""Lines of culprits: the first failures, beside at most four other moments."""


class Analysis(msgspec.Struct, frozen=True):
    """A job and the lines that its diagnosis is to be made from."""

    job: Job
    ended_well: bool
    """The logs say so; a job that merely shows no failure may still hang."""
    unfinished: bool
    """Most ranks say the end, and one does not."""
    evidence: tuple[Block, ...]
    """Empty where all lines are to be read."""
    is_short: bool
    """So few lines that all were read, and that every word counts."""
    differences: tuple[Difference, ...] = ()
    """Values that one rank prints, and all others print otherwise."""


def analyse(
    files: Mapping[str, Sequence[Line]],
    dumps: Sequence[Dump] = (),
    damaged: Collection[int] = (),
    notify: Notify = silent_notify,
) -> Analysis | None:
    """Tell who failed first from lines of the logs of one job, by name of the file, and from its
    recorded collectives; None where they are not from several ranks. `damaged` are the ranks whose
    record cannot be read. What fails on the way is told and left out."""
    if len(files) == 1 and not dumps:
        files = {
            name: lines[pasted_part([one.text for one in lines])] for name, lines in files.items()
        }
        seen = prescan(*files.values())
        if not seen.several:
            return None
        if not seen.troubled:
            return _calm(seen)
    log = attribute_lines(files)
    exits = read_exits(log)
    if not (dumps or _is_of_several(log.lines, exits)):
        return None
    hosts = [] if dumps else speaking_hosts(log, exits)
    if not hosts:
        return _analysed(log, exits, _named_ranks(files), dumps, damaged, notify)
    ordinals = pod_ordinals(log, hosts) or stated_ordinals(log, hosts)
    numbered = number_hosts(log, ordinals or {host: rank for rank, host in enumerate(hosts)})
    found = _analysed(numbered, read_exits(numbered), set(), (), (), notify)
    if ordinals:
        return found
    return msgspec.structs.replace(
        found,
        job=without_numbers(found.job, hosts),
        differences=tuple(msgspec.structs.replace(one, rank=None) for one in found.differences),
    )


def _analysed(
    log: AttributedLog,
    exits: Sequence[Exit],
    named: set[int],
    dumps: Sequence[Dump],
    damaged: Collection[int],
    notify: Notify,
) -> Analysis:
    """`named`: ranks that the names of files tell."""
    *earlier, last = _attempt_numbers(log)
    comparison = None
    with contained("the flight-recorder dumps are not compared", notify):
        comparison = compare(dumps, damaged)
    attempt = Attempt(
        _lines_of_last(log.lines, last),
        [one for one in exits if one.line.attempt >= last],
        comparison,
    )
    before = tuple(one for number in earlier for one in _failures_of(number, log, exits, notify))
    world_size = _world_size(attempt, log)
    root_cause = find_root_cause(attempt, notify)
    if root_cause is not None and earlier and not _has_own_cause(attempt):
        root_cause = _own_cause_before(earlier[-1], log, exits, notify) or root_cause
    if root_cause is None or _ended_well(attempt):
        found = _not_failed(attempt, named, world_size, before)
    else:
        job = _failed(attempt, root_cause, world_size, before)
        lines = excerpt(attempt, root_cause)
        found = Analysis(job, False, False, lines, len(log.lines) <= SHORT_LINES)
    differences: list[Difference] = []
    with contained("the values of the ranks are not compared", notify):
        differences = find_differences(attempt)
    return msgspec.structs.replace(found, differences=tuple(differences))


def _calm(seen: Prescan) -> Analysis:
    world_size = max(seen.ranks, default=-1) + 1 or None
    job = Job(failed=False, kind=None, world_size=world_size)
    return Analysis(job, False, seen.unfinished, (), False)


def _is_of_several(lines: Iterable[LogLine], exits: Iterable[Exit]) -> bool:
    """Whether several ranks or hosts print, or a launcher tells of one."""
    ranks = {line.rank for line in lines} | {one.rank for one in exits}
    hosts = {line.host for line in lines}
    return (
        len(ranks - {None}) > 1
        or len(hosts - {None}) > 1
        or any(one.rank or one.aborted for one in exits)
    )


def _attempt_numbers(log: AttributedLog) -> list[int]:
    return sorted({line.attempt for line in log.lines if line.rank is not None}) or [0]


def _lines_of_last(lines: Iterable[LogLine], number: int) -> list[LogLine]:
    """Lines of the last attempt. A launcher prints once more after it."""
    return [
        line
        for line in lines
        if line.attempt == number or (line.rank is None and line.attempt > number)
    ]


def _has_own_cause(attempt: Attempt) -> bool:
    return any(log.role >= FaultRole.SELF_INFLICTED for log in attempt.logs)


def _own_cause_before(
    number: int, log: AttributedLog, exits: Iterable[Exit], notify: Notify
) -> RootCause | None:
    """Why the attempt before failed, if a rank failed by itself: where a restart ends without such
    a cause, it could not come up for what the first one left behind."""
    attempt = _attempt(number, log, exits)
    return find_root_cause(attempt, notify) if _has_own_cause(attempt) else None


def _attempt(number: int, log: AttributedLog, exits: Iterable[Exit]) -> Attempt:
    return Attempt(
        [line for line in log.lines if line.attempt == number],
        [one for one in exits if one.line.attempt == number],
    )


def _failures_of(
    number: int, log: AttributedLog, exits: Iterable[Exit], notify: Notify
) -> tuple[QuotedLine, ...]:
    """What failed in an attempt that was followed by another."""
    root_cause = find_root_cause(_attempt(number, log, exits), notify)
    return tuple(culprit.quoted for culprit in root_cause.culprits) if root_cause else ()


def _ended_well(attempt: Attempt) -> bool:
    if attempt.died or any(not one.was_stopped for one in attempt.exits):
        return False
    if attempt.driver_is_done and _closed(attempt.ranks.values()):
        return True
    if counts_all(attempt) or _was_completed(attempt):
        return True
    codes = {one.rank: one.code for one in attempt.exits}  # the last report of each
    exited = bool(attempt.ranks) and all(codes.get(rank) == 0 for rank in attempt.ranks)
    reported = exited or attempt.driver_exited_well
    if not codes.keys() & attempt.ranks.keys():  # else a good exit may be that of one rank alone
        reported = reported or any(log.exited_well for log in attempt.hosts.values())
    ranks = attempt.ranks.values()
    complained = any(log.failures for log in ranks)  # asked first, since it costs nothing
    return reported or (bool(ranks) and not complained and all(log.ended_well for log in ranks))


def _closed(ranks: Collection[RankLog]) -> bool:
    """Whether most ranks complain and all of them go on in order: a shutdown is noisy, and noisy
    everywhere."""
    complaining = sum(bool(log.failures) for log in ranks)
    return 2 * complaining > len(ranks) > 1 and all(log.closes_in_order for log in ranks)


def _was_completed(attempt: Attempt) -> bool:
    """Whether a scheduler says so, and all ranks that their work is done: what a prolog or a
    clean-up complains of did no harm, unless it crashed. A script that goes on behind a crash is
    completed as well."""
    ranks, hosts = attempt.ranks.values(), attempt.hosts.values()
    return (
        bool(ranks)
        and all(log.is_done and not log.failures for log in ranks)
        and any(log.was_completed for log in hosts)
        and all(line.grade < Grade.FATAL for log in hosts for line in log.failures)
    )


def _world_size(attempt: Attempt, log: AttributedLog) -> int | None:
    text = "\n".join(line.text for line in log.lines)
    stated = read_ints(next(filter(None, match.groups())) for match in _WORLD.finditer(text))
    return max([*stated, max(attempt.known_ranks, default=-1) + 1]) or None


def _failed(
    attempt: Attempt,
    root_cause: RootCause,
    world_size: int | None,
    earlier: tuple[QuotedLine, ...],
) -> Job:
    bystanders = list(_bystanders(attempt, root_cause))
    return Job(
        failed=True,
        kind=root_cause.kind,
        world_size=world_size,
        culprits=tuple(culprit.quoted for culprit in root_cause.culprits),
        cascade=_cascade(attempt, bystanders),
        others=_others(bystanders),
        timeline=_timeline(attempt, root_cause, bystanders),
        earlier=earlier,
        finding=root_cause.explanation,
    )


def _named_ranks(files: Collection[str]) -> set[int]:
    """Those that the names of files tell: one that prints nothing has an empty file."""
    ranks = {origin_of(name).rank for name in files} if len(files) > 1 else set()
    return {rank for rank in ranks if rank is not None}


def _lacks_one(named: set[int]) -> bool:
    """Whether the logs of a job are numbered, and one of them is not here."""
    return len(named) > 1 and len(named) <= max(named) - min(named)


def _not_failed(
    attempt: Attempt,
    named: set[int],
    world_size: int | None,
    earlier: tuple[QuotedLine, ...],
) -> Analysis:
    ended = {rank for rank, log in attempt.ranks.items() if log.ended_well}
    unfinished = one_does_not_end(named | attempt.ranks.keys(), ended) or _lacks_one(named)
    ended_well = _ended_well(attempt) and not unfinished
    slow = find_straggler(attempt)
    if slow is None:
        job = Job(failed=False, kind=None, world_size=world_size, earlier=earlier)
        return Analysis(job, ended_well, unfinished, (), False)
    culprit = Culprit(slow.rank, attempt.ranks[slow.rank].host, slow.line)
    job = Job(
        failed=False,
        kind=FailureKind.STRAGGLER,
        world_size=world_size,
        culprits=(culprit.quoted,),
        earlier=earlier,
        finding=f"{Explanation.STRAGGLER}: it takes {slow.ratio:.0f} times as long"
        f" for {slow.field}",
    )
    root_cause = RootCause(FailureKind.STRAGGLER, (culprit,), Explanation.STRAGGLER)
    return Analysis(job, ended_well, unfinished, excerpt(attempt, root_cause), False)


_Bystander = tuple[RankLog, LogLine]
"""A rank that is not at fault, with its complaint or its last line."""


def _bystanders(attempt: Attempt, root_cause: RootCause) -> Iterator[_Bystander]:
    guilty = {culprit.rank for culprit in root_cause.culprits}
    for log in attempt.ranks.values():
        line = log.failure or log.last
        if log.rank not in guilty and line is not None:
            yield log, line


def _cascade(attempt: Attempt, bystanders: Sequence[_Bystander]) -> Cascade | None:
    """The complaints that follow from the first failure, and the commonest of them."""
    fallen = [line for _log, line in bystanders if line.pattern]
    if not fallen:
        return None
    common, _count = Counter(mask(line.message) for line in fallen).most_common(1)[0]
    example = next(line for line in fallen if mask(line.message) == common)
    ended = {one.rank for one in attempt.exits if one.code}
    count = sum(bool(line.pattern) or log.rank in ended for log, line in bystanders)
    return Cascade(count, example.message.strip())


def _others(bystanders: Iterable[_Bystander]) -> tuple[Group, ...]:
    groups: dict[str, list[_Bystander]] = defaultdict(list)
    for log, line in bystanders:
        groups[mask(line.message)].append((log, line))
    return tuple(
        Group(
            tuple(log.rank for log, _line in group if log.rank is not None),
            group[0][1].message.strip(),
            file=group[0][1].file,
            line=group[0][1].number,
        )
        for group in sorted(groups.values(), key=len, reverse=True)
    )


def _timeline(
    attempt: Attempt, root_cause: RootCause, bystanders: Iterable[_Bystander]
) -> tuple[QuotedLine, ...]:
    """The first line, the first failures, the first to follow and the launcher's end of it."""
    printed = [line for log in attempt.logs for line in log.lines if line.has_own_time]
    guilty = [culprit.line for culprit in root_cause.culprits if culprit.line]
    chosen = [
        *_earliest(printed),
        *guilty[:_MAX_CULPRITS_IN_TIMELINE],
        *_earliest(line for _log, line in bystanders if line.pattern),
        *_earliest(r for r in printed if r.rank is None and r.role is FaultRole.STOPPED),
        *sorted(printed, key=_when)[-1:],
    ]
    timed = [line for line in chosen if line.epoch_seconds is not None]
    unique = {(line.file, line.number): line for line in timed}
    return tuple(quote(line, line.rank, line.host) for line in sorted(unique.values(), key=_when))


def _earliest(lines: Iterable[LogLine]) -> list[LogLine]:
    """The earliest of the lines with a known time, if there is one."""
    return sorted((line for line in lines if line.epoch_seconds is not None), key=_when)[:1]


def _when(line: LogLine) -> float:
    return line.epoch_seconds or 0.0
