"""A host that is cut off, when ranks cannot reach each other and all print the same."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from kb.expression import Expression
from kb.job.attempt import Attempt, RankLog
from kb.job.model import Culprit, Explanation, FaultRole, LogLine, RootCause
from kb.rules import host_pattern
from kb.rules.rows import FailureKind

_NAME = host_pattern("short_host")
_LOST = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^\s*Remote daemon\s*:.* on node (?P<host>{_NAME})",
        rf"\bnode failure on (?P<host>{_NAME})",
        rf"\bnode (?P<host>{_NAME}) (?:is )?(?:not ?ready|not responding|down|unreachable)\b",
    )
)
"""Launchers and schedulers that name the host they lost."""

_PAIR = Expression(rf"\bfrom (?P<one>{_NAME}) to:? (?P<other>{_NAME})")
_MIN_RANKS = 3
"""Of two ranks nothing tells which one is cut off."""
_ADDRESS = Expression(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])")
_LINK_UP = Expression(r"\b(?:UP|inet|ip[=:]|address)\b", re.IGNORECASE)

_Found = tuple[str, LogLine]
"""A host that is not reached, and the line that shows it."""


def link_went_down(attempt: Attempt) -> RootCause | None:
    """Name a host whose system log tells that its link went down, where no rank failed by
    itself."""
    if any(log.role >= FaultRole.SELF_INFLICTED for log in attempt.ranks.values()):
        return None
    found = _link_down(attempt)
    culprits = _on_host(attempt, *found) if found else ()
    return RootCause(FailureKind.NETWORK, culprits, Explanation.NETWORK) if culprits else None


def cut_off(attempt: Attempt) -> RootCause | None:
    """Name a host that the others cannot reach."""
    found = _lost(attempt) or _accused(attempt)
    culprits = _on_host(attempt, *found) if found else _alone_without_way(attempt)
    return RootCause(FailureKind.NETWORK, culprits, Explanation.NETWORK) if culprits else None


def _on_host(attempt: Attempt, host: str, line: LogLine) -> tuple[Culprit, ...]:
    """The ranks of a host, where they are known and not all; else the host."""
    ranks = sorted(rank for rank, log in attempt.ranks.items() if log.host == host)
    if not 0 < len(ranks) < len(attempt.ranks):
        return (Culprit(None, host, line),)
    return tuple(Culprit(rank, host, line) for rank in ranks)


def _link_down(attempt: Attempt) -> _Found | None:
    """The system log of a host tells that its link went down, and ranks lost each other."""
    waiting = (FaultRole.LOST_PEER, FaultRole.TIMED_OUT)
    if not any(log.role in waiting for log in attempt.logs):
        return None
    for host, log in attempt.hosts.items():
        for line in log.lines:
            if host and line.kind is FailureKind.NETWORK and line.role is FaultRole.EXTERNAL_CAUSE:
                return host, line
    return None


def _lost(attempt: Attempt) -> _Found | None:
    """A launcher or scheduler names the host it lost."""
    for line in _all_lines(attempt):
        for pattern in _LOST:
            match = pattern.search(line.text)
            if match:
                return match["host"], line
    return None


def _accused(attempt: Attempt) -> _Found | None:
    """The host that is on one side of every connection that could not be made."""
    unreachable = [
        line
        for log in attempt.logs
        for line in log.failures
        if line.kind is FailureKind.NETWORK and line.role is FaultRole.LOST_PEER
    ]
    addresses = _addresses(_all_lines(attempt))
    partners: dict[str, set[str]] = defaultdict(set)
    for line in unreachable:
        for one, other in _pairs(line, addresses):
            partners[one].add(other)
            partners[other].add(one)
    ranked = Counter({host: len(others) for host, others in partners.items()}).most_common(2)
    if len(ranked) < 2 or ranked[0][1] == ranked[1][1]:
        return None
    host = ranked[0][0]
    shown = (r for r in unreachable if any(host in pair for pair in _pairs(r, addresses)))
    return host, next(shown)


def _alone_without_way(attempt: Attempt) -> tuple[Culprit, ...]:
    """The one rank that has no way to the others, where each of these lost a peer or waited in
    vain. One that is silent may be dead, and those who call it have no way to it."""
    ranks = attempt.ranks.values()
    waiting = (FaultRole.LOST_PEER, FaultRole.TIMED_OUT)
    if len(ranks) < _MIN_RANKS or any(log.role not in waiting for log in ranks):
        return ()
    without_way = {log: line for log in ranks if (line := _without_way(log))}
    if len(without_way) != 1:
        return ()
    ((log, line),) = without_way.items()
    return (Culprit(log.rank, log.host, line),)


def _without_way(log: RankLog) -> LogLine | None:
    """The first complaint in which a rank tells that there is no way to another."""
    told = (line for line in log.failures if line.kind is FailureKind.NETWORK)
    return next((line for line in told if line.role is FaultRole.LOST_PEER), None)


def _all_lines(attempt: Attempt) -> Iterator[LogLine]:
    """Lines without a rank first: launchers and system logs name hosts."""
    for log in (*attempt.hosts.values(), *attempt.ranks.values()):
        yield from log.lines


def _pairs(line: LogLine, addresses: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The two hosts of each connection that a line tells of."""
    match = _PAIR.search(line.text)
    if match:
        yield match["one"], match["other"]
        return
    for address in _ADDRESS.findall(line.text):
        other = addresses.get(address)
        if line.host and other and other != line.host:
            yield line.host, other


def _addresses(lines: Iterable[LogLine]) -> dict[str, str]:
    """Hosts by the address that they say is theirs."""
    found: dict[str, str] = {}
    for line in lines:
        if line.host and line.pattern is None and _LINK_UP.search(line.text):
            for address in _ADDRESS.findall(line.text):
                found.setdefault(address, line.host)
    return found
