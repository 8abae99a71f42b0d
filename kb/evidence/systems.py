"""The systems that texts name: the rows of `kb/rules/systems.toml`, ready to search."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from kb.rules import read_rows
from kb.rules.rows import System, Version


@cache
def system_patterns() -> Mapping[str, re.Pattern[str]]:
    """By name of a system: how a text names it."""
    return {row.name: re.compile(row.pattern, re.IGNORECASE) for row in _systems()}


def systems_in(text: str) -> tuple[str, ...]:
    """The systems that a text names, in the order of the rows."""
    return tuple(name for name, pattern in system_patterns().items() if pattern.search(text))


@cache
def version_patterns() -> Mapping[str, re.Pattern[str]]:
    """By name of a system: how its version is printed. The first group that matched is it."""
    rows = read_rows("systems", "version", Version)
    return {row.name: re.compile(row.pattern) for row in rows}


def versions_in(text: str) -> dict[str, str]:
    """By name of a system: the version that a text states first."""
    return {
        name: next(group for group in match.groups() if group)
        for name, pattern in version_patterns().items()
        if (match := pattern.search(text))
    }


@cache
def alternatives() -> tuple[frozenset[str], ...]:
    """Systems of one purpose each: a job that runs one of them does not need the others."""
    by_purpose: dict[str, set[str]] = defaultdict(set)
    for row in _systems():
        if row.way_of:
            by_purpose[row.way_of].add(row.name)
    return tuple(map(frozenset, by_purpose.values()))


@cache
def full_names() -> Mapping[str, str]:
    """Names of systems by their short names."""
    return {short: row.name for row in _systems() for short in row.short_names}


@cache
def _systems() -> tuple[System, ...]:
    return read_rows("systems", "system", System)
