"""Who says a line: rank, host and time in front of it, as launchers and loggers write them.

Adding a launcher is adding a row. Rows are tried in order, again and again, until none fits:
`kubectl logs --prefix` may wrap a torchrun prefix that wraps a time.
"""

from __future__ import annotations

import re

import msgspec


class Prefix(msgspec.Struct, frozen=True):
    """One form of prefix; its groups may be `rank` and `host`."""

    name: str
    pattern: re.Pattern[str]


class Spoken(msgspec.Struct, frozen=True):
    """A line without its prefixes."""

    text: str
    rank: int | None = None
    host: str | None = None


def _row(name: str, pattern: str) -> Prefix:
    return Prefix(name, re.compile(pattern))


PREFIXES = (
    _row("torch rank", r"\[rank\s?(?P<rank>\d+)\]:? ?"),
    _row("torchrun tee", r"\[[\w.-]*?(?P<rank>\d+)\]: ?"),
    _row("open mpi tag", r"\[\d+,(?P<rank>\d+)\]<std(?:out|err|diag)>: ?"),
    _row("hydra, srun -l", r"(?P<rank>\d{1,6}): (?![\w.-]+(?:@[\w.-]+)?: <)"),
    _row("bracketed rank", r"\[?(?:[Rr]ank|RANK)[ :=_-]?(?P<rank>\d+)\]?:? "),
    _row("kubectl --prefix", r"\[pod/(?P<host>[\w.-]+)/[\w.-]+\] "),
    _row("ray worker", r"\((?:[\w.]+ )?pid=\d+(?:, ip=(?P<host>[\w.:]+))?\) "),
    _row(
        "vllm worker",
        r"\((?:VllmWorker|Worker)(?:Process)?(?:_TP|_PP| rank=| pid=)?(?P<rank>\d+)?[^)]{0,40}\) ",
    ),
    _row("nccl", r"(?P<host>[\w.-]+):\d+:\d+ \[(?P<rank>\d+)\] (?=NCCL )"),
    _row(
        "iso time",
        r"\[?\d{4}[-/]\d\d[-/]\d\d[T ,_]\d\d:\d\d:\d\d(?:[.,]\d+)?"
        r"(?:Z|[+-]\d\d:?\d\d| UTC)?[\]:,]? ?[-|]? ?",
    ),
    _row("docker compose", r"(?P<host>[\w.-]{2,63}) +\| (?=.)"),
    _row("kernel time", r"\[\s*\d+\.\d{6}\] "),
    _row(
        "kernel date",
        r"\[?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?"
        r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d+ \d\d:\d\d:\d\d"
        r"(?: \d{4})?\]?:? ",
    ),
    _row("glog", r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ "),
    _row("glog, new", r"\[?(?:[IWEF])\d{3,4} \d\d:\d\d:\d\d\.\d+(?: \d+)? "),
    _row("clock", r"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]? "),
    _row("pdsh, ansible", r"(?P<host>(?=[\w.-]*\d)[a-z][\w.-]{2,62}): (?=\S)"),
)

_DEEPEST = 4

_ANY = re.compile(
    "|".join(f"(?:{re.sub(r'[?]P<[a-z]+>', '?:', row.pattern.pattern)})" for row in PREFIXES)
)
"""Most lines have one or two; asking once whether there is another is cheaper than every row."""


def split_prefix(line: str) -> Spoken:
    """Take the prefixes off a line."""
    rank: int | None = None
    host: str | None = None
    for _layer in range(_DEEPEST):
        if not _ANY.match(line):
            break
        for row in PREFIXES:
            match = row.pattern.match(line)
            if match and match.end() < len(line):
                found = match.groupdict()
                rank = int(found["rank"]) if rank is None and found.get("rank") else rank
                host = host or found.get("host")
                line = line[match.end() :]
                break
        else:
            break
    return Spoken(line, rank, host)
