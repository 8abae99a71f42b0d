"""Jobs in which hosts speak and nobody tells a rank: each host stands for one rank while the first
failure is looked for. The numbers are ours, so the user sees the hosts alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kb.job.exits import Exit
from kb.job.model import AttributedLog, Job, QuotedLine


def speaking_hosts(log: AttributedLog, exits: Iterable[Exit]) -> list[str]:
    """The hosts, where several speak and neither a line nor a launcher tells a rank."""
    if any(line.rank is not None for line in log.lines) or any(one.rank for one in exits):
        return []
    hosts = sorted({line.host for line in log.lines if line.host is not None})
    return hosts if len(hosts) > 1 else []


def number_hosts(log: AttributedLog, hosts: Sequence[str]) -> AttributedLog:
    """Let the lines of each host be those of one rank."""
    ranks = {host: rank for rank, host in enumerate(hosts)}
    lines = [
        msgspec.structs.replace(line, rank=ranks[line.host]) if line.host in ranks else line
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
