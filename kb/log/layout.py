"""Who wrote a file, told from its path. The layouts of launchers are rows of
`kb/rules/layouts.toml`.

A name that no row knows is a file like any other; then its lines tell who speaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from kb.expression import Expression
from kb.numbers import read_int
from kb.rules import host_pattern, read_rows
from kb.rules.rows import Layout, Origin

__all__ = [
    "Origin",
    "is_kernel_log",
    "is_system_log",
    "number_siblings",
    "origin_of",
    "stem_of",
    "without_stream",
]

_NUMBER, _LETTER = re.compile(r"\d+"), re.compile(r"(?<![A-Za-z])[a-z](?![A-Za-z])")
_MAX_NUMBERS_OF_A_NAME = 16
"""Numbers of a path that may be the rank, the last ones: a date, a job and a host come before."""
_COMPRESSED = Expression(r"\.(?:gz|zst)$", re.IGNORECASE)
_NO_HOST = Expression(host_pattern("part_of_a_file_name"), re.IGNORECASE)
_SYSTEM = Expression(
    r"(?:dmesg|kern(?:el)?|journal(?:ctl)?|syslog|ip[-_. ]?(?:link[-_. ]?)?mon(?:itor)?"
    r"|nvidia[-_]smi|dcgm|sacct|scontrol|squeue|py-?spy|launcher|torchrun|mpirun"
    r"|raylet|gcs_server|dashboard(?:_agent)?|log_monitor|monitor|runtime_env_(?:agent|setup)"
    r"|python-core-(?:worker|driver)|debug_state|export_events|event_[A-Z_]+)(?:[-_]|\.(?!\w+$))?",
    re.IGNORECASE,
)


_STREAM = Expression(r"[-._](?:std)?(?:out|err)(?:\.(?:log|txt))?$", re.IGNORECASE)
"""The end of a name that tells which of two streams a file holds."""
_ENDING = Expression(r"\.(?:log|txt|jsonl?)$", re.IGNORECASE)
_KERNEL = Expression(r"(?:^|[/._-])(?:dmesg|kern(?:el)?)(?=[._-]|$)", re.IGNORECASE)


def origin_of(path: str) -> Origin:
    """Read a path relative to the directory of the job."""
    path = _COMPRESSED.sub("", path)
    found = _parts(path, "attempt") | _parts(path, "rank")
    return Origin(
        rank=_number(found.get("rank")),
        local_rank=_number(found.get("local_rank")),
        host=_host(path),
        attempt=_number(found.get("attempt")),
    )


def is_system_log(path: str) -> bool:
    """Whether a file is what a machine said, not a program: its everyday lines tell nothing."""
    return _SYSTEM.search(path) is not None


def is_kernel_log(path: str) -> bool:
    """Whether a file is what the kernel of a host said: no rank speaks in it."""
    return _KERNEL.search(path) is not None


def without_stream(path: str) -> str:
    """A path without the end that tells which of two streams of a program it holds."""
    return _STREAM.sub("", _COMPRESSED.sub("", path))


def stem_of(path: str | None) -> str | None:
    """The name of a file without folder and endings: often that of the program."""
    return None if path is None else _ENDING.sub("", without_stream(path).rsplit("/", 1)[-1])


def number_siblings(names: Sequence[str]) -> dict[str, int]:
    """Files whose names differ in one small number alone: it is the rank, where nothing else is,
    and where it does not count the older parts of another file, as in `app.log.1`."""
    groups: dict[str, dict[str, int]] = {}
    for name in names:
        bare = _COMPRESSED.sub("", name)
        for match in [*_NUMBER.finditer(bare)][-_MAX_NUMBERS_OF_A_NAME:]:
            if match.end() == len(bare) and bare[: match.start() - 1] in names:
                continue
            shape = _LETTER.sub("*", f"{bare[: match.start()]}#{bare[match.end() :]}")
            if (number := read_int(match[0])) is not None:
                groups.setdefault(shape, {})[name] = number
    return {
        name: number
        for group in groups.values()
        if len(group) > 1 and max(group.values()) < 2 * len(group)
        for name, number in group.items()
    }


def _parts(path: str, table: str) -> dict[str, str]:
    """What the first row of a table that knows the path tells."""
    matches = (pattern.search(path) for pattern in _patterns(table))
    match = next(filter(None, matches), None)
    return {name: value for name, value in match.groupdict().items() if value} if match else {}


def _host(path: str) -> str | None:
    for pattern in _patterns("host"):
        for match in pattern.finditer(_SYSTEM.sub("", path)):
            if not _NO_HOST.fullmatch(match["host"]):
                return match["host"]
    return None


@cache
def _patterns(table: str) -> tuple[re.Pattern[str], ...]:
    rows = read_rows("layouts", table, Layout)
    return tuple(re.compile(row.pattern, re.IGNORECASE) for row in rows)


def _number(text: str | None) -> int | None:
    return None if text is None else read_int(text)
