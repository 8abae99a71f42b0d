"""What launchers, schedulers and the kernel say about how processes ended.

It is evidence, not truth: a launcher sees only its own children, and only in the order in which it
looks at them. Adding a launcher is adding a row.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from signal import SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGKILL, SIGSEGV, SIGTERM

import msgspec

from kb.job.hostlists import read_hosts, read_ranks
from kb.job.model import AttributedLog, LogLine

_MAX_EXITS = 20_000
"""Reports kept of one job: two of each rank of the largest."""


_SHELL_SIGNAL_CODES = range(129, 160)
"""Exit codes by which a shell tells signals 1 to 31."""


class Exit(msgspec.Struct, frozen=True):
    """One process that ended, as a launcher, a scheduler or the kernel reports it."""

    line: LogLine
    """The line that says so best."""
    rank: int | None = None
    local_rank: int | None = None
    hosts: tuple[str, ...] = ()
    """It ran on one of these, as far as told."""
    pid: int | None = None
    code: int | None = None
    """Negative for a signal, as in Python's subprocess."""
    by_kernel: bool = False
    aborted: bool = False
    """It ended the whole job on purpose."""

    @property
    def host(self) -> str | None:
        """The host it ran on, where only one is named."""
        return self.hosts[0] if len(self.hosts) == 1 else None

    @property
    def signal(self) -> int | None:
        """The signal that ended it, if one did."""
        if self.code is None:
            return None
        if self.code in _SHELL_SIGNAL_CODES:
            return self.code - _SHELL_SIGNAL_CODES.start + 1
        return -self.code if self.code < 0 else None

    @property
    def was_stopped(self) -> bool:
        """Ended well or because it was told to."""
        return not self.aborted and (self.code in (None, 0) or self.signal in (SIGTERM, SIGINT))


_SIGNAL_WORDS = {
    "segmentation fault": SIGSEGV,
    "killed": SIGKILL,
    "aborted": SIGABRT,
    "bus error": SIGBUS,
    "floating point exception": SIGFPE,
    "illegal instruction": SIGILL,
    "terminated": SIGTERM,
    "out of memory": SIGKILL,
}
_CODE = r"(?P<code>-?\d+)"

ONE_LINE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # torchrun, accelerate
        rf"failed \(exitcode: {_CODE}\) local_rank: (?P<local_rank>\d+) \(pid: (?P<pid>\d+)\)",
        # Open MPI
        r"(?P<abort>MPI_ABORT) was invoked on rank (?P<rank>\d+)",
        r"process rank (?P<rank>\d+) with PID (?P<pid>\d+) on node (?P<host>\S+) exited on\s+signal"
        r" (?P<signal>\d+)",
        r"with PID (?P<pid>\d+) on node (?P<host>\S+) exited on signal (?P<signal>\d+)",
        # MPICH and its relatives
        rf"(?P<abort>Abort)\({_CODE}\) on node \d+ \(rank (?P<rank>\d+) in comm",
        # Slurm
        r"srun: error: (?P<hosts>[\w.,\[\]-]+): tasks? (?P<ranks>[\d,-]+): (?:Exited with exit code"
        r" (?P<code>\d+)|(?P<words>[A-Z][\w ]+))",
        # DeepSpeed
        rf"--local_rank=(?P<local_rank>\d+).*exits with return code = {_CODE}",
        rf"Process (?P<pid>\d+) exits with return code = {_CODE}",
        # shells and scripts around them
        r"\bpid (?P<pid>\d+)\b\D{0,20}(?:returned|exited|exit code|status)\D{0,12}(?P<code>\d+)",
        r"\bline \d+: +(?P<pid>\d+) (?P<words>Segmentation fault|Killed|Aborted|Bus error|Illegal"
        r" instruction|Floating point exception|Terminated)",
        # Ray
        r"(?P<abort>ray::\S+\(\)).{0,12}\(pid=(?P<pid>\d+)",
        # Linux
        r"\b(?P<kernel>Killed process) (?P<pid>\d+)",
        r"\b(?P<kernel>segfault) at .*(?:ip|rip)\b",
    )
)
"""One report a line."""


_ABOUT_AN_END = re.compile(
    r"exit|abort|signal|kill|segfault|srun:|ray::|return|status|\bline \d|process name|^node:|^=|"
    r"actordied|^\s+(?:time|host|rank)\s*:",
    re.IGNORECASE,
)
"""All reports begin with one of these: most lines need no closer look."""


class _Block(msgspec.Struct, frozen=True):
    """A report over several lines: one opens it, one closes it; both tell parts."""

    opens: re.Pattern[str]
    closes: re.Pattern[str]


BLOCKS = (
    # Open MPI
    _Block(
        re.compile(r"Process name: \[\[[^\]]*\],(?P<rank>\d+)\]"),
        re.compile(rf"Exit code:\s+{_CODE}"),
    ),
    _Block(
        re.compile(r"^Node: +(?P<host>\S+)"),
        re.compile(r"(?P<abort>while attempting to start) process rank (?P<rank>\d+)"),
    ),
    # Hydra gives a signal as a code, and 9 for those it killed itself
    _Block(
        re.compile(r"^=\s+PID (?P<pid>\d+) RUNNING AT (?P<host>\S+)"),
        re.compile(r"^=\s+EXIT CODE: (?:9|(?P<signal>\d+))"),
    ),
    # Ray
    _Block(re.compile(r"(?P<abort>ActorDiedError)"), re.compile(r"\s+pid: (?P<pid>\d+)$")),
)
"""Reports over several lines."""

_TORCHRUN_KEY = re.compile(r"^\s+(?P<key>time|host|rank|exitcode|error_file|traceback)\s*: ")
_TORCHRUN_RANK = re.compile(r"(\d+) \(local_rank: (\d+)\)")
_TORCHRUN_EXIT = re.compile(r"(-?\d+) \(pid: (\d+)\)")


def read_exits(log: AttributedLog) -> list[Exit]:
    """All reports in the lines of a job, in their order, with the ranks as far as known."""
    found = list(islice(_reports(log.lines), _MAX_EXITS))
    known = [one for one in found if one.rank is not None]
    by_place = _in_order(log.lines)
    by_place |= {
        (one.host, one.local_rank): one.rank for one in known if one.local_rank is not None
    }
    by_pid = log.ranks_by_pid | {one.pid: one.rank for one in known if one.pid}
    for place, one in enumerate(found):
        if one.rank is None:
            rank = by_pid.get(one.pid) if one.pid else None
            rank = by_place.get((one.host, one.local_rank)) if rank is None else rank
            found[place] = msgspec.structs.replace(one, rank=rank)
    return found


def _in_order(lines: Iterable[LogLine]) -> dict[tuple[str | None, int | None], int | None]:
    """Ranks by host and local rank, as launchers count them where no line says otherwise."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        if line.host is not None and line.rank is not None:
            ranks[line.host].add(line.rank)
    return {
        (host, local): rank
        for host, there in ranks.items()
        for local, rank in enumerate(sorted(there))
    }


def _reports(lines: Iterable[LogLine]) -> Iterator[Exit]:
    table: dict[str, LogLine] = {}
    opened: dict[_Block, tuple[LogLine, dict[str, str | None]]] = {}
    for line in lines:
        if not (opened or table or _ABOUT_AN_END.search(line.text)):
            continue
        yield from _one_line(line)
        for block in BLOCKS:
            if match := block.opens.search(line.text):
                opened[block] = line, match.groupdict()
            elif block in opened and (match := block.closes.search(line.text)):
                told, part = opened.pop(block)
                yield from _exits(told, part | match.groupdict())
        if key := _TORCHRUN_KEY.match(line.text):
            table = {} if key["key"] in table else table
            table[key["key"]] = line
            if key["key"] == "traceback":
                yield from _torchrun(table)
                table = {}


def _one_line(line: LogLine) -> Iterator[Exit]:
    for pattern in ONE_LINE:
        match = pattern.search(line.text)
        if match is not None:
            yield from _exits(line, match.groupdict())
            return


def _exits(line: LogLine, part: dict[str, str | None]) -> Iterator[Exit]:
    ranks = part.get("ranks")
    for rank in read_ranks(ranks) if ranks else [_int(part.get("rank"))]:
        yield Exit(
            line,
            rank=rank,
            local_rank=_int(part.get("local_rank")),
            hosts=_hosts(part, line),
            pid=_int(part.get("pid")),
            code=_code(part),
            by_kernel=part.get("kernel") is not None,
            aborted=part.get("abort") is not None,
        )


def _hosts(part: dict[str, str | None], line: LogLine) -> tuple[str, ...]:
    """Hosts that a report names, or else the host that prints it."""
    if part.get("hosts"):
        return read_hosts(part["hosts"] or "")
    return tuple(filter(None, [part.get("host") or line.host]))


def _code(part: dict[str, str | None]) -> int | None:
    if part.get("code"):
        return _int(part["code"])
    if part.get("signal"):
        return -int(part["signal"] or 0)
    if part.get("kernel"):
        return -SIGKILL if part["kernel"] == "Killed process" else -SIGSEGV
    words = (part.get("words") or "").lower()
    return next((-number for word, number in _SIGNAL_WORDS.items() if word in words), None)


def _torchrun(block: dict[str, LogLine]) -> Iterator[Exit]:
    rank = _TORCHRUN_RANK.search(block["rank"].text) if "rank" in block else None
    ended = _TORCHRUN_EXIT.search(block["exitcode"].text) if "exitcode" in block else None
    if not rank or not ended:
        return
    host = block["host"].text.partition(":")[2].strip() if "host" in block else None
    told = block["traceback"]
    best = block["exitcode"] if "To enable traceback" in told.text else told
    yield Exit(
        best,
        rank=int(rank[1]),
        local_rank=int(rank[2]),
        hosts=tuple(filter(None, [host or best.host])),
        pid=int(ended[2]),
        code=int(ended[1]),
    )


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)
