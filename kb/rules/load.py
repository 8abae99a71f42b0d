"""Reads the TOML files of this directory into rows."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kb.rules.rows import Host, Row, Time

RowT = TypeVar("RowT", bound=Row)

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_PATTERNS = frozenset(("pattern", "opens", "closes", "sign", "about", "overcome"))
"""The keys whose placeholders are replaced."""
_GROUP = re.compile(r"\?P<\w+>")


class RuleError(ValueError):
    """A row that is wrong; names the file and the row."""


def read_rows(file: str, table: str, kind: type[RowT]) -> tuple[RowT, ...]:
    """The rows of one table of a file, `markers` or another, in their order.

    Placeholders such as `{time}` and `{host}` in their patterns are replaced.

    Raises:
        RuleError: a row is wrong.
    """
    rows = read_tables(file).get(table, ())
    return tuple(convert_row(file, row, kind) for row in rows)


def convert_row(file: str, row: dict[str, Any], kind: type[RowT]) -> RowT:
    """One row as it stands in a file, checked, with its placeholders replaced.

    Raises:
        RuleError: the row is wrong.
    """
    try:
        expanded = {key: _expanded(row[key], _parts(file)) for key in _PATTERNS & row.keys()}
        return msgspec.convert(row | expanded, kind)
    except (msgspec.ValidationError, KeyError) as error:
        reason = f"no part is named {error}" if isinstance(error, KeyError) else error
        raise RuleError(f"{file}.toml, row {row.get('name')!r}: {reason}") from error


def without_names(pattern: str) -> str:
    """The pattern with its groups unnamed, to be a part of another one."""
    return _GROUP.sub("?:", pattern)


@cache
def host_pattern(name: str) -> str:
    """The pattern of a row of `hosts.toml`, without groups, to be a part of another one.

    Raises:
        KeyError: there is no such row.
    """
    return without_names(_hosts()[name])


def any_of(patterns: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    """One expression that finds whatever one of the patterns finds."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags)


@cache
@cache  # each document asks for it
def file_digest(file: str) -> bytes:
    """Changes whenever a row of the file does: what was made with it must be made again."""
    return hashlib.sha256(_path(file).read_bytes()).digest()


@cache
def read_tables(file: str) -> dict[str, Any]:
    """All that a file holds, by table."""
    with _path(file).open("rb") as opened:
        return tomllib.load(opened)


@cache
def read_words(file: str, table: str) -> frozenset[str]:
    """The words of a list that a file holds as one text."""
    return frozenset(read_tables(file)[table].split())


def _path(file: str) -> Path:
    return Path(__file__).parent / f"{file}.toml"


@cache
def _parts(file: str) -> Mapping[str, str]:
    """What the placeholders in a file stand for: its own parts, times and hosts."""
    own: dict[str, str] = read_tables(file).get("parts", {})
    if file in ("times", "hosts"):
        return own
    parts = {**_times(), **_hosts()}
    for name, part in own.items():
        parts[name] = _expanded(part, parts)
    return parts


def _times() -> dict[str, str]:
    parts = {name: without_names(part) for name, part in _parts("times").items()}
    for table in ("date", "epoch", "clock"):
        parts[table] = _any_of(row.pattern for row in read_rows("times", table, Time))
    return parts | {"time": _any_of(parts[table] for table in ("date", "epoch", "clock"))}


def _hosts() -> dict[str, str]:
    hosts = {row.name: f"(?P<host>{row.pattern})" for row in read_rows("hosts", "host", Host)}
    no_hosts = {row.name: f"(?:{row.pattern})" for row in read_rows("hosts", "no_host", Host)}
    return hosts | no_hosts


def _any_of(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(without_names, patterns))})"


def _expanded(pattern: str | list[str], parts: Mapping[str, str]) -> str:
    joined = "|".join(pattern) if isinstance(pattern, list) else pattern
    return _PLACEHOLDER.sub(lambda found: parts[found[1]], joined)
