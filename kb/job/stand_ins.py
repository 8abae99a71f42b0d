"""Jobs in which hosts speak and nobody tells a rank: each host stands for one rank while the first
failure is looked for. The numbers are ours, so the user sees the hosts alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kb.expression import Expression
from kb.job.exits import Exit
from kb.job.model import AttributedLog, Job, QuotedLine
from kb.numbers import read_int
from kb.rules import host_pattern

_ORDINAL = Expression(r"(?P<stem>[a-z].*[-.])(?P<number>\d{1,6})(?:-[bcdfghjklmnpqrstvwxz2-9]{5})?")
"""The name of a pod: an indexed Job adds five random signs, in which Kubernetes uses no vowels."""
_STARTS_SEVERAL = Expression(
    r"torch[./]distributed[./](?:elastic|run|launcher)|\b(?:torchrun|mpirun|mpiexec|deepspeed)\b"
    r"|\bnproc|\blocal[_ ]rank\b",
    re.IGNORECASE,
)
_NODE = Expression(
    r"\bnode[ :=#]{1,3}(?P<number>\d{1,5})(?:/| of )(?P<all>\d{1,5})(?![\w/:-]|\.\d)"
)
_MACHINE = Expression(host_pattern("usual_host"))


def speaking_hosts(log: AttributedLog, exits: Iterable[Exit]) -> list[str]:
    """The hosts, where several speak and neither a line nor a launcher tells a rank."""
    if any(line.rank is not None for line in log.lines) or any(one.rank for one in exits):
        return []
    hosts = sorted({line.host for line in log.lines if line.host is not None})
    return hosts if len(hosts) > 1 else []


def pod_ordinals(log: AttributedLog, hosts: Sequence[str]) -> dict[str, int]:
    """The ranks of pods that are numbered from 0, as those of a StatefulSet or an indexed Job; none
    of machines, or where a launcher starts several ranks in each."""
    if any(_STARTS_SEVERAL.search(line.text) for line in log.lines):
        return {}
    numbers: dict[str, dict[str, int]] = defaultdict(dict)
    for host in hosts:
        match = None if _MACHINE.fullmatch(host) else _ORDINAL.fullmatch(host)
        if match and (number := read_int(match["number"])) is not None:
            numbers[match["stem"]][host] = number
    ranks = max(numbers.values(), key=len, default={})
    is_most = 2 * len(ranks) > len(hosts)  # machines may speak as well
    return ranks if is_most and set(ranks.values()) == set(range(len(ranks))) else {}


def stated_ordinals(log: AttributedLog, hosts: Sequence[str]) -> dict[str, int]:
    """The ranks of hosts that each say which of all nodes they are, counted from 0 (`node 1/4`);
    none where a launcher starts several ranks in each."""
    if any(_STARTS_SEVERAL.search(line.text) for line in log.lines):
        return {}
    numbers: dict[str, set[int]] = defaultdict(set)
    for line in log.lines:
        for match in _NODE.finditer(line.message) if line.host else ():
            if read_int(match["all"]) == len(hosts):
                numbers[line.host or ""].add(int(match["number"]))
    stated = {host: next(iter(seen)) for host, seen in numbers.items() if len(seen) == 1}
    return stated if sorted(stated.values()) == list(range(len(hosts))) else {}


def number_hosts(log: AttributedLog, ranks: Mapping[str, int]) -> AttributedLog:
    """Let the lines of each host be those of one rank."""
    lines = [
        msgspec.structs.replace(line, rank=ranks.get(line.host)) if line.host else line
        for line in log.lines
    ]
    return msgspec.structs.replace(log, lines=lines)


def without_numbers(job: Job, hosts: Sequence[str]) -> Job:
    """Name the hosts where the ranks are that stood for them."""

    def named(lines: Iterable[QuotedLine]) -> tuple[QuotedLine, ...]:
        return tuple(msgspec.structs.replace(line, rank=None) for line in lines)

    return msgspec.structs.replace(
        job,
        world_size=None,
        culprits=named(job.culprits),
        timeline=named(job.timeline),
        earlier=named(job.earlier),
        others=tuple(
            msgspec.structs.replace(
                group, ranks=(), hosts=tuple(hosts[rank] for rank in group.ranks)
            )
            for group in job.others
        ),
    )
