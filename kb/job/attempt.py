"""The ranks and hosts of one attempt: what each printed last, and how each failed."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from signal import SIGKILL

import msgspec

from kb.evidence.endings import says_end
from kb.evidence.markers import Grade
from kb.expression import Expression
from kb.job.exits import Exit, starts_again
from kb.job.failures import classify
from kb.job.lines import ATTACHED
from kb.job.model import FaultRole, LogLine
from kb.job.recorder import DumpComparison
from kb.log.layout import is_system_log
from kb.log.mask import shape_of

_NATIVE = Expression(
    r".{0,60}?\[[IWEF]\d{4} [\d:.]+ \S+\.cpp:\d+\]|[IWEF]\d{4} \d\d:.* torch/"
    r"|.*\bNCCL (?:INFO|WARN)\b|/\S+:\d+: \w*Warning"
)
_CHAINED = Expression(
    r"During handling of the above exception|The above exception was the direct cause"
    r"|Original Traceback"
)
_DIRECT = Expression(r"direct cause")
_CAUSED_BY = Expression(r"\s*Caused by: ")
_OF_PEERS = (FaultRole.LOST_PEER, FaultRole.TIMED_OUT)
_PANIC = r"\bthread '[^']{0,80}' .{0,20}panicked at\b"
_UNHANDLED = Expression(
    r"(?:Unhandled )?[Ee]xception in (?:thread|worker)|Process \S+-\d+:|\bray::\S+\(\)|" + _PANIC
)
"""The last but one is what a driver of Ray raises for an actor, which may print on."""
_HEAD_OF_PANIC = Expression(_PANIC + r" \S{1,200}:\d+:\d+:\s*$")
"""Rust writes the message of a panic in the line behind it."""
_RETRIED = Expression(
    r"\b(?:[1-9]\d* (?:retries|attempts|tries) (?:remaining|left)"
    r"|(?:will|to) be (?:retried|tried again))\b",
    re.IGNORECASE,
)
"""Behind a complaint: what stands below it did not end the work."""
_REMOTE = Expression(r"\bray::\S+\(\)")
_STALLED = Expression(
    r"\b(?:stall\w{0,3}|hangs?|hanging|hung|stuck|silent|timed? ?out"
    r"|no (?:line|output|progress|heartbeat|answer|news|step)s?)\b",
    re.IGNORECASE,
)
_KILLS_ALL = Expression(
    r"\b(?:kill(?:s|ing|ed)?|SIGKILL)\b.{0,80}"
    r"\b(?:all|everything|the rest|the others|(?:whole|entire) (?:job|group)|remaining)\b",
    re.IGNORECASE,
)
_LETTER = Expression(r"[^\W\d_]")
_PROMPT = Expression(r"\[?[\w.-]{1,40}@[\w.-]{1,60}[ :][^\n]{0,200}[#$%] *")
"""Of a shell that waits for the next command."""
_STALL_LINES = 5
"""So many lines before it kills them all, a watchdog may say why."""
_EXIT_LINES, _END_LINES = 3, 5
"""Last lines of a rank in which a launcher tells its exit code, and it tells itself that it is
done."""
_RETRIES = Expression(r"\bretry(?:ing)?\b|\btr(?:y|ies|ying) again\b", re.IGNORECASE)
"""It failed once, and not for good."""
_LATE_LINES = 4
"""So many everyday lines behind the report of an end are no rest of what was buffered."""
_CANCELLED = Expression(r"\bDUE TO (?:TIME ?LIMIT|PREEMPTION)\b|\bTERM_(?:RUNLIMIT|PREEMPT)\b")
_EXITED_WELL = (
    r"\b(?:exit(?:ed|ing)?(?: (?:with )?(?:status|code))?|returned|rc|ret|status)[: =]*0\b"
)
_COMPLETED = Expression(r"\bCOMPLETED\b.{0,80}?[\s=(]0:0(?!\d)")
_NOT_COMPLETED = Expression(
    r"\b(?:FAILED|TIMEOUT|CANCELLED|OUT_OF_ME\w*|NODE_FAIL|PREEMPTED|DEADLINE)\b"
    r".{0,80}?[\s=(]\d{1,3}:\d{1,3}(?![\d:])"
)
"""How Slurm tells the state of a job or a step, with its exit code and signal."""
_EXIT = Expression(
    r"\b(?:exit\w{0,3}|returned|rc|ret|status)(?: (?:with|status|code)){0,2}[: =]*-?\d"
)
_ENDED_WELL = Expression(
    r"\b(?:finish(?:ed|ing)?|done|complet(?:ed?|ion)|success(?:ful(?:ly)?)?|bye|all good)\b"
    r"|=== (?:\d+ (?:passed|skipped|xfailed|xpassed|deselected|warnings?)(?:, )?){1,6} in [\d.]+s\b"
    r"|" + _EXITED_WELL,
    re.IGNORECASE,
)


class RankLog:
    """All that one rank, or one host outside of its ranks, printed in one attempt."""

    def __init__(
        self,
        rank: int | None,
        host: str | None,
        lines: Sequence[LogLine],
        settled_at: Mapping[str | None, int],
    ) -> None:
        self.rank = rank
        self.host = host
        self.lines = _with_causes_below(_with_causes(_without_announcements(_in_time(lines))))
        self._settled_at = settled_at

    @cached_property
    def ordinary(self) -> list[LogLine]:
        """Lines of its everyday work, with neither complaints nor parts of a stack."""
        return [line for line in self.lines if _is_ordinary(line)]

    @property
    def last(self) -> LogLine | None:
        """The last line of its everyday work; what a shell or a terminal adds, a time or a number
        without a word or a prompt, is none where there is another."""
        said = (line for line in reversed(self.ordinary) if _is_said(line.message))
        return next(said, self.ordinary[-1] if self.ordinary else None)

    @property
    def last_file(self) -> str | None:
        """The file of its last line."""
        return self.lines[-1].file

    @cached_property
    def failures(self) -> list[LogLine]:
        """Complaints after which it did not go on with its work, else those of a rank that none
        survives: what goes on behind them is no work of its own."""
        complaints = [(index, line) for index, line in enumerate(self.lines) if line.pattern]
        last = [line for index, line in complaints if not self._is_past(index, line)]
        if last or self.rank is None:
            return last
        return [line for _index, line in complaints if line.is_final]

    def _is_past(self, index: int, line: LogLine) -> bool:
        """Whether the work went on after a complaint. One without a rank, in a file of several
        ranks, is past when each of them prints later."""
        if line.uncaught or index in self._unhandled:
            return False
        if self.rank is None and line.file in self._settled_at:
            return line.place < self._settled_at[line.file]
        return index < self._went_on

    @cached_property
    def failure(self) -> LogLine | None:
        """The complaint that tells most about why it failed."""
        if not self.failures:
            return None
        most = max(line.role for line in self.failures)
        telling = [line for line in self.failures if line.role is most]
        first = next((line for line in telling if not retries(line.text)), telling[0])
        return self._end_of_chain(first, most)

    @property
    def role(self) -> FaultRole:
        """What that complaint tells about it."""
        return self.failure.role if self.failure else FaultRole.NONE

    @property
    def ended_well(self) -> bool:
        """Whether it says so, and does not complain afterwards."""
        return not self.failures and any(says_end(line.text) for line in self.lines[-_END_LINES:])

    @property
    def closes_in_order(self) -> bool:
        """Whether everyday lines follow its complaints: a log that ends with a stack does not."""
        return _is_ordinary(self.lines[-1])

    @property
    def is_done(self) -> bool:
        """Whether the last line of its everyday work says that it is done."""
        return self.last is not None and _says_done(self.last)

    @property
    def exited_well(self) -> bool:
        """Whether its last lines report an exit without error."""
        return any(re.search(_EXITED_WELL, line.text) for line in self.lines[-_EXIT_LINES:])

    @property
    def was_completed(self) -> bool:
        """Whether a scheduler states at its end that the job is completed, and nowhere that a step
        of it is not."""
        return any(_COMPLETED.search(line.text) for line in self.lines[-_END_LINES:]) and not any(
            _NOT_COMPLETED.search(line.text) for line in self.lines
        )

    @cached_property
    def _unhandled(self) -> set[int]:
        """Indices of lines in stacks that ended a thread or a process, though others went on."""
        indices: set[int] = set()
        unhandled = False
        for index, line in enumerate(self.lines):
            unhandled = bool(_UNHANDLED.search(line.text)) or (unhandled and not _is_ordinary(line))
            if unhandled:
                indices.add(index)
        return indices

    @cached_property
    def _went_on(self) -> int:
        """The index of the last line that shows it at its everyday work after a complaint."""
        first = next((index for index, line in enumerate(self.lines) if line.pattern), None)
        if first is None or not any(_is_ordinary(line) for line in self.lines[first:]):
            return -1
        seen: set[str] = set()
        last = -1
        behind_exception = False
        for index, line in enumerate(self.lines):
            if _is_ordinary(line):
                if behind_exception:  # advice, which each process prints behind its own
                    behind_exception = False
                    continue
                shape = shape_of(line.message)
                if shape in seen or _ENDED_WELL.search(line.text):
                    last = index
                seen.add(shape)
            elif line.text.strip():
                behind_exception = line.grade is Grade.FATAL
        return last

    def _end_of_chain(self, first: LogLine, most: FaultRole) -> LogLine:
        """Of exceptions that led to each other, the one that ended it."""
        chosen, linked = first, False
        start = next(index for index, line in enumerate(self.lines) if line is first)
        for line in self.lines[start + 1 :]:
            linked = linked or bool(_CHAINED.search(line.text))
            if linked and line.role is most:
                chosen, linked = line, False
        return chosen


def _is_said(text: str) -> bool:
    return _LETTER.search(text) is not None and _PROMPT.fullmatch(text) is None


def retries(text: str) -> bool:
    """Whether a complaint says that it is tried again."""
    return _RETRIES.search(text) is not None


def _without_announcements(lines: list[LogLine]) -> list[LogLine]:
    """Where a line stands in front of a stack, the exception that ends it tells what happened. A
    stack may be cut off before it."""
    found = list(lines)
    is_told = False  # a complaint stands in front of the next everyday line
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        in_front = is_told and lines[index + 1].text.startswith("Traceback")
        if in_front and line.pattern and line.pattern.is_by_grade:
            found[index] = msgspec.structs.replace(line, pattern=None)
        is_told = line.pattern is not None or (is_told and not _is_ordinary(line))
    return found


def _with_causes(lines: list[LogLine]) -> list[LogLine]:
    """An exception that was raised because of a lost or awaited peer tells of that peer, whatever
    the program calls it."""
    found = lines
    cause: LogLine | None = None
    link: str | None = None
    for index, line in enumerate(lines):
        if line.pattern is None:
            if cause is not None and cause.role in _OF_PEERS and _CHAINED.search(line.text):
                link = line.text
            continue
        if link is not None and cause is not None:
            is_direct = _DIRECT.search(link) is not None
            if line.role is FaultRole.SELF_INFLICTED or (is_direct and line.role > cause.role):
                line = msgspec.structs.replace(line, pattern=cause.pattern)
                found = list(lines) if found is lines else found
                found[index] = line
        cause, link = line, None
    return found


def _with_causes_below(lines: list[LogLine]) -> list[LogLine]:
    """The same of Java, which prints the cause below the exception, in one stack."""
    found = lines
    above: list[int] = []  # the exceptions of a stack
    for index, line in enumerate(lines):
        is_cause = bool(above) and _CAUSED_BY.match(line.message) is not None
        for place in above if is_cause and line.role in _OF_PEERS else ():
            if lines[place].role > line.role:
                found = list(lines) if found is lines else found
                found[place] = msgspec.structs.replace(lines[place], pattern=line.pattern)
        if is_cause:
            above.append(index)
        elif line.pattern is not None:
            above = [index]
        elif not ATTACHED.match(line.message):
            above = []
    return found


def _in_time(lines: Sequence[LogLine]) -> list[LogLine]:
    """Merge the files of one rank. Lines without a time belong to the line before them; complaints
    that end a file are the last of all, and what it says before them is not. Of what was printed at
    the same time, that of a file which complains comes last: clocks may tell no more than
    seconds."""
    if len({line.file for line in lines}) == 1:
        return list(lines)
    complaining = {line.file for line in lines if line.pattern}
    everyday = {line.file: index for index, line in enumerate(lines) if line.has_own_time}
    everyday |= _before_complaints(lines)
    uncaught = {line.file for line in lines if line.uncaught}
    dated = [line for line in reversed(lines) if line.epoch_seconds is not None]
    first_at = {line.file: line.epoch_seconds for line in dated}
    calm_at = {line.file: line.epoch_seconds for line in dated if _is_ordinary(line)}

    def when(index: int) -> tuple[float, bool]:
        line = lines[index]
        at_the_end = line.file not in uncaught or line.uncaught
        complains = line.file in complaining
        if complains and index > everyday.get(line.file, -1) and at_the_end:
            return math.inf, complains
        seconds = line.epoch_seconds
        if seconds is None:  # a complaint may be the first to tell a time, long after the rest
            seconds = (calm_at if _is_ordinary(line) else first_at).get(line.file)
        return -math.inf if seconds is None else seconds, complains

    return [lines[index] for index in sorted(range(len(lines)), key=when)]


def _before_complaints(lines: Sequence[LogLine]) -> dict[str | None, int]:
    """By file without times: the index of the last everyday line before its first complaint."""
    found: dict[str | None, int] = {}
    complained: set[str | None] = {line.file for line in lines if line.has_own_time}
    for index, line in enumerate(lines):
        if line.pattern is not None:
            complained.add(line.file)
        elif line.file not in complained and _is_ordinary(line):
            found[line.file] = index
    return found


def _worked(lines: Sequence[LogLine]) -> bool:
    """Whether everyday lines other than those of an exit stand behind the last complaint."""
    for line in reversed(lines):
        if line.pattern is not None:
            return False
        if _is_ordinary(line) and not _EXIT.search(line.text):
            return True
    return False


def _says_done(line: LogLine) -> bool:
    return _ENDED_WELL.search(line.message) is not None or says_end(line.message)


def _is_ordinary(line: LogLine) -> bool:
    return (
        line.grade in (Grade.CONTEXT, Grade.HINT)
        and not ATTACHED.match(line.message)
        and any(character.isalnum() for character in line.message)
        and not _NATIVE.match(line.text)
        and not line.uncaught
    )


def _without_copies(lines: Sequence[LogLine]) -> list[LogLine]:
    """Drop what a launcher repeats in its own log of the lines that a rank's file has."""
    files = Counter(line.file for line in lines)
    seen: dict[str, str | None] = {}
    for line in sorted(lines, key=lambda one: -files[one.file]):
        seen.setdefault(line.message, line.file)
    return [line for line in lines if seen[line.message] == line.file]


def _settled_at(logs: Iterable[Sequence[LogLine]]) -> dict[str | None, int]:
    """By file of several ranks: the number of the line up to which each of them goes on with its
    work."""
    last: dict[str | None, list[int]] = defaultdict(list)
    for lines in logs:
        numbers = {line.file: line.place for line in lines if _is_ordinary(line)}
        for file, number in numbers.items():
            last[file].append(number)
    return {file: min(numbers) for file, numbers in last.items() if len(numbers) > 1}


def _without_survivors(exits: Sequence[Exit], lines: Sequence[LogLine]) -> list[Exit]:
    """Drop the exits of ranks that work on later in the same file: they were started again. The
    last lines of a rank may come behind the report of its end."""
    ended = {(one.rank, one.line.file) for one in exits if one.rank is not None}
    worked: dict[tuple[int | None, str | None], list[LogLine]] = defaultdict(list)
    for line in lines:
        if (place := (line.rank, line.file)) in ended and _is_ordinary(line):
            worked[place].append(line)

    def survives(one: Exit) -> bool:
        last = worked[one.rank, one.line.file][-_LATE_LINES:]
        later = [line for line in last if line.place > one.line.place]
        if not later or len(later) == _LATE_LINES:
            return bool(later)
        is_own = one.line.rank is not None and not one.aborted
        return is_own or _says_done(later[-1]) or any(starts_again(line.text) for line in lines)

    return [one for one in exits if not survives(one)]


def _without_cancelled(exits: Sequence[Exit], lines: Iterable[LogLine]) -> list[Exit]:
    """Drop the exits of processes that were killed because a scheduler had ended the job."""
    told = [line for line in lines if line.rank is None]
    ends = [line for line in told if _CANCELLED.search(line.text)] + _kills_of_a_stall(told)
    if not ends:
        return list(exits)
    first = {line.file: line.place for line in reversed(ends)}
    return [
        one
        for one in exits
        if one.signal != SIGKILL or one.line.place < first.get(one.line.file, one.line.place + 1)
    ]


def _kills_of_a_stall(lines: Sequence[LogLine]) -> list[LogLine]:
    """The lines in which a watchdog says that it kills all ranks because none of them goes on."""
    return [
        line
        for index, line in enumerate(lines)
        if _KILLS_ALL.search(line.text)
        and any(
            one.file == line.file and _STALLED.search(one.text)
            for one in lines[max(0, index - _STALL_LINES) : index + 1]
        )
    ]


def _with_messages_of_panics(lines: list[LogLine]) -> list[LogLine]:
    """The line behind the head of a panic tells what happened, whatever its words."""
    found = lines
    for index, (head, line) in enumerate(pairwise(lines)):
        if head.file == line.file and _HEAD_OF_PANIC.search(head.text):
            found = list(lines) if found is lines else found
            pattern = classify(line.message, Grade.FATAL)
            found[index] = msgspec.structs.replace(head, pattern=None)
            found[index + 1] = msgspec.structs.replace(line, grade=Grade.FATAL, pattern=pattern)
    return found


def _retried(lines: Iterable[LogLine]) -> set[tuple[str | None, int]]:
    """The places of the lines of stacks which a launcher prints behind the word that it tries
    again: the task may have failed, and its job did not."""
    found: set[tuple[str | None, int]] = set()
    told: dict[tuple[str | None, str | None], bool] = {}
    for line in lines:
        if line.rank is not None:
            continue
        stream = line.file, line.host
        if _RETRIED.search(line.text):
            told[stream] = True
            found.add((line.file, line.place))
        elif told.get(stream) and (not _is_ordinary(line) or _REMOTE.search(line.text)):
            is_end = line.grade is Grade.FATAL and not ATTACHED.match(line.message)
            told[stream] = not is_end  # the exception ends the stack
            found.add((line.file, line.place))
        else:
            told[stream] = False
    return found


def _with_restarts(lines: list[LogLine]) -> list[LogLine]:
    """Where a rank was started again, nothing before that was final. The restart is told in the
    same file, by the rank itself or by no rank, or elsewhere by no rank, at the same time or
    later."""
    if not any(line.is_final for line in lines):
        return lines
    restarts = [line for line in lines if starts_again(line.text)]
    last = {(line.file, line.rank): line.place for line in restarts}
    told = [line.epoch_seconds or 0.0 for line in restarts if line.rank is None]
    latest = max(told, default=-math.inf)

    def was_restarted(line: LogLine) -> bool:
        numbers = [last.get((line.file, rank), -1) for rank in {line.rank, None}]
        elsewhere = line.epoch_seconds is not None and latest >= line.epoch_seconds
        return elsewhere or max(numbers) >= line.place

    return [
        msgspec.structs.replace(line, is_final=False)
        if line.is_final and was_restarted(line)
        else line
        for line in lines
    ]


class Attempt:
    """The logs of all ranks and hosts of one attempt, and how their processes ended."""

    def __init__(
        self,
        lines: Iterable[LogLine],
        exits: Sequence[Exit],
        recorded: DumpComparison | None = None,
    ) -> None:
        lines = _with_restarts(list(lines))
        if retried := _retried(lines):
            exits = [one for one in exits if (one.line.file, one.line.place) not in retried]
            lines = [
                msgspec.structs.replace(line, pattern=None)
                if (line.file, line.place) in retried
                else line
                for line in lines
            ]
        self._reports = exits
        self.exits = _without_cancelled(_without_survivors(exits, lines), lines)
        self.recorded = recorded
        self.was_killed_in_a_stall = bool(
            _kills_of_a_stall([line for line in lines if line.rank is None])
        )
        by_rank: dict[int, list[LogLine]] = defaultdict(list)
        by_host: dict[str | None, list[LogLine]] = defaultdict(list)
        for line in lines:
            if line.rank is None:
                by_host[line.host].append(line)
            else:
                by_rank[line.rank].append(line)
        by_rank = {
            rank: _with_messages_of_panics(_without_copies(own)) for rank, own in by_rank.items()
        }
        settled_at = _settled_at(by_rank.values())
        self.hosts = {host: RankLog(None, host, own, settled_at) for host, own in by_host.items()}
        self.ranks = {
            rank: RankLog(rank, self._host_of(rank, own), own, settled_at)
            for rank, own in sorted(by_rank.items())
        }

    @property
    def died(self) -> bool:
        """Whether a log tells what no rank survives, however it goes on."""
        return any(line.is_final for log in self.logs for line in log.lines)

    @property
    def driver_is_done(self) -> bool:
        """Whether a file in which no rank speaks, or a host of such a file, says at its end that
        the work is done, without a complaint."""
        return any(
            _says_done(lines[-1]) and not any(line.pattern for line in lines)
            for lines in self._without_ranks().values()
        )

    @property
    def driver_exited_well(self) -> bool:
        """Whether a program without ranks ends with 0 and went on with its work behind what it
        complained of, while none ends otherwise and no rank failed by itself. Services of a cluster
        end their helpers so in any case, and of `train | tee` the end is that of `tee`."""
        ends = [
            lines
            for (file, _host), lines in self._without_ranks().items()
            if file is not None and not is_system_log(file) and _EXIT.search(lines[-1].text)
        ]
        return (
            bool(ends)
            and all(re.search(_EXITED_WELL, lines[-1].text) and _worked(lines) for lines in ends)
            and all(log.role < FaultRole.SELF_INFLICTED for log in self.ranks.values())
        )

    def _without_ranks(self) -> dict[tuple[str | None, str | None], list[LogLine]]:
        """The lines of each file, or of each host in an export, in which no rank speaks."""
        streams: dict[tuple[str | None, str | None], list[LogLine]] = defaultdict(list)
        for host, log in self.hosts.items():
            for line in log.lines:
                streams[line.file, host].append(line)
        for log in self.ranks.values():
            for file, host in {(line.file, line.host) for line in log.lines}:
                streams.pop((file, host), None)
                streams.pop((file, None), None)
        return streams

    @property
    def known_ranks(self) -> list[int]:
        """Ranks that print, or whose end is reported."""
        return sorted({*self.ranks, *(one.rank for one in self.exits if one.rank is not None)})

    @property
    def logs(self) -> list[RankLog]:
        """Those of all ranks, then those of all hosts."""
        return [*self.ranks.values(), *self.hosts.values()]

    def reported_host(self, rank: int | None) -> str | None:
        """The host of a rank as a launcher reports it, or the only one that is named at all."""
        if rank is not None:
            for one in self._reports:
                if one.rank == rank and one.host:
                    return one.host
        return next(iter(self._reported_hosts)) if len(self._reported_hosts) == 1 else None

    def exits_of(self, rank: int) -> list[Exit]:
        """All reports of how a rank ended."""
        return self._exits_by_rank.get(rank, [])

    def _host_of(self, rank: int, lines: Iterable[LogLine]) -> str | None:
        named = next((line.host for line in lines if line.host), None)
        return named or self.reported_host(rank)

    @cached_property
    def _reported_hosts(self) -> set[str]:
        return {host for one in self._reports for host in one.hosts}

    @cached_property
    def _exits_by_rank(self) -> dict[int | None, list[Exit]]:
        found: dict[int | None, list[Exit]] = defaultdict(list)
        for one in self.exits:
            found[one.rank].append(one)
        return found
