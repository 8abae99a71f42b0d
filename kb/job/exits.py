"""What launchers, schedulers and the kernel say about how processes ended.

It is evidence, not truth: a launcher sees only its own children, and only in the order in which it
looks at them. The forms are rows of `kb/rules/exits.toml`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from signal import SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGKILL, SIGSEGV, SIGTERM

import msgspec

from kb.expression import Expression
from kb.job.hostlists import read_hosts, read_ranks
from kb.job.model import AttributedLog, LogLine
from kb.log.layout import stem_of
from kb.numbers import read_int
from kb.rules import read_rows
from kb.rules.rows import Ended, ExitBlock, ExitReport, Rule

_MAX_EXITS = 20_000
"""Reports kept of one job: two of each rank of the largest."""


_SHELL_SIGNAL_CODES = range(129, 160)
"""Exit codes by which a shell tells signals 1 to 31."""


class Exit(Ended, frozen=True, kw_only=True):
    """One process that ended, as a launcher, a scheduler or the kernel reports it."""

    line: LogLine
    """The line that says so best."""

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
_TORCHRUN_KEY = Expression(r"^[ \t]+(?P<key>time|host|rank|exitcode|error_file|traceback)[ \t]*: ")
_TORCHRUN_RANK = Expression(r"(?<!\d)(\d+) \(local_rank: (\d+)\)")
_TORCHRUN_EXIT = Expression(r"(?<!\d)(-?\d+) \(pid: (\d+)\)")
"""The table of torchrun has six lines, and which of them says best how a rank ended depends on the
last: more than a row of `exits.toml` can tell."""


def read_exits(log: AttributedLog) -> list[Exit]:
    """All reports in the lines of a job, in their order, with the ranks as far as known."""
    found = list(islice(_reports(log.lines), _MAX_EXITS))
    known = [one for one in found if one.rank is not None]
    by_place = _in_order(log.lines)
    by_place |= {
        (one.host, one.local_rank): one.rank for one in known if one.local_rank is not None
    }
    by_pid = log.ranks_by_pid | {one.pid: one.rank for one in known if one.pid}
    by_name = _named(log.lines) if any(one.name for one in found) else {}
    for place, one in enumerate(found):
        if one.rank is None:
            rank = by_pid.get(one.pid) if one.pid else None
            rank = by_name.get(one.name) if one.name else rank
            rank = by_place.get((one.host, one.local_rank)) if rank is None else rank
            found[place] = msgspec.structs.replace(one, rank=rank)
    return found


def _named(lines: Iterable[LogLine]) -> dict[str, int]:
    """Ranks by the names of the files and hosts in which no other rank speaks."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        if line.rank is not None:
            for name in filter(None, {line.host, stem_of(line.file)}):
                ranks[name].add(line.rank)
    return {name: next(iter(seen)) for name, seen in ranks.items() if len(seen) == 1}


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


def reports_exit(text: str) -> bool:
    """Whether a text of one line or several holds a report, or the beginning of one."""
    return _may_report(text) and any(
        report.search(text) for report in (*_one_line(), *(b.opens for b in _blocks()))
    )


def launcher_speaks(text: str) -> bool:
    """Whether a text of one line or several shows that a launcher prints into the file."""
    return _launchers().search(text) is not None


def starts_again(text: str) -> bool:
    """Whether a line says that ranks which ended are started again."""
    return _restarts().search(text) is not None


def _reports(lines: Iterable[LogLine]) -> Iterator[Exit]:
    table: dict[str, LogLine] = {}
    opened: dict[_Block, tuple[LogLine, dict[str, str | None]]] = {}
    for line in lines:
        key = _TORCHRUN_KEY.match(line.text)
        if not (opened or table or key or _may_report(line.text)):
            continue
        matches = (report.search(line.text) for report in _one_line())
        if match := next(filter(None, matches), None):
            yield from _exits(line, match.groupdict())
        for block in _blocks():
            if match := block.opens.search(line.text):
                opened[block] = line, match.groupdict()
            elif block in opened and (match := block.closes.search(line.text)):
                told, part = opened.pop(block)
                yield from _exits(told, part | match.groupdict())
        if key:
            table = {} if key["key"] in table else table
            table[key["key"]] = line
            if key["key"] == "traceback":
                yield from _torchrun(table)
                table = {}


class _Block(msgspec.Struct, frozen=True):
    opens: re.Pattern[str]
    closes: re.Pattern[str]


@cache
def _one_line() -> tuple[re.Pattern[str], ...]:
    rows = read_rows("exits", "exit", ExitReport)
    return tuple(re.compile(row.pattern, re.IGNORECASE) for row in rows)


@cache
def _blocks() -> tuple[_Block, ...]:
    rows = read_rows("exits", "block", ExitBlock)
    return tuple(
        _Block(re.compile(row.opens, re.MULTILINE), re.compile(row.closes)) for row in rows
    )


@cache
def _launchers() -> re.Pattern[str]:
    return re.compile("|".join(row.pattern for row in read_rows("exits", "launcher", Rule)))


@cache
def _restarts() -> re.Pattern[str]:
    rows = read_rows("exits", "restart", Rule)
    return re.compile("|".join(row.pattern for row in rows), re.IGNORECASE)


def _may_report(text: str) -> bool:
    """Whether a word is there that each report has: most lines need no closer look."""
    lower = text.lower()
    return any(word in lower for word in _words())


@cache
def _words() -> frozenset[str]:
    words = [row.word for row in read_rows("exits", "exit", ExitReport)]
    words += [row.word for row in read_rows("exits", "block", ExitBlock)]
    return frozenset(map(str.lower, words))


def _exits(line: LogLine, part: dict[str, str | None]) -> Iterator[Exit]:
    ranks, worker = part.get("ranks"), _int(part.get("worker"))
    if worker is not None and line.rank not in (None, worker):
        return  # a rank may have workers of its own
    for rank in read_ranks(ranks) if ranks else [_int(part.get("rank") or part.get("worker"))]:
        yield Exit(
            line=line,
            rank=rank,
            local_rank=_int(part.get("local_rank")),
            hosts=_hosts(part, line),
            name=part.get("name"),
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
        return _int(f"-{part['signal']}")
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
        line=best,
        rank=read_int(rank[1]),
        local_rank=read_int(rank[2]),
        hosts=tuple(filter(None, [host or best.host])),
        pid=read_int(ended[2]),
        code=read_int(ended[1]),
    )


def _int(text: str | None) -> int | None:
    return None if text is None else read_int(text)
