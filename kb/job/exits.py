"""What launchers, schedulers and the kernel say about how processes ended.

It is evidence, not truth: a launcher sees only its own children, and only in the order in which it
looks at them. Adding a launcher is adding a row.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from kb.job.remark import Remark
from kb.job.voices import Recording

SIGTERM = 15
_MOST_RANKS = 10_000
"""Of one list; a line of a hostile log can name billions."""
_MOST_EXITS = 20_000


class Exit(msgspec.Struct, frozen=True):
    """One process that ended, as somebody reports it."""

    remark: Remark
    """The line that says so best."""
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    code: int | None = None
    """Negative for a signal, as in Python's subprocess."""
    by_kernel: bool = False
    aborted: bool = False
    """It ended the whole job on purpose."""

    @property
    def signal(self) -> int | None:
        """The signal that ended it, if one did."""
        if self.code is None:
            return None
        return -self.code if self.code < 0 else self.code - 128 if 128 < self.code < 160 else None

    @property
    def was_stopped(self) -> bool:
        """Ended well or because it was told to."""
        return not self.aborted and (self.code in (None, 0) or self.signal in (SIGTERM, 2))


_SIGNAL_WORDS = {
    "segmentation fault": 11,
    "killed": 9,
    "aborted": 6,
    "bus error": 7,
    "floating point exception": 8,
    "illegal instruction": 4,
    "terminated": 15,
    "out of memory": 9,
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
        r"srun: error: (?P<host>[\w.-]+): tasks? (?P<ranks>[\d,-]+): (?:Exited with exit code"
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


def read_exits(recording: Recording) -> list[Exit]:
    """All reports in the lines of a job, in their order, with the ranks as far as known."""
    found = list(islice(_reports(recording.remarks), _MOST_EXITS))
    known = [one for one in found if one.rank is not None]
    by_place = _in_order(recording.remarks)
    by_place |= {
        (one.host, one.local_rank): one.rank for one in known if one.local_rank is not None
    }
    by_pid = recording.pids | {one.pid: one.rank for one in known if one.pid}
    for place, one in enumerate(found):
        if one.rank is None:
            rank = by_pid.get(one.pid) if one.pid else None
            rank = by_place.get((one.host, one.local_rank)) if rank is None else rank
            found[place] = msgspec.structs.replace(one, rank=rank)
    return found


def _in_order(remarks: Iterable[Remark]) -> dict[tuple[str | None, int | None], int | None]:
    """Ranks by host and local rank, as launchers count them where nobody says otherwise."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for remark in remarks:
        if remark.host is not None and remark.rank is not None:
            ranks[remark.host].add(remark.rank)
    return {
        (host, local): rank
        for host, there in ranks.items()
        for local, rank in enumerate(sorted(there))
    }


def _reports(remarks: Iterable[Remark]) -> Iterator[Exit]:
    table: dict[str, Remark] = {}
    opened: dict[_Block, tuple[Remark, dict[str, str | None]]] = {}
    for remark in remarks:
        if not (opened or table or _ABOUT_AN_END.search(remark.text)):
            continue
        yield from _one_line(remark)
        for block in BLOCKS:
            if match := block.opens.search(remark.text):
                opened[block] = remark, match.groupdict()
            elif block in opened and (match := block.closes.search(remark.text)):
                told, part = opened.pop(block)
                yield from _exits(told, part | match.groupdict())
        if key := _TORCHRUN_KEY.match(remark.text):
            table = {} if key["key"] in table else table
            table[key["key"]] = remark
            if key["key"] == "traceback":
                yield from _torchrun(table)
                table = {}


def _one_line(remark: Remark) -> Iterator[Exit]:
    for pattern in ONE_LINE:
        match = pattern.search(remark.text)
        if match is not None:
            yield from _exits(remark, match.groupdict())
            return


def _exits(remark: Remark, part: dict[str, str | None]) -> Iterator[Exit]:
    ranks = part.get("ranks")
    for rank in read_ranks(ranks) if ranks else [_int(part.get("rank"))]:
        yield Exit(
            remark,
            rank=rank,
            local_rank=_int(part.get("local_rank")),
            host=part.get("host") or remark.host,
            pid=_int(part.get("pid")),
            code=_code(part),
            by_kernel=part.get("kernel") is not None,
            aborted=part.get("abort") is not None,
        )


def _code(part: dict[str, str | None]) -> int | None:
    if part.get("code"):
        return _int(part["code"])
    if part.get("signal"):
        return -int(part["signal"] or 0)
    if part.get("kernel"):
        return -9 if part["kernel"] == "Killed process" else -11
    words = (part.get("words") or "").lower()
    return next((-number for word, number in _SIGNAL_WORDS.items() if word in words), None)


def _torchrun(block: dict[str, Remark]) -> Iterator[Exit]:
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
        host=host or best.host,
        pid=int(ended[2]),
        code=int(ended[1]),
    )


def read_ranks(text: str) -> list[int]:
    """Read a list such as `0-2,5` or `[1, 3]`."""
    ranks: list[int] = []
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        ranks += range(int(low), min(int(high or low), int(low) + _MOST_RANKS) + 1)
        if len(ranks) > _MOST_RANKS:
            break
    return ranks[:_MOST_RANKS]


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)
