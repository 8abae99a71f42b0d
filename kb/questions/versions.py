"""Versions that a record names: those that it happens in, and the one that holds the fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from kb.evidence.systems import systems_in
from kb.incident import Incident
from kb.numbers import MAX_INT, read_int

_NUMBER = r"v?(\d+(?:\.\d+)+)"
_FIXED_IN = re.compile(rf"^([A-Za-z][\w -]*?) {_NUMBER}")
_FROM = re.compile(rf"^{_NUMBER}(?: and (?:later|newer)| to )")
_UP_TO = re.compile(rf"^(?:up to |\d+(?:\.\d+)* to ){_NUMBER}")
_BEFORE = re.compile(rf"^before {_NUMBER}")
_UNCONDITIONAL = re.compile(rf"^[A-Za-z][\w -]*?(?<! after) {_NUMBER}(?: \([^();]*\))?$")
"""A fix with conditions is for people to read: who runs that version may not meet them."""
_SEVERAL = re.compile(
    r"[,;] |^[^(]*\(.*before|\b(?:reports?|reported|seen|mostly|about)\b", re.DOTALL
)
"""An environment of more than one clause is for people to read."""


def fixed_in(incident: Incident) -> tuple[str, str] | None:
    """The program and version that hold the fix, where the record names one."""
    found = _FIXED_IN.match(incident.header.fixed_in or "")
    return (found[1], found[2]) if found else None


def fits(incident: Incident, versions: Mapping[str, str]) -> bool | None:
    """Whether the incident happens in these versions, by system; None where it does not say."""
    verdicts = list(_verdicts(incident, versions))
    return all(verdicts) if verdicts else None


def _verdicts(incident: Incident, versions: Mapping[str, str]) -> Iterator[bool]:
    name, fix = fixed_in(incident) or ("", "")
    if _UNCONDITIONAL.match(incident.header.fixed_in or ""):
        for system in _systems_in(name):
            if system in versions:
                yield _compare(versions[system], fix) < 0
    for framework, text in incident.header.environment.frameworks.items():
        if framework in versions and not _SEVERAL.search(text):
            yield from _in_range(versions[framework], text)


_systems_in = lru_cache(512)(systems_in)
"""Of the names of programs that hold fixes; every diagnosis asks for the same ones."""


def _in_range(version: str, text: str) -> Iterator[bool]:
    if first := _FROM.match(text):
        yield _compare(version, first[1]) >= 0
    if last := _UP_TO.match(text):
        yield _compare(version, last[1]) <= 0
    if before := _BEFORE.match(text):
        yield _compare(version, before[1]) < 0


def _compare(version: str, bound: str) -> int:
    """Below, equal or above, as far as both are written: 2.26 and 2.26.3 are equal."""
    number = version.partition("+")[0]  # behind it stands how it was built
    pairs = zip(number.split("."), bound.split("."), strict=False)
    left, right = zip(*((_part(one), _part(other)) for one, other in pairs), strict=True)
    return (left > right) - (left < right)


def _part(digits: str) -> int:
    """One that is no number of a version comes after all that are."""
    number = read_int(digits)
    return MAX_INT if number is None else number
