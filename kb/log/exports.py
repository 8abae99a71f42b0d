"""Logs as platforms export them: what a program said stands in a JSON object, or in a row of a
table (CSV), beside the time and who said it.

The forms are rows of `kb/rules/exports.toml`. Such a log is read as if the programs had written it,
each line with its number in the file; what no row knows stays as it is.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import Any

import msgspec

from kb.errors import DamagedError
from kb.files import decode_json
from kb.rules import read_rows
from kb.rules.rows import Export

NumberedLine = tuple[int, bytes]
"""The number of a line in its file, and the line without its end."""

_SNIFFED_LINES = 100
"""Lines in which an export shows itself: an object that is spread over lines has some dozens."""
_MAX_OBJECT_BYTES = 1 << 22
"""Of a larger object the lines stay as they are: platforms cut what a program says far earlier, and
the answer to a query has some thousands of lines."""
_STREAMS = re.compile(rb'"resultType"\s*:\s*"streams"')
"""What Loki answers: its first stream may be longer than what is sniffed at."""
_LISTS = ("events", "entries", "items", "logs")
"""Under which an export that is one object holds its lines."""
_SKELETON = re.compile(rb'\s*(?:"\w{1,60}"\s*:\s*)?[\[\]{}]{1,4},?\s*')
"""A line that only opens or closes a list or an object."""
_MAX_HEADER_BYTES = 1000
"""Of the names of a table's columns."""
_NO_NAME = re.compile(r"[^\w.-]+")
_DATE_AND_TIME = re.compile(r"(?<=\d{4}-\d\d-\d\d)-(?=\d\d:)")
_SECOND_DIGITS = 10
"""Of a time since 1970 in seconds; milliseconds have 13, microseconds 16, nanoseconds 19."""


class _Object(msgspec.Struct, frozen=True):
    """A part of a file that may be one or several JSON objects."""

    lines: Sequence[NumberedLine]

    @property
    def data(self) -> bytes:
        return b"\n".join(line for _number, line in self.lines)

    def number_of(self, key: str) -> int:
        """The number of the line in which a field begins."""
        if len(self.lines) > 1:
            opens = f'"{key}"'.encode()
            for number, line in self.lines:
                if line.lstrip().startswith(opens):
                    return number
        return self.lines[0][0]


def is_export(head: bytes) -> bool:
    """Whether what begins so holds what programs said, in a known form."""
    if head.lstrip()[:1] not in (b"{", b"["):
        return bool(_columns(head.split(b"\n", 1)[0]))
    lines = enumerate(head.split(b"\n", _SNIFFED_LINES)[:_SNIFFED_LINES], 1)
    return _STREAMS.search(head) is not None or any(_said(one) for one in _objects(lines))


def unwrap(lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
    """What programs said in the lines of an export, in its order. Of an object that is spread over
    lines, the number is that of the line with the text."""
    lines = iter(lines)
    first = next(lines, None)
    if first is None:
        return
    if columns := _columns(first[1]):
        yield from _unwrap_table(columns, lines)
        return
    for one in _objects(chain([first], lines)):
        yield from _said(one) or (pair for pair in one.lines if not _SKELETON.fullmatch(pair[1]))


def _columns(header: bytes) -> list[str]:
    """The names of the columns of a table that some row knows, in lower case; else none."""
    if b"," not in header or len(header) > _MAX_HEADER_BYTES:
        return []
    text = header.decode("utf-8-sig", "replace").lower()
    try:
        names = [name.strip() for name in next(csv.reader([text]), [])]
    except csv.Error:
        return []
    return names if any(_applies(row, dict.fromkeys(names, "")) for row in _tables()) else []


def _unwrap_table(columns: Sequence[str], lines: Iterator[NumberedLine]) -> Iterator[NumberedLine]:
    """What programs said in the rows of a table. What is no row, as where a quotation mark has no
    end, stays as it is."""
    taken: list[NumberedLine] = []

    def texts() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line[1].decode("utf-8", "replace") + "\n"

    left = texts()
    is_at_end = False
    while not is_at_end:
        try:
            for values in csv.reader(left):
                record = dict(zip(columns, values, strict=False))
                yield from list(_lines(record, _Object(taken), _tables())) or taken
                taken.clear()
            is_at_end = True
        except csv.Error:
            yield from taken
            taken.clear()


def _objects(lines: Iterable[NumberedLine]) -> Iterator[_Object]:
    """Lines that are an object each, and those that make one up: it begins with a lone brace, and
    ends with one that stands as far to the right."""
    opened: list[NumberedLine] = []
    size = 0
    for number, line in lines:
        stripped = line.strip()
        if stripped == b"{":  # of two, the inner one may be what a program said
            yield from _single(opened)
            opened, size = [(number, line)], len(line)
        elif not opened:
            yield _Object([(number, line)])
        else:
            opened.append((number, line))
            size += len(line)
            if stripped.rstrip(b",") == b"}" and _indent(line) == _indent(opened[0][1]):
                yield _Object(opened)
                opened = []
            elif size > _MAX_OBJECT_BYTES:
                yield from _single(opened)
                opened = []
    yield from _single(opened)


def _single(lines: Iterable[NumberedLine]) -> Iterator[_Object]:
    return (_Object([line]) for line in lines)


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _said(one: _Object) -> list[NumberedLine]:
    """What programs said in an object or a list of objects; nothing where no row knows it."""
    data = one.data.strip().rstrip(b",").removeprefix(b"data: ")
    if data[:1] not in (b"{", b"["):
        return []
    try:
        decoded = decode_json(data, object)
    except DamagedError:
        return []
    said = [
        (record, list(_lines(record, part, _rows()))) for record, part in _records(decoded, one)
    ]
    if not any(lines for _record, lines in said):
        return []
    return [line for record, lines in said for line in lines or _as_it_is(record, one)]


def _as_it_is(record: object, one: _Object) -> list[NumberedLine]:
    """An object that no row knows, among others that are known."""
    return [(one.lines[0][0], msgspec.json.encode(record))]


def _records(decoded: Any, one: _Object) -> Iterator[tuple[object, _Object]]:  # of JSON
    """What an export holds, each with the lines in which it stands."""
    if isinstance(decoded, list):
        yield from ((record, one) for record in decoded)
        return
    if isinstance(decoded, dict):
        for name in _LISTS:
            if isinstance(found := decoded.get(name), list):
                yield from ((record, one) for record in found)
                return
        if isinstance(streams := _value(decoded, "/data/result"), list):
            for stream in streams:
                yield from _values(stream, one)
            return
        if isinstance(decoded.get("values"), list):
            yield from _values(decoded, one)
            return
    yield decoded, one


def _values(stream: Any, one: _Object) -> Iterator[tuple[object, _Object]]:  # of JSON
    """The lines of a stream, as Loki answers a query: pairs of a time and a text below the labels
    of all of them."""
    labels, values = _value(stream, "/stream"), _value(stream, "/values")
    place = 0
    for pair in values if isinstance(labels, dict) and isinstance(values, list) else ():
        if not (isinstance(pair, list) and len(pair) > 1 and isinstance(pair[0], str)):
            continue
        time = pair[0].encode()
        at = next((n for n in range(place, len(one.lines)) if time in one.lines[n][1]), place)
        place = min(at + 1, len(one.lines) - 1)
        record = {"labels": labels, "timestamp": pair[0], "line": pair[1]}
        yield record, _Object([one.lines[place]])


def _lines(record: object, one: _Object, rows: Sequence[Export]) -> Iterator[NumberedLine]:
    row = next((row for row in rows if _applies(row, record)), None)
    if row is None:
        return
    path, text = next(_found(record, row.text))
    number, prefix = one.number_of(path.rpartition("/")[2]), _prefix(row, record)
    for line in "\n".join([text.rstrip("\n"), *_beside(row, record, text)]).split("\n"):
        yield number, f"{prefix}{line}".encode("utf-8", "replace")


def _beside(row: Export, record: Any, said: str) -> Iterator[str]:  # of JSON
    """What else was said: a program may name its error in a field of its own. One word is a name
    or a number."""
    aside = {path.split("/")[1] for path in (*row.aside, *row.time)}
    for name, text in _texts({name: record[name] for name in record if name not in aside}):
        if not name.startswith("_") and len(text.split()) > 1 and text not in said:
            yield f"{name}: {text.rstrip()}"


def _texts(value: object) -> Iterator[tuple[str, str]]:
    """The texts in some JSON, however deep, with the names of their fields."""
    left = [("", value)]
    while left:
        name, value = left.pop()
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, dict):
            left += reversed(value.items())
        elif isinstance(value, list):
            left += [(name, item) for item in reversed(value)]


def _applies(row: Export, record: object) -> bool:
    asked = [paths for paths in (row.text, row.time) if paths]
    return all(any(_found(record, paths)) for paths in asked) and (
        not row.needs or any(_value(record, path) is not None for path in row.needs)
    )


def _prefix(row: Export, record: object) -> str:
    """Who said it and when, as a row of `prefixes.toml` takes it off a line."""
    time = _word(record, row.time)
    stamp = f"{_iso(time)} " if time else ""
    if speaker := _word(record, row.speaker):
        names = filter(None, (_speaking(speaker), _word(record, row.part)))
        return f"[from {'/'.join(_NO_NAME.sub('-', name) for name in names)}] {stamp}"
    host, program, pid = (_word(record, paths) for paths in (row.host, row.program, row.pid))
    if not (host and program):
        return stamp
    process = f"[{pid}]" if pid else ""
    return f"{stamp}{_NO_NAME.sub('-', host)} {program.removesuffix('.service')}{process}: "


def _speaking(stream: str) -> str:
    """The part of a stream's name that tells one from another: the last with a number."""
    parts = stream.split("/")
    return next((part for part in reversed(parts) if any(map(str.isdigit, part))), parts[-1])


def _word(record: object, paths: Sequence[str]) -> str:
    """The first value that is there, as one word."""
    return next(("-".join(text.split()) for _path, text in _found(record, paths)), "")


def _found(record: object, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The fields that hold a text, a number or, as journald writes what is not UTF-8, bytes."""
    for path in paths:
        value = _value(record, path)
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, int):
            yield path, str(value)
        elif isinstance(value, list) and all(isinstance(byte, int) for byte in value):
            yield path, bytes(byte & 0xFF for byte in value).decode("utf-8", "replace")


def _value(record: Any, path: str) -> Any:  # of JSON
    for name in path.split("/")[1:]:
        record = record.get(name) if isinstance(record, dict) else None
    return record


def _iso(time: str) -> str:
    """A time since 1970, or with a blank behind the date, as ISO 8601; another one as it is."""
    time = _DATE_AND_TIME.sub("T", time)
    if not (time.isascii() and time.isdecimal() and len(time) >= _SECOND_DIGITS):
        return time
    seconds, rest = int(time[:_SECOND_DIGITS]), time[_SECOND_DIGITS:]
    fraction = f".{rest}" if rest else ""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"


@cache
def _tables() -> tuple[Export, ...]:
    return read_rows("exports", "table", Export)


@cache
def _rows() -> tuple[Export, ...]:
    return read_rows("exports", "export", Export)
