"""What the logs of one job are read into: lines, the patterns of failures, culprits, the report."""

from __future__ import annotations

import re
from enum import IntEnum, StrEnum

import msgspec

from kb.evidence.markers import Grade
from kb.rules.rows import FailureKind


class FaultRole(IntEnum):
    """What a line tells about the part that its rank plays in the failure.

    The order is the order of trust: a full disk explains a dead rank, a dead rank explains closed
    connections, and closed connections explain nothing.
    """

    NONE = 0
    STOPPED = 1
    """It was told to stop."""
    UNCLASSIFIED = 2
    """It complains in words that no pattern knows."""
    LOST_PEER = 3
    """It lost a peer."""
    TIMED_OUT = 4
    """It waited for others in vain."""
    OUT_OF_STEP = 5
    """It and others did different things."""
    SELF_INFLICTED = 6
    """It failed by itself."""
    EXTERNAL_CAUSE = 7
    """What made it fail lies outside of it, and the line names it."""


class Explanation(StrEnum):
    """What a rule found out, in the words of the field.

    No line of a log says it, but records do: the sentence is searched together with the lines.
    """

    EXCEPTION = (
        "one rank raised an exception before all others, in its own program, data or device; the"
        " other ranks lost their connection to it and failed after it"
    )
    EVERYWHERE = "all ranks fail by themselves in the same way"
    DRIVER = (
        "the program that started the ranks raised an exception by itself after all ranks had ended"
        " their work; no rank is at fault"
    )
    CRASH = (
        "one rank crashed with a signal such as a segmentation fault or abort in native code,"
        " without a Python traceback; the other ranks lost their connection to it"
    )
    KILLED = (
        "one rank was killed with SIGKILL and said nothing: out of memory killer, cgroup memory"
        " limit or an external kill"
    )
    QUIT = "one rank exited by itself with a nonzero exit code and no traceback"
    MEMORY = "the process of one rank ran out of host memory"
    GPU_MEMORY = "one rank ran out of GPU memory"
    DESYNC = (
        "ranks called different collectives or the same one with different shapes: one rank took"
        " another branch, or had other data or configuration"
    )
    HANG = (
        "one rank hangs outside of the collective that all other ranks wait in until their"
        " timeout; the hung rank printed no error"
    )
    NETWORK = "the network link of one host went down or the host cannot be reached by the others"
    STRANGER = "one node cannot connect to the rendezvous endpoint that the others wait at"
    SAME_RANK = (
        "two processes were started with the same RANK and none with another one, so the process"
        " group never comes up"
    )
    NEVER_JOINED = "a node never joined the rendezvous and left no log"
    DIVERGED = "the values of one rank became nan or inf first and spread to all ranks"
    PREEMPTED = "the scheduler preempted the job: it needed the nodes for another one"
    OUT_OF_TIME = (
        "the job reached its time limit before its work was done, and the scheduler ended it; no"
        " rank is known to be at fault"
    )
    INTERRUPTED = "somebody interrupted the job (Ctrl-C, SIGINT); no rank is at fault"
    TAKEN_AWAY = "the cloud took a machine away (spot or preemptible instance); no rank is at fault"
    STRAGGLER = "one rank is a straggler: it is slower than the others, which wait for it"


class FailurePattern(msgspec.Struct, frozen=True):
    """Words of a failure, its kind, and what they tell about the rank that prints them."""

    regex: re.Pattern[str]
    kind: FailureKind
    role: FaultRole

    @property
    def is_by_grade(self) -> bool:
        """It knows no words: all that is known is how much such a line tells."""
        return not self.regex.pattern


class LogLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A line with the rank that printed it, and when."""

    file: str | None
    number: int
    place: int
    """Its place in its file, oldest first: some files begin with the newest line."""
    text: str
    message: str
    """The text without the prefixes that name the rank or host."""
    grade: Grade
    rank: int | None
    host: str | None
    attempt: int
    epoch_seconds: float | None
    """Seconds since 1970 by the clock of its host; of a line without a time, those of the line
    before it."""
    time: str | None
    """As printed."""
    has_own_time: bool
    silenced_rank: int | None
    """Of a line that names no rank: the rank that printed before it, if that printed nothing
    after it."""
    uncaught: bool
    """Torch marks it as a part of the stack of an exception that nobody caught."""
    pattern: FailurePattern | None
    """What it complains of; None for a line that is no complaint."""
    is_final: bool
    """It tells what no rank survives, and the rank was not started again behind it."""

    @property
    def role(self) -> FaultRole:
        """What the line tells about its rank."""
        return self.pattern.role if self.pattern else FaultRole.NONE

    @property
    def kind(self) -> FailureKind | None:
        """The kind of failure that it tells of."""
        return self.pattern.kind if self.pattern else None


class AttributedLog(msgspec.Struct, frozen=True):
    """All lines of a job's files, each with its rank as far as known."""

    lines: list[LogLine]
    ranks_by_pid: dict[int, int]
    """Where lines name both."""


class QuotedLine(msgspec.Struct, frozen=True):
    """A line as the user sees it; each part is None where the logs do not tell."""

    rank: int | None
    """Global."""
    host: str | None
    file: str | None
    line: int | None
    time: str | None
    """As printed."""
    text: str | None


def quote(line: LogLine, rank: int | None, host: str | None) -> QuotedLine:
    """Quote a line for the user."""
    return QuotedLine(rank, host, line.file, line.number, line.time, line.text.strip())


class Culprit(msgspec.Struct, frozen=True):
    """A rank or host at fault and the line that shows it."""

    rank: int | None
    host: str | None
    line: LogLine | None
    recorded: tuple[str | None, str] | None = None
    """The file and text of a dump, where no line shows it."""

    @property
    def quoted(self) -> QuotedLine:
        """The culprit as the user sees it."""
        if self.line is not None:
            return quote(self.line, self.rank, self.host)
        file, text = self.recorded or (None, None)
        return QuotedLine(self.rank, self.host, file, None, None, text)


class RootCause(msgspec.Struct, frozen=True):
    """What made an attempt fail, and who is at fault."""

    kind: FailureKind
    culprits: tuple[Culprit, ...]
    explanation: Explanation


class Cascade(msgspec.Struct, frozen=True):
    """The ranks that fell over because others had."""

    count: int
    text: str


class Group(msgspec.Struct, frozen=True):
    """Ranks that ended with the same words; hosts, where nobody tells a rank."""

    ranks: tuple[int, ...]
    text: str
    hosts: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    """Where the first of them said it."""

    @property
    def size(self) -> int:
        """How many ended so."""
        return len(self.ranks) or len(self.hosts)


class Job(msgspec.Struct, frozen=True):
    """Who failed first, and what the others did."""

    failed: bool
    kind: FailureKind | None
    world_size: int | None
    culprits: tuple[QuotedLine, ...] = ()
    """The first failures, most certain first; of a job that is only slow, the stragglers."""
    cascade: Cascade | None = None
    others: tuple[Group, ...] = ()
    timeline: tuple[QuotedLine, ...] = ()
    earlier: tuple[QuotedLine, ...] = ()
    """What failed in each attempt before the last."""
    finding: str | None = None
    """The explanation, in the words of the field."""
