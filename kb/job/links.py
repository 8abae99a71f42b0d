"""Which host is cut off, when ranks cannot reach each other and all print the same."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from kb.job.cast import Cast
from kb.job.kinds import Kind, Standing
from kb.job.remark import Remark

_NAME = r"[A-Za-z][\w-]*\w"
_LOST = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^\s*Remote daemon\s*:.* on node (?P<host>{_NAME})",
        rf"\bnode failure on (?P<host>{_NAME})",
        rf"\bnode (?P<host>{_NAME}) (?:is )?(?:not ?ready|not responding|down|unreachable)\b",
    )
)
"""Launchers and schedulers that name the host they lost."""

_PAIR = re.compile(rf"\bfrom (?P<one>{_NAME}) to:? (?P<other>{_NAME})")
_ADDRESS = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])")
_LINK_UP = re.compile(r"\b(?:UP|inet|ip[=:]|address)\b", re.IGNORECASE)


def cut_off(cast: Cast) -> tuple[str, Remark] | None:
    """The host that is not reached and the line that shows it, where the logs tell."""
    return _link_down(cast) or _lost(cast) or _accused(cast)


def _everything(cast: Cast) -> Iterator[Remark]:
    for voice in (*cast.hosts.values(), *cast.ranks.values()):
        yield from voice.remarks


def lost_launcher(cast: Cast) -> tuple[str, Remark] | None:
    """The host whose launcher alone lost the others, where all ranks wait for each other: it is cut
    off though its own link looks sound."""
    lost = [
        voice
        for host, voice in cast.hosts.items()
        if host and voice.standing in (Standing.WAITED, Standing.BEREFT)
    ]
    hosts = {voice.host for voice in cast.voices if voice.host}
    if len(lost) != 1 or len(hosts) < 2:
        return None
    host, line = lost[0].host, lost[0].failure
    return (host, line) if host and line else None


def _link_down(cast: Cast) -> tuple[str, Remark] | None:
    """The system log of a host says that its link went down, and ranks lost each other."""
    if not any(voice.standing in (Standing.BEREFT, Standing.WAITED) for voice in cast.voices):
        return None
    for host, voice in cast.hosts.items():
        for remark in voice.remarks:
            if host and remark.kind is Kind.NETWORK and remark.standing is Standing.CAUSE:
                return host, remark
    return None


def _lost(cast: Cast) -> tuple[str, Remark] | None:
    for remark in _everything(cast):
        for pattern in _LOST:
            match = pattern.search(remark.text)
            if match:
                return match["host"], remark
    return None


def _accused(cast: Cast) -> tuple[str, Remark] | None:
    """The host that is on one side of every connection that could not be made."""
    unreachable = [
        remark
        for voice in cast.voices
        for remark in voice.failures
        if remark.kind is Kind.NETWORK and remark.standing is Standing.BEREFT
    ]
    addresses = _addresses(_everything(cast))
    partners: dict[str, set[str]] = defaultdict(set)
    for remark in unreachable:
        for one, other in _pairs(remark, addresses):
            partners[one].add(other)
            partners[other].add(one)
    ranked = Counter({host: len(others) for host, others in partners.items()}).most_common(2)
    if len(ranked) < 2 or ranked[0][1] == ranked[1][1]:
        return None
    host = ranked[0][0]
    line = next(r for r in unreachable if any(host in pair for pair in _pairs(r, addresses)))
    return host, line


def _pairs(remark: Remark, addresses: dict[str, str]) -> Iterator[tuple[str, str]]:
    match = _PAIR.search(remark.text)
    if match:
        yield match["one"], match["other"]
        return
    for address in _ADDRESS.findall(remark.text):
        other = addresses.get(address)
        if remark.host and other and other != remark.host:
            yield remark.host, other


def _addresses(remarks: Iterable[Remark]) -> dict[str, str]:
    """Hosts by the address that they say is theirs."""
    found: dict[str, str] = {}
    for remark in remarks:
        if remark.host and remark.row is None and _LINK_UP.search(remark.text):
            for address in _ADDRESS.findall(remark.text):
                found.setdefault(address, remark.host)
    return found
